"""The leaderboard page, and the sections that a terminal also shows."""

from pathlib import Path

from analysis.findings import Findings, Row
from analysis.intervals.estimate import Estimate
from analysis.leaderboard.standings import ALL, HELD_OUT, PUBLIC
from analysis.page.crossed import AxisHeading, Crossed, cross
from analysis.page.drawing.picture import picture
from analysis.page.parts import Items, Part, Section, present, render_page
from analysis.page.table import Table, TableColumn, numbers, texts, with_noun
from analysis.unit import ABSENT, AUC, NOTHING, Entry
from detect.ground_truth.ground_truth import GroundTruth
from inject.files import write_text

_TITLES = {PUBLIC: "Public models", HELD_OUT: "Held-out models"}


def write_page(path: Path, findings: Findings, truth: GroundTruth) -> Path:
    """Write the page to a file, whole or not at all; return its path."""
    crossed = _crossed(findings, whole=True)
    caption = "Mean AUC over models, with 95 % intervals, which apply to these models."
    drawing = picture("standings", "AUC by submission", caption, crossed.matrix(), 900.0)
    page = render_page(
        "spikein leaderboard",
        truth.name,
        sentences(findings, truth),
        sections(findings),
        first=present(drawing),
    )
    write_text(path, page)
    return path


def sentences(findings: Findings, truth: GroundTruth) -> list[str]:
    """Return who may be best, then the basis of the ranks."""
    ranked = findings.where(kind="rank").rows
    best = [row["detector"] for row in ranked if row["best_rank"] == 1]
    basis = f"Content of the benchmark: {truth.content}."
    if not ranked:
        return ["No submission was accepted.", basis]
    first = ranked[0]
    leader = f"{best[0]} is best" if len(best) == 1 else f"{', '.join(best)} are tied for rank 1"
    unlike = "; ranks by the held-out models require their labels"
    return [
        f"{leader}, by {AUC.text(*Estimate.of(first)[:3])} of the first on "
        f"{with_noun(first['n_models'], f'{first['models']} model')}.",
        f"{first['n_members']:,} members and {first['n_nonmembers']:,} non-members under each model"
        f"{unlike if first['models'] == PUBLIC else ''}. {basis}",
    ]


def sections(findings: Findings) -> list[Section]:
    """Return the sections that have something to show."""
    rejected = [f"{row['detector']}: {row['reason']}." for row in findings.where(kind="rejected").rows]
    parts: list[Part] = [
        table
        for group in (HELD_OUT, PUBLIC)
        for table in _crossed(findings, group).tables(
            _TITLES[group], "Detector", "AUC, mean over the models with each value, and each arm."
        )
    ]
    every = (
        Section("ranks", "Ranks", "Ranks", present(_table(findings))),
        Section("parts", "By size and dose", "By size and dose", parts),
        Section("rejected", "Rejected", "Rejected", [Items(rejected)] if rejected else []),
    )
    return [section for section in every if section.parts]


def _table(findings: Findings) -> Table | None:
    ranked = findings.where(kind="rank").rows
    if not ranked:
        return None
    return Table(
        title="Ranks",
        columns=(*texts("Detector"), *numbers("Rank", "Held-out AUC", "Public AUC", "ms per text"),
                 TableColumn("Found wrong", long=True)),
        rows=tuple(
            (
                Entry(row["detector"], notes=tuple(filter(None, (_setting(row), row["author"])))),
                _rank(row),
                *(_auc(findings, row, group) for group in (HELD_OUT, PUBLIC)),
                f"{row['seconds']:.2g}",
                row["wrong"] or NOTHING,
            )
            for row in ranked
        ),
        caption="Rank 2–4: one other submission is better and none below rank 4 can be told better, "
        "by paired differences that hold together with 95 % (Bonferroni). Submissions with the same "
        "first number are tied. A public AUC well above the held-out one shows overfitting to the "
        "public labels. Found wrong: by the checks of `spikein validate`.",
    )  # fmt: skip


def _setting(row: Row) -> str:
    return "" if row["setting"] == "-" else row["setting"]


def _rank(row: Row) -> str:
    return "–".join(dict.fromkeys((str(row["best_rank"]), str(row["worst_rank"]))))


def _auc(findings: Findings, row: Row, group: str) -> Entry:
    own = findings.where(detector=row["detector"], models=group, part=ALL).rows
    return AUC.entry(own[0], best=row["best_rank"] == 1) if own else ABSENT


def _crossed(findings: Findings, group: str = "", *, whole: bool = False) -> Crossed:
    """Return AUCs by submission and part of the models, or by group of models."""
    rows = [
        row
        for row in findings.rows
        if row["kind"] != "rejected" and (row["part"] == ALL) == whole and row["models"] == (group or row["models"])
    ]
    best = {row["detector"] for row in findings.rows if row["best_rank"] == 1}
    return cross(
        rows,
        lambda row: AxisHeading(row["detector"], "chosen" if row["detector"] in best else ""),
        lambda row: AxisHeading(_TITLES[row["models"]] if whole else row["part"]),
        unit=AUC,
        cell=lambda row: row if Estimate.of(row).available else AUC.brief(row),
    )
