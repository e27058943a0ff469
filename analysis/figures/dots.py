"""Dot plots: the AUC of every detector, what benchmark scores gained, and paired differences."""

from collections.abc import Sequence

from analysis.arm import MODEL_FREE, short_axis
from analysis.factors.comparisons import Comparison
from analysis.figures.captions import (
    cell_columns,
    describe_extremes,
    describe_sample_sizes,
    further_text,
    range_text,
    seeds_text,
)
from analysis.figures.panel import INK, MUTED, PALETTE, Axis, Figure, Panel, Rule, Series
from analysis.metrics_table import Cell, CohortMetrics
from analysis.tables import POOLED
from analysis.task_accuracy.accuracy_gain import AccuracyGainRow, AccuracyGainTable

MAX_DETECTORS = 16
"""More are too many rows for a page, and for its widest names."""
_MAX_ARMS = 12
_MAX_ROWS = 16
_NUDGE = 0.13
"""How far two dots of one row stand from its middle."""


def detectors_figure(tables: Sequence[CohortMetrics], best: CohortMetrics) -> Figure:
    """Return the pooled AUCs: default hollow, tuned filled; sorted by those of the arm `best`."""
    shown = list(tables[:_MAX_ARMS])
    every = ordered_detectors(shown, {name: best.get(name) for name in best.values("detector")})
    names = strongest(every)[::-1]
    marks = [
        {
            **{name: table.get(name, selection="tuned") for name in names},
            # A default setting can stand on other rows than the tuned one.
            **{f"{name} (default)": table.get(name) for name in names},
        }
        for table in shown
    ]
    return Figure(
        name="detectors",
        title="AUC by detector",
        caption="AUC over all members with at least one copy, with 95 % intervals (from "
        "influence values, summed by group). Filled: setting chosen on the tune split; hollow: "
        f"the default. The dashed line is chance. {describe_sample_sizes(marks)}"
        f"{strongest_text(names, every, 'tables have')}"
        f"{further_text(len(tables) - len(shown), 'arms are in the tables')}",
        alternative=f"Dot plot of the AUC of {len(names)} detectors, tuned settings. "
        + " ".join(
            f"{table.cohort.label() or 'The contaminated model'}: "
            f"{describe_extremes({n: cells[n] or cells[f'{n} (default)'] for n in names})}."
            for table, cells in zip(shown, marks, strict=True)
        ),
        panels=[_detector_panel(table, names) for table in shown],
        rows=[
            {"arm": table.cohort.label(), "detector": name, "selection": selection,
             "setting": cell.setting, **cell_columns(cell)}
            for table in tables
            for name in every
            for selection in ("tuned", "default")
            if (cell := table.get(name, selection=selection)) is not None
        ],
        height=0.62 + 0.27 * len(names),
        x="AUC",
        key=[_sample("tuned", PALETTE[0]), _sample("default", PALETTE[1], hollow=True)],
    )  # fmt: skip


def _detector_panel(table: CohortMetrics, names: Sequence[str]) -> Panel:
    series = []
    for selection, nudge, colour in (("tuned", -_NUDGE, 0), ("default", _NUDGE, 1)):
        for blind in (False, True):
            cells = [
                (at + nudge, table.get(name, selection=selection))
                for at, name in enumerate(names)
                if (name in MODEL_FREE) == blind
            ]
            shade = MUTED if blind else PALETTE[colour]
            series.append(_dots(cells, colour=shade, hollow=selection == "default"))
    title = table.cohort.label() or "contaminated"
    return Panel(title=title, series=series, y=Axis(names=names), rules=[Rule(0.5, "x")])


def ordered_detectors(tables: Sequence[CohortMetrics], best: dict[str, Cell | None]) -> list[str]:
    """Return all detectors in rising order of the AUCs `best`, those without a model first."""

    def height(name: str) -> float:
        cell = best.get(name)
        return cell.value if cell is not None and cell.available else -1.0

    names = dict.fromkeys(name for table in tables for name in table.values("detector"))
    return sorted(names, key=lambda name: (name not in MODEL_FREE, height(name)))


def strongest(ordered: Sequence[str]) -> list[str]:
    """Return the detectors that are drawn, of all in rising order: the highest, and `loss`."""
    if len(ordered) <= MAX_DETECTORS:
        return list(ordered)
    drawn = set(ordered[-MAX_DETECTORS:])
    if "loss" in ordered and "loss" not in drawn:
        drawn = {*ordered[1 - MAX_DETECTORS :], "loss"}
    return [name for name in ordered if name in drawn]


def strongest_text(names: Sequence[str], every: Sequence[str], where: str) -> str:
    """Say that not all detectors are drawn, and what has all; empty where all are."""
    if len(names) == len(every):
        return ""
    return f" The strongest of {len(every)} detectors, and loss; the {where} all."


def _sample(label: str, colour: str, *, hollow: bool = False) -> Series:
    return Series(x=(), y=(), label=label, colour=colour, line="solid", mark="o", hollow=hollow,
                  width=1.6)  # fmt: skip


def _dots(
    cells: Sequence[tuple[float, Cell | None]], *, colour: str, hollow: bool = False
) -> Series:
    """Return the cells that have an interval, each at its height."""
    known = [(at, cell) for at, cell in cells if cell is not None and cell.available]
    return Series(
        x=[cell.value for _, cell in known],
        y=[at for at, _ in known],
        low=[cell.low for _, cell in known],
        high=[cell.high for _, cell in known],
        interval="x",
        colour=colour,
        mark="o",
        hollow=hollow,
        width=1.6,
    )


