"""What a comparison of two runs shows: sentences and tables, for the terminal and for a page.

The page is one self-contained HTML file in the look of a run's report, without any script.
"""

from collections.abc import Sequence
from math import isfinite

from analysis.comparison.metrics import ComparedMetric, ComparedMetrics, pooled_aucs
from analysis.metrics_table import Cell
from analysis.page.crossed import AUC, DIFFERENCE
from analysis.page.parts import Fold, Note, Part, Section, fold_items, present, render_page
from analysis.page.table import NOTHING, Entry, Table, numbers, texts, with_noun
from detect.registry import detector_title
from spikein.runs.comparison.origins import Origins

MAX_ROWS = 2_000
"""Rows of the long table; `--json` has all."""
_CONTENTS = {True: "the same", False: "differs", None: "not known"}


def comparison_page(names: tuple[str, str], origins: Origins, metrics: ComparedMetrics) -> str:
    """Return the page as text."""
    sections = (
        Section("differs", "What differs", "What differs", _differing_parts(names, origins)),
        Section("numbers", "What came of it", "What came of it", _number_parts(names, metrics)),
    )
    title = " and ".join(names)
    sentences = summary(names, origins, metrics)
    return render_page("spikein comparison", title, sentences, sections)


def settings_table(names: tuple[str, str], origins: Origins) -> Table | None:
    """Return the settings that differ; None where all are alike."""
    if not origins.settings:
        return None
    return Table(
        title="Settings",
        columns=tuple(texts("Setting", *names)),
        rows=tuple((one.key, one.old, one.new) for one in origins.settings),
        caption="Those that are alike are left out.",
        style="stack listing",
    )


def versions_table(names: tuple[str, str], origins: Origins) -> Table:
    """Return the versions of code and libraries that made the artifacts."""
    first, second = origins.versions
    libraries = dict.fromkeys([*first.libraries, *second.libraries])
    return Table(
        title="Code and libraries",
        columns=tuple(texts("What", *names)),
        rows=(
            ("spikein", *("; ".join(one.code) or "not known" for one in origins.versions)),
            *(
                (name, *("; ".join(one.libraries.get(name, (NOTHING,))) for one in (first, second)))
                for name in libraries
            ),
        ),
        caption="What made the artifacts.",
        style="stack listing",
    )


def pooled_table(names: tuple[str, str], metrics: ComparedMetrics) -> Table | None:
    """Return the AUCs over all datasets beside each other; None where there are none."""
    rows = pooled_aucs(metrics.rows)
    if not rows:
        return None
    return Table(
        title="AUC over all datasets",
        columns=(*texts("Detector", "Arm"), *numbers(*names, "Difference on the same rows")),
        rows=tuple((detector_title(row.detector), row.words, *_beside(row)) for row in rows),
        caption="Members with at least one copy; tuned settings where there was a choice. The "
        f"difference is {names[1]} less {names[0]}, on the rows that both scored; bold: its "
        "interval leaves out 0. The AUCs beside it are those of each run, on its own rows.",
        style="stack listing",
    )


def _differing_parts(names: tuple[str, str], origins: Origins) -> list[Part]:
    recipes = Table(
        title="Recipes",
        columns=tuple(texts("Artifact", "Differs in", "Content")),
        rows=tuple(
            (one.name, ", ".join(one.differs) or "not known", _CONTENTS[one.same_content])
            for one in origins.changes
        ),
        style="stack listing",
    )
    return present(
        [Note(f"{note}.", "note loud") for note in origins.notes],
        settings_table(names, origins) or "No setting differs.",
        versions_table(names, origins),
        Table(
            title="Artifacts",
            columns=(*texts("Kind"), *numbers("Shared", *(f"{name} alone" for name in names))),
            rows=tuple(
                (one.kind, str(one.shared), str(one.first_only), str(one.second_only))
                for one in origins.kinds
            ),
            caption="One that is shared was made once, from one recipe.",
        ),
        Fold(f"Artifacts of one label and two recipes: {len(recipes.rows)}", [recipes])
        if origins.changes
        else None,
    )


def _number_parts(names: tuple[str, str], metrics: ComparedMetrics) -> list[Part]:
    rows = metrics.rows[:MAX_ROWS]
    left_out = len(metrics.rows) - len(rows)
    described = ("Detector", "Arm", "Model", "Dataset", "Selection", "Metric")
    every = Table(
        title="All numbers",
        columns=(*texts(*described), *numbers(*names, "Difference on the same rows")),
        rows=tuple(
            (*(getattr(row, part.lower()) for part in described), *_beside(row)) for row in rows
        ),
        caption=f"The first {len(rows)}; {left_out} more are in --json."
        if left_out
        else "Over all copies.",
        style="stack listing",
    )
    unmatched = metrics.unmatched
    return present(
        pooled_table(names, metrics),
        fold_items("Arms that are not compared", unmatched),
        Fold(f"Every number: {len(rows)}", [every]) if rows else None,
    )


def _beside(row: ComparedMetric) -> tuple[Entry, Entry, Entry]:
    """Return a number of either run, and their paired difference."""
    return _of_one(row.first), _of_one(row.second), _paired(row)


def _of_one(cell: Cell | None) -> Entry:
    if cell is None or not isfinite(cell.value):
        return Entry(NOTHING, kind="none")
    setting = () if cell.setting in ("-", "default") else (cell.setting,)
    return AUC.place(cell.value, cell.low, cell.high, *setting)


def _paired(row: ComparedMetric) -> Entry:
    if row.paired is None:
        why = "no shared rows" if row.first and row.second else "in one run only"
        return Entry(why if row.metric == "auc" else NOTHING, kind="none")
    gap = row.paired.difference
    counts = f"{gap.members:,} + {gap.nonmembers:,}, " if gap.available else ""
    return DIFFERENCE.place(gap.value, gap.low, gap.high, counts + gap.about)


def summary(names: tuple[str, str], origins: Origins, metrics: ComparedMetrics) -> list[str]:
    """Return what a reader must know first, in words."""
    shared = sum(one.shared for one in origins.kinds)
    first = sum(one.first_only for one in origins.kinds)
    second = sum(one.second_only for one in origins.kinds)
    settings = len(origins.settings)
    sentences = [
        f"{with_noun(settings, 'setting')} {'differs' if settings == 1 else 'differ'}; {shared} "
        f"artifacts are shared, {first} are of {names[0]} alone and {second} of {names[1]}."
    ]
    if not settings and max(first, second) > 0:
        sentences.append("Data, code or libraries differ, since no setting does.")
    return [*sentences, _numbers(names, pooled_aucs(metrics.rows))]


def _numbers(names: tuple[str, str], rows: Sequence[ComparedMetric]) -> str:
    paired = [row.paired.difference for row in rows if row.paired is not None]
    if not rows:
        return (
            "No arm of one is the only one that matches an arm of the other, so no number is "
            "compared, whatever detectors they share; each arm and why is listed."
        )
    if not any(row.first and row.second for row in rows):
        return "They share no detector, so no number is compared."
    if not paired:
        return (
            "They share no scored rows, so their AUCs stand side by side without a paired "
            "difference: the luck of the draw is in each."
        )
    sure = [one for one in paired if one.low > 0 or one.high < 0]
    higher = len([one for one in sure if one.value > 0])
    return (
        f"On the same rows {len(sure)} of {len(paired)} pooled AUCs differ by more than their "
        f"intervals: {higher} are higher in {names[1]}, {len(sure) - higher} in {names[0]}. Each "
        "interval holds for itself; with many, some leave out 0 by chance."
    )
