"""The leaderboard page, and the sections that a terminal also shows."""

from pathlib import Path

from analysis.findings import Findings, Row
from analysis.intervals.estimate import Estimate
from analysis.leaderboard.standings import ALL, HELD_OUT, PUBLIC
from analysis.page.crossed import AxisHeading, Crossed, cross
from analysis.page.drawing.picture import picture
from analysis.page.parts import Items, Section, present, render_page
from analysis.page.table import Table, TableColumn, numbers, texts, with_noun
from analysis.unit import AUC, NOTHING, Entry
from detect.ground_truth.ground_truth import GroundTruth
from inject.files import write_text

_RANKS = (
    "A rank such as 2–4: one submission is better than this one, and those from rank 5 on are "
    "worse, by paired differences that hold together with 95 % (Bonferroni). Submissions with the "
    "same first number are tied. A public AUC well above the held-out one shows overfitting to the "
    "public labels. Time and what spikein validate found wrong are declared by the submitter."
)


def write_page(path: Path, findings: Findings, truth: GroundTruth) -> Path:
    """Write the page to a file, whole or not at all; return its path."""
    caption = (
        "Mean AUC over models, with 95 % intervals, which apply to these models; from three seeds "
        "on, to any."
    )
    matrix = _crossed(findings, whole=True).matrix()
    page = render_page(
        "spikein leaderboard",
        truth.name,
        sentences(findings, truth),
        sections(findings),
        first=present(picture("standings", "AUC by submission", caption, matrix, 900.0)),
    )
    write_text(path, page)
    return path


def sentences(findings: Findings, truth: GroundTruth) -> list[str]:
    """Return who may be best, the basis of the ranks, and whether they are only self-reported."""
    content = f"Content of the benchmark: {truth.content}."
    ranked = findings.where(kind="rank").rows
    if not ranked:
        return ["No submission was accepted.", content]
    first = ranked[0]
    best = [_name(row) for row in ranked if row["best_rank"] == 1]
    leader = f"{best[0]} is best" if len(best) == 1 else f"{', '.join(best)} are tied for rank 1"
    models = with_noun(first["n_models"], f"{first['models']} model")
    note = "Every submitter knows the labels of the public models: these ranks are self-reported."
    return [
        f"{leader}; the first has {AUC.text(*Estimate.of(first)[:3])} on {models}.",
        f"At least {first['n_members']:,} members and {first['n_nonmembers']:,} non-members under "
        f"each model; ranks are those on the {first['models']} models. {content}",
        *([note] if first["models"] == PUBLIC else []),
    ]


def sections(findings: Findings) -> list[Section]:
    """Return the sections that have something to show."""
    rejected = findings.where(kind="rejected").rows
    reasons = Items([f"{_name(row)}: {row['reason']}." for row in rejected])
    caption = "Mean over the models with each value, and each arm."
    parts = _crossed(findings, whole=False).tables("AUC by models", "Detector", caption)
    all_sections = (
        Section("ranks", "Ranks", "Ranks", [_rank_table(findings)]),
        Section("parts", "By size and dose", "By size and dose", parts),
        Section("rejected", "Rejected", "Rejected", [reasons] if rejected else []),
    )
    return [section for section in all_sections if section.parts]


def _name(row: Row) -> str:
    return f"{row['detector']} {row['setting'] or ''}".strip()


def _rank_table(findings: Findings) -> Table:
    aucs = numbers("Rank", "Held-out AUC", "Public AUC", "ms per text")
    return Table(
        title="Ranks",
        columns=(*texts("Detector"), *aucs, TableColumn("Found wrong", long=True)),
        rows=tuple(
            (
                Entry(row["detector"], notes=tuple(filter(None, (row["setting"], row["author"])))),
                "–".join(dict.fromkeys((str(row["best_rank"]), str(row["worst_rank"])))),
                *(_auc(findings, row, models) for models in (HELD_OUT, PUBLIC)),
                f"{row['seconds']:.2g}",
                row["wrong"] or NOTHING,
            )
            for row in findings.where(kind="rank").rows
        ),
        caption=_RANKS,
    )


def _auc(findings: Findings, row: Row, models: str) -> Entry:
    place = {"detector": row["detector"], "setting": row["setting"]}
    own = findings.where(**place, models=models, part=ALL).rows
    return AUC.entry(own[0] if own else None, best=row["best_rank"] == 1)


def _crossed(findings: Findings, *, whole: bool) -> Crossed:
    """Return AUCs by submission and group of models, all of them or the parts."""
    rows = [row for row in findings.rows if row["part"] and (row["part"] == ALL) == whole]
    return cross(
        rows,
        lambda row: AxisHeading(_name(row), "chosen" if row["best_rank"] == 1 else ""),
        lambda row: AxisHeading(row["models"] if whole else f"{row['models']}, {row['part']}"),
        unit=AUC,
        cell=lambda row: row if Estimate.of(row).available else AUC.brief(row),
    )