def accuracy_gain_figure(tables: Sequence[AccuracyGainTable]) -> Figure | None:
    """Return the change in accuracy by plain scores; None where there is no base model."""
    rows = [
        row
        for table in tables
        if table.scoring == "plain"
        for row in table.rows
        if any(cell is not None and cell.available for cell in row.changes)
    ]
    if not rows:
        return None
    shown = rows[:_MAX_ROWS]
    cells = [cell for row in shown for cell in row.changes if cell is not None]
    excess, members, others = zip(*(row.changes for row in shown), strict=True)
    sides = [
        _dots([(at - _NUDGE, cell) for at, cell in enumerate(members)], colour=PALETTE[0]),
        _dots([(at + _NUDGE, cell) for at, cell in enumerate(others)], colour=PALETTE[1]),
    ]
    y, zero = Axis(names=[row.arm or "all arms" for row in shown]), [Rule(0, "x")]
    return Figure(
        name="accuracy-gain",
        title="What the benchmark scores gained",
        caption="Share of right answers (plain scores, each dataset counted once), with 95 % "
        "intervals: members and non-members are asked before and after training. What both "
        "sides gain is practice; the excess is what having seen the questions is worth. "
        f"{range_text(cell.n_members for cell in cells if cell.n_members)} members, "
        f"{range_text(cell.n_nonmembers for cell in cells if cell.n_nonmembers)} non-members, "
        f"{seeds_text(cell.n_seeds for cell in cells)}"
        f"{further_text(len(rows) - len(shown), 'arms are in the table')}",
        alternative="Dot plot of the excess of members over non-members in accuracy. "
        + " ".join(_excess_text(row) for row in shown),
        panels=[
            Panel(title="Change after training", series=sides, y=y, rules=zero,
                  x=Axis(label="Accuracy after less accuracy before")),
            Panel(title="Excess of members", y=y, rules=zero,
                  series=[_dots(list(enumerate(excess)), colour=INK)],
                  x=Axis(label="Change of members less change of non-members")),
        ],
        rows=[
            {"arm": row.arm, "dataset": row.dataset, "change": name, **cell_columns(cell)}
            for row in rows
            for name, cell in zip(("excess", "members", "nonmembers"), row.changes, strict=True)
            if cell is not None
        ],
        height=0.8 + 0.42 * len(shown),
        shared="y",
        key=[_sample("members", PALETTE[0]), _sample("non-members", PALETTE[1])],
    )  # fmt: skip


def _excess_text(row: AccuracyGainRow) -> str:
    excess = row.changes[0]
    if excess is None or not excess.available:
        return f"{row.arm or 'All arms'}: no excess."
    return (
        f"{row.arm or 'All arms'}: {excess.value:+.2f} ({excess.low:+.2f} to {excess.high:+.2f})."
    )


def contrasts_figure(comparisons: Sequence[Comparison], detector: str) -> Figure | None:
    """Return the paired differences of one detector, all datasets pooled; None without any."""
    every = [
        one
        for one in comparisons
        if one.dataset == POOLED and one.detector == detector and not one.contrast.reason
    ]
    if not every:
        return None
    shown = every[:_MAX_ROWS]
    rows = [
        {
            "contrast": contrast_label(one),
            "difference": one.contrast.value,
            **{name: getattr(one.contrast, name)
               for name in ("low", "high", "alone_low", "alone_high", "p_value")},
        }
        for one in shown
    ]  # fmt: skip
    series = []
    for at, one in enumerate(shown):
        found = one.contrast
        colour = PALETTE[0] if found.low > 0 or found.high < 0 else MUTED
        for low, high, width, mark in (
            (found.low, found.high, 1.2, ""),
            (found.alone_low, found.alone_high, 3.2, "o"),
        ):
            series.append(Series(x=[found.value], y=[at], low=[low], high=[high], interval="x",
                                 colour=colour, mark=mark, width=width))  # fmt: skip
    return Figure(
        name="contrasts",
        title=f"Paired differences between arms ({detector})",
        caption="Each value of an axis less its first, on the same rows and seeds. Thick: the "
        "95 % interval of one difference for itself; thin: a band that holds all of them at "
        "once, in colour where it leaves out 0. All datasets pooled, members with a copy."
        + further_text(len(every) - len(shown), "differences are in findings.parquet"),
        alternative="Differences of AUC. "
        + "; ".join(
            f"{contrast_label(one)}: {one.contrast.value:+.3f} from {one.contrast.low:+.3f} to "
            f"{one.contrast.high:+.3f}"
            for one in shown
        )
        + ".",
        panels=[Panel(series=series, y=Axis(names=[contrast_label(one) for one in shown]),
                      x=Axis(label="difference of AUC"), rules=[Rule(0, "x")])],
        rows=rows,
        height=0.9 + 0.36 * len(shown),
    )  # fmt: skip


def contrast_label(one: Comparison) -> str:
    """Return what is compared, in words."""
    rest = one.cohort.label()
    what = f"{short_axis(one.axis)} {one.level} − {one.versus}"
    return f"{what} ({rest})" if rest else what
