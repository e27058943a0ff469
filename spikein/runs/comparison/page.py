"""The content of a comparison of two runs: sentences and tables, for the terminal and a page.

The page is one self-contained HTML file in the style of a run's report, without any script.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

from analysis.comparison.metrics import ComparedMetrics
from analysis.findings import Findings, Row
from analysis.page.parts import Fold, Note, Part, Section, fold_items, present, render_page
from analysis.page.table import Row as Line
from analysis.page.table import Table, numbers, texts, with_noun
from analysis.unit import AUC, DIFFERENCE, NOTHING, Entry
from detect.registry import detector_title
from spikein.runs.comparison.origins import Origins

MAX_ROWS = 2_000
"""Rows of the long table; `--json` has all."""
_CONTENTS = {True: "the same", False: "differs", None: "not known"}
_GAP = "Difference on the same rows"


def comparison_page(names: tuple[str, str], origins: Origins, metrics: ComparedMetrics) -> str:
    """Return the page as text."""
    parts = sections(names, origins, metrics)
    sentences = summary(names, origins, metrics)
    return render_page("spikein comparison", " and ".join(names), sentences, parts)


def sections(
    names: tuple[str, str], origins: Origins, metrics: ComparedMetrics
) -> tuple[Section, Section]:
    """Return the differences in origin, then the numbers."""
    places = metrics.places()
    long = _numbers_table(names, metrics, places[:MAX_ROWS])
    recipes = _table(
        "Recipes",
        ("Artifact", "Differs in", "Content"),
        [
            (change.name, ", ".join(change.differs) or "not known", _CONTENTS[change.same_content])
            for change in origins.changes
        ],
    )
    differing = present(
        [Note(f"{note}.", "note loud") for note in origins.notes],
        _settings(names, origins),
        _versions(names, origins),
        _artifacts(names, origins),
        Fold(f"Artifacts of one label and two recipes: {len(recipes.rows)}", [recipes])
        if origins.changes
        else None,
    )
    results = present(
        pooled_table(names, metrics),
        fold_items("Arms that are not compared", metrics.unmatched),
        Fold(f"Every number: {len(long.rows)}", [long]) if places else None,
    )
    return (
        Section("differs", "What differs", "What differs", differing),
        Section("numbers", "Results", "Results", results),
    )


def _table(
    title: str, heads: Sequence[str], rows: Sequence[Line], caption: str = "", *, right: int = 0
) -> Table:
    """Return a table whose last columns, as many as `right`, are numbers."""
    words, counted = heads[: len(heads) - right], heads[len(heads) - right :]
    columns = (*texts(*words), *numbers(*counted))
    style = "stack listing"
    return Table(title=title, columns=columns, rows=tuple(rows), caption=caption, style=style)


def _settings(names: tuple[str, str], origins: Origins) -> Table | str:
    rows = [(change.key, change.old, change.new) for change in origins.settings]
    if not rows:
        return "No setting differs."
    return _table("Settings", ("Setting", *names), rows, "Equal settings are not listed.")


def _versions(names: tuple[str, str], origins: Origins) -> Table:
    """Return the versions of code and libraries that made the artifacts."""
    versions_by_run = origins.versions
    libraries = dict.fromkeys(name for artifacts in versions_by_run for name in artifacts.libraries)
    rows = [
        ("spikein", *("; ".join(artifacts.code) or "not known" for artifacts in versions_by_run)),
        *(
            (name, *("; ".join(versions) for versions in both))
            for name in libraries
            if len(
                both := [artifacts.libraries.get(name, (NOTHING,)) for artifacts in versions_by_run]
            )
            and both[0] != both[1]
        ),
    ]
    caption = "They built the artifacts. Libraries of equal versions are not listed."
    return _table("Code and libraries", ("What", *names), rows, caption)


def _artifacts(names: tuple[str, str], origins: Origins) -> list[Part]:
    """Return the number of shared artifacts, and those of another recipe with the same content."""
    equal_content = [change.name for change in origins.changes if change.same_content]
    return [
        Table(
            title="Artifacts",
            columns=(*texts("Kind"), *numbers("Shared", *(f"Only {name}" for name in names))),
            rows=tuple((kind, *map(str, counts)) for kind, *counts in origins.kinds),
            caption="A shared artifact was built once, from one recipe.",
        ),
        *(
            [f"Built from another recipe with the same content: {', '.join(equal_content)}"]
            if equal_content
            else []
        ),
    ]


def pooled_table(names: tuple[str, str], metrics: ComparedMetrics) -> Table | None:
    """Return the AUCs of both runs over all datasets; None if there are none."""
    rows = [
        (detector_title(place["detector"]), place["label"], *_compare(metrics.numbers, place))
        for place in metrics.pooled_aucs()
    ]
    caption = (
        "Members with at least one copy; tuned settings if there was a choice. The "
        f"difference is {names[1]} minus {names[0]}, on the rows that both scored; bold: its "
        "interval excludes 0. The AUCs are those of each run, on its own rows."
    )
    heads = ("Detector", "Arm", *names, _GAP)
    return _table("AUC over all datasets", heads, rows, caption, right=3) if rows else None


def _numbers_table(
    names: tuple[str, str], metrics: ComparedMetrics, places: Sequence[Mapping[str, str]]
) -> Table:
    described = ("Detector", "Arm", "Model", "Dataset", "Selection", "Metric")
    left_out = len(metrics.places()) - len(places)
    caption = f"The first {len(places)}; {left_out} more are in --json."
    rows: list[Line] = [
        (*(place[part.lower()] for part in described), *_compare(metrics.numbers, place))
        for place in places
    ]
    heads = (*described, *names, _GAP)
    return _table("All numbers", heads, rows, caption if left_out else "Over all copies.", right=3)


def _compare(table: Findings, place: Mapping[str, str]) -> tuple[Entry, Entry, Entry]:
    """Return a number of either run, and their paired difference."""
    first, second = (table.row(run=run, **place) for run in ("first", "second"))
    gap = table.get(run="difference", **place)
    if gap is not None:
        counts = f"{gap.members:,} + {gap.nonmembers:,}, " if gap.available else ""
        paired = DIFFERENCE.place(gap.value, gap.low, gap.high, counts + gap.about)
        return _format_number(first), _format_number(second), paired
    why = "no shared rows" if first and second else "in one run only"
    nothing = Entry(why if place["metric"] == "auc" else NOTHING, kind="none")
    return _format_number(first), _format_number(second), nothing


def _format_number(row: Row | None) -> Entry:
    if row is None or not isfinite(row["value"]):
        return Entry(NOTHING, kind="none")
    setting = () if row["setting"] in ("-", "default") else (row["setting"],)
    return AUC.place(row["value"], row["low"], row["high"], *setting)


def summary(names: tuple[str, str], origins: Origins, metrics: ComparedMetrics) -> list[str]:
    """Return the main results as sentences."""
    shared = sum(kind.shared for kind in origins.kinds)
    first = sum(kind.first_only for kind in origins.kinds)
    second = sum(kind.second_only for kind in origins.kinds)
    settings = len(origins.settings)
    sentences = [
        f"{with_noun(settings, 'setting')} {'differs' if settings == 1 else 'differ'}; {shared} "
        f"artifacts are shared, {first} are only in {names[0]} and {second} only in {names[1]}."
    ]
    if not settings and max(first, second) > 0:
        sentences.append("Data, code or libraries differ, since no setting does.")
    return [*sentences, _numbers(names, metrics)]


def _numbers(names: tuple[str, str], metrics: ComparedMetrics) -> str:
    places, table = metrics.pooled_aucs(), metrics.numbers
    paired = [gap for place in places if (gap := table.get(run="difference", **place))]
    if not places:
        return (
            "No arm of one matches exactly one arm of the other, so no number is compared, even "
            "for shared detectors; each arm is listed with the reason."
        )
    if not any(
        table.row(run="first", **place) and table.row(run="second", **place) for place in places
    ):
        return "They share no detector, so no number is compared."
    if not paired:
        return (
            "They share no scored rows, so their AUCs are listed without a paired difference: "
            "each includes the sampling variation of its own draw."
        )
    sure = [place for place in paired if place.low > 0 or place.high < 0]
    higher = len([place for place in sure if place.value > 0])
    return (
        f"On the same rows {len(sure)} of {len(paired)} pooled AUCs differ by more than their "
        f"intervals: {higher} are higher in {names[1]}, {len(sure) - higher} in {names[0]}. Each "
        "interval is valid by itself; among many, some exclude 0 by chance."
    )
