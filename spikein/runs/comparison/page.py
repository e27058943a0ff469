"""What a comparison of two runs shows: sentences and tables, for the terminal and for a page.

The page is one self-contained HTML file in the look of a run's report, without any script.
"""

from collections.abc import Mapping
from math import isfinite

from analysis.comparison.metrics import ComparedMetrics
from analysis.findings import Findings, Row
from analysis.intervals.estimate import Estimate
from analysis.page.parts import Fold, Note, Part, Section, fold_items, present, render_page
from analysis.page.table import Table, numbers, texts, with_noun
from analysis.unit import AUC, DIFFERENCE, NOTHING, Entry
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
    """Return the settings that differ; None if all are alike."""
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
    """Return the AUCs over all datasets beside each other; None if there are none."""
    places = metrics.pooled_aucs()
    if not places:
        return None
    return Table(
        title="AUC over all datasets",
        columns=(*texts("Detector", "Arm"), *numbers(*names, "Difference on the same rows")),
        rows=tuple(
            (detector_title(place["detector"]), place["words"], *_beside(metrics.numbers, place))
            for place in places
        ),
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
    every_place = metrics.places()
    places = every_place[:MAX_ROWS]
    left_out = len(every_place) - len(places)
    described = ("Detector", "Arm", "Model", "Dataset", "Selection", "Metric")
    every = Table(
        title="All numbers",
        columns=(*texts(*described), *numbers(*names, "Difference on the same rows")),
        rows=tuple(
            (*(place[part.lower()] for part in described), *_beside(metrics.numbers, place))
            for place in places
        ),
        caption=f"The first {len(places)}; {left_out} more are in --json."
        if left_out
        else "Over all copies.",
        style="stack listing",
    )
    unmatched = metrics.unmatched
    return present(
        pooled_table(names, metrics),
        fold_items("Arms that are not compared", unmatched),
        Fold(f"Every number: {len(places)}", [every]) if places else None,
    )


def _beside(numbers: Findings, place: Mapping[str, str]) -> tuple[Entry, Entry, Entry]:
    """Return a number of either run, and their paired difference."""
    first, second = (numbers.row(run=run, **place) for run in ("first", "second"))
    gap = numbers.get(run="difference", **place)
    if gap is not None:
        return _of_one(first), _of_one(second), _paired(gap)
    why = "no shared rows" if first and second else "in one run only"
    nothing = Entry(why if place["metric"] == "auc" else NOTHING, kind="none")
    return _of_one(first), _of_one(second), nothing


def _of_one(row: Row | None) -> Entry:
    if row is None or not isfinite(row["value"]):
        return Entry(NOTHING, kind="none")
    setting = () if row["setting"] in ("-", "default") else (row["setting"],)
    return AUC.place(row["value"], row["low"], row["high"], *setting)


def _paired(gap: Estimate) -> Entry:
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
    return [*sentences, _numbers(names, metrics)]


def _numbers(names: tuple[str, str], metrics: ComparedMetrics) -> str:
    places, numbers = metrics.pooled_aucs(), metrics.numbers
    paired = [gap for one in places if (gap := numbers.get(run="difference", **one))]
    if not places:
        return (
            "No arm of one is the only one that matches an arm of the other, so no number is "
            "compared, whatever detectors they share; each arm and why is listed."
        )
    if not any(
        numbers.row(run="first", **one) and numbers.row(run="second", **one) for one in places
    ):
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
