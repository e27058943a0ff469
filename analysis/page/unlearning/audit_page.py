"""The page of one audit: what is still written and a picture of it, then every number.

It is drawn from the audit's artifact. A text is shown where it is not protected (its artifact then
lacks it) and nobody asked to hide it; else its id stands alone. What the rule flags comes last but
the facts: it is what the audit judges, not what it concludes.
"""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from analysis.findings import read_table
from analysis.page.drawing.elements import round_limits
from analysis.page.drawing.matrix import Matrix, MatrixAxis, MatrixColumn, MatrixRow
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import (
    Badge,
    Badges,
    Columns,
    Note,
    Part,
    Section,
    Stacked,
    fold,
    present,
    render_page,
)
from analysis.page.table import PROTECTED, Column, Table, listing, with_noun
from analysis.page.unlearning.tables import NUMBER, SIGNED, number_text
from analysis.unit import NOTHING, PERCENT, Dot, Entry, Unit
from analysis.unlearning.measured import has_interval
from analysis.unlearning_audit.audit import AUDIT_FILE, AUDITS, CHUNKS_FILE
from analysis.unlearning_audit.checks import MARGIN, QUESTIONS, UNKNOWN, YES
from analysis.unlearning_audit.evidence import LONGEST, MODELS
from detect.generation.continuations import CONTINUATIONS_FILE
from inject.files import write_text
from inject.tables import read_parquet

Row = Mapping[str, Any]
_LEFT, _RIGHT = 640.0, 500.0
_PICTURED, _OPEN, _MOST = 16, 6, 200
"""Texts in the picture, in the table that stands open, and in both tables."""
_FINE = Unit("", 3)
"""Of the tables of all numbers."""
_SHORT = 34
"""Letters of a text that name it in the picture."""
_WRITTEN = ("remembered_original", "remembered_unlearned")
_RULE = ("flagged", "false_alarms", "missed", "wrong")
_CHECKS = {
    "working": "Working model",
    "knew": "Original knew them",
    "level": "As likely as the control",
    "weights": "Weights of common origin",
}
_DIFFERENCES = {
    "working": "Unlearned, other texts",
    "knew": "Original, audited texts",
    "level": "Unlearned, audited texts",
}


def write_audit_page(
    path: Path, folder: Path, *, title: str, about: Mapping[str, str], hide_texts: bool = False
) -> None:
    """Write the page of an audit, whole or not at all.

    Args:
        path: of the page.
        folder: of the audit's artifact.
        title: of the page.
        about: what it was found of, such as the models.
        hide_texts: show ids in place of all texts.
    """
    record = json.loads((folder / AUDIT_FILE).read_text(encoding="utf-8"))
    findings = {row["quantity"]: row for row in read_table(folder, AUDITS).to_pylist()}
    closest = _closest(read_parquet(folder / CONTINUATIONS_FILE).to_pylist())
    chunks = [
        row for row in read_parquet(folder / CHUNKS_FILE).to_pylist() if row["part"] == "audited"
    ]
    for chunk in chunks if hide_texts else ():
        chunk["prompt"] = chunk["truth"] = None
    chunks.sort(key=lambda row: _order(row, closest))
    pictures = present(
        _texts_picture(chunks, closest, record), Stacked(_side_pictures(findings, record))
    )
    lead, *more = _sentences(findings, record, len(chunks))
    sections = [
        Section("texts", "Texts", "What is still written, text by text",
                _text_tables(chunks, closest, hide_texts=hide_texts)),
        Section("checks", "Checks", "May I believe it?",
                present([Note(note) for note in record["notes"]],
                        _numbers("Checks", findings, record, QUESTIONS))),
        Section("rule", "Rule", "Does the ratio rule see it?", _rule_parts(findings, record)),
        Section("audited", "Set-up", "What was audited",
                present(listing("The audit", ("", "About"), [*about.items()]))),
    ]  # fmt: skip
    page = render_page(
        "spikein audit of an unlearned model",
        title,
        [lead, *more],
        [section for section in sections if section.parts],
        first=[Columns(pictures, "pictures" if len(pictures) > 1 else ""), _badges(record)],
    )
    write_text(path, page)


def _sentences(findings: Mapping[str, Row], record: Row, chunks: int) -> list[str]:
    """Return what the models still write, and the verdict with its meaning."""
    head, verdict, meaning = record["headline"].rpartition(f"{record['verdict'].capitalize()}: ")
    shares = {name: findings.get(name) for name in _WRITTEN}
    said = {name: _percent(row) for name, row in shares.items() if row is not None}
    if all(said.get(name) for name in _WRITTEN):
        lead = (
            f"The unlearned model still writes {said[_WRITTEN[1]]} of the texts, the original "
            f"{said[_WRITTEN[0]]}. Verdict: {record['verdict']}."
        )
        levels = {name: round(level) for name, level in record["levels"].items()}
        original = f", of the original {levels['original']:,}"
        scale = (
            f"Written: {with_noun(levels['unlearned'], 'true word')} in a row is the most that the "
            f"control writes of a text{original if len({*levels.values()}) > 1 else ''} "
            f"({record['levels_of']}); a model that writes more knows it, one that writes less may "
            "know it all the same. "
        )
    else:
        lead, scale = f"{head.strip()} Verdict: {record['verdict']}.", ""
    counted = f"{with_noun(chunks, 'text')} audited; 95 % intervals."
    return [lead, f"{scale}{verdict}{meaning} {counted}"]


def _percent(row: Row) -> str:
    """Return a share in percent with its interval; empty without one."""
    if not has_interval(row):
        return ""
    return f"{PERCENT.number(row['value'])} % {PERCENT.ends(row['low'], row['high'])}"


def _texts_picture(
    chunks: Sequence[Row], closest: Mapping[tuple[int, str], Row], record: Row
) -> Picture | None:
    """Return the longest run of true words that each model writes of each text."""
    shown = [row for row in chunks if (row["chunk"], "unlearned") in closest][:_PICTURED]
    models = [name for name in MODELS if any((row["chunk"], name) in closest for row in shown)]
    if not shown:
        return None
    # Without a control nothing says how much chance writes.
    none = float("nan")
    levels = {name: none if level is None else level for name, level in record["levels"].items()}
    columns = []
    for model in models:
        dots = []
        for row in shown:
            runs = closest.get((row["chunk"], model))
            words = runs[LONGEST] if runs else float("nan")
            hover = f"{_name(row)}: {model} writes {words:g} true words in a row"
            dots.append(Dot(words, none, none, hover, text=f"{words:g}") if runs else None)
        columns.append(
            MatrixColumn(model.capitalize(), dots, rule=levels.get(model, levels["unlearned"]))
        )
    values = [dot.value for column in columns for dot in column.dots if isinstance(dot, Dot)]
    _, high = round_limits([*values, max(levels.values()) + 1], 5, 0.0, 1.0)
    matrix = Matrix(
        rows=[MatrixRow(_name(row)) for row in shown],
        columns=columns,
        axis=MatrixAxis(0.0, high, 0.0, ((0.0, "0"), (high, f"{high:g}"))),
        label=f"Longest run of true words that {len(models)} models write of {len(shown)} texts",
        row_height=20.0,
        phone_columns=3,
    )
    caption = "Best of all samples."
    if record["levels"]["unlearned"] is not None:
        caption += " Dashed: the most that a model's control writes of any text."
    if len(chunks) > len(shown):
        caption += f" The first {len(shown)} of {with_noun(len(chunks), 'text')}, most written."
    title = "True words in a row that each model writes"
    return picture("still-written", title, caption, matrix, _LEFT)


def _side_pictures(findings: Mapping[str, Row], record: Row) -> list[Part]:
    """Return the share that each model writes, and the losses behind the checks."""
    shares = {
        name.removeprefix("remembered_").capitalize(): findings[name]
        for name in _WRITTEN
        if name in findings and _percent(findings[name])
    }
    losses = {
        label: findings[name]
        for name, label in _DIFFERENCES.items()
        if name in findings and isfinite(findings[name]["low"])
    }
    ends = [row[end] for row in losses.values() for end in ("low", "high")]
    low, high = round_limits(ends, 0.1, -2 * MARGIN, 2 * MARGIN)
    share_axis = MatrixAxis(0.0, 1.0, 0.0, ((0.0, "0"), (0.5, "50 %"), (1.0, "100 %")))
    loss_axis = MatrixAxis(low, high, 0.0, ((0.0, "0"),), zone=(-MARGIN, MARGIN))
    pictures = (
        _rows_picture("shares", "Share of the texts still written", shares, share_axis,
                      "With 95 % intervals; a lower bound of what a model knows."),
        _rows_picture("losses", "Loss above its comparison, nats a token", losses, loss_axis,
                      "Other texts, control or retained: minus the best other model; audited ones: "
                      "minus the control. Left of 0: likelier. Shaded: within "
                      f"{MARGIN:g}. Lines: 95 % intervals."),
    )  # fmt: skip
    return present(*pictures)


def _rows_picture(
    name: str, title: str, rows: Mapping[str, Row], axis: MatrixAxis, caption: str
) -> Picture | None:
    """Return a row a number with its interval; None without any."""
    if not rows:
        return None
    dots, unit = [], SIGNED if axis.low < 0 else NUMBER
    for label, row in rows.items():
        value, low, high = (row[end] for end in ("value", "low", "high"))
        hover = f"{label}: {number_text(row, unit)}"
        dots.append(Dot(value, low, high, hover, text=unit.number(value)))
    matrix = Matrix(
        rows=[MatrixRow(label) for label in rows],
        columns=[MatrixColumn("", dots)],
        axis=axis,
        label=f"{title}: " + "; ".join(dot.hover for dot in dots),
        row_height=24.0,
    )
    return picture(name, title, caption, matrix, _RIGHT)


def _badges(record: Row) -> Badges:
    """Return a badge a check: its answer."""
    return Badges(
        [
            Badge(
                _CHECKS.get(name, name),
                "passed" if check["answer"].startswith(YES)
                else "" if check["answer"] == UNKNOWN else "failed",
                [check["answer"]],
            )
            for name, check in record["checks"].items()
        ],
        "checks",
    )  # fmt: skip


def _rule_parts(findings: Mapping[str, Row], record: Row) -> list[Part]:
    """Return what the rule flags, and how often it is wrong."""
    words = {
        "flagged": "Taken for not forgotten: a share of {} of the texts",
        "false_alarms": f"of {record['control']}, where nothing was seen, {{}}",
        "missed": "of what is still written it misses {}",
    }
    numbers = {name: number_text(findings.get(name)) for name in words}
    said = "; ".join(text.format(numbers[name]) for name, text in words.items() if numbers[name])
    rest = [name for name in findings if name not in (*_WRITTEN, *_RULE, *QUESTIONS)]
    further = _numbers("Further numbers", findings, record, rest)
    return present(
        Note(f"{said}.", "say") if numbers["flagged"] else None,
        _numbers("The ratio rule", findings, record, _RULE),
        fold(further) if further else None,
    )


def _numbers(
    title: str, findings: Mapping[str, Row], record: Row, names: Sequence[str] | Mapping[str, str]
) -> Table | None:
    """Return the table of some of the findings."""
    rows = [findings[name] for name in names if name in findings]
    return listing(title, ("Number", "Found", "About"), finding_lines(rows, record))


def finding_lines(
    rows: Sequence[Mapping[str, Any]], record: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    """Return a line a number: its name, the number with its interval, and of what it speaks.

    Args:
        rows: of an audit's findings.
        record: of its JSON file.
    """
    checks: Mapping[str, Mapping[str, str]] = record["checks"]
    low, high = record["settings"]["audit"]["band"]
    about = {
        "flagged": f"{low:.3f} < r < {high:.3f}",
        "false_alarms": f"on {record['control']}",
        **{name: check["about"] for name, check in checks.items()},
    }
    lines = []
    for row in rows:
        quantity, number = row["quantity"], number_text(row, _FINE)
        name = quantity.replace("_", " ")
        if (check := checks.get(quantity)) is not None:
            name = check["question"]
            number = ": ".join(filter(None, (check["answer"], number)))
        said = "; ".join(filter(None, (about.get(quantity, ""), row["note"])))
        lines.append((f"{name[0].upper()}{name[1:]}", number, said))
    return lines


def _closest(continuations: Sequence[Row]) -> dict[tuple[int, str], Row]:
    """Return of each chunk and model the continuation with the longest run of true words."""
    # Of equal ones the first, which comes last here.
    backwards = [*reversed(continuations)]
    ordered = sorted(backwards, key=lambda row: (row[LONGEST], row["rouge_l"]))
    return {(row["chunk"], row["model"]): row for row in ordered}


def _text_tables(
    chunks: Sequence[Row], closest: Mapping[tuple[int, str], Row], *, hide_texts: bool
) -> list[Part]:
    """Return the table of texts, most written first: some open, the rest folded."""
    models = [name for name in MODELS if any((row["chunk"], name) in closest for row in chunks)]
    columns = (
        Column("Text"),
        Column("Written"),
        *(Column(f"Words, {name}", right=True) for name in models),
        Column("Flagged"),
        Column("Ratio", right=True),
        *([] if hide_texts else [Column("Beginning | truth, and what is written", long=True)]),
    )
    rows: list[tuple[str | Entry, ...]] = []
    for row in chunks[:_MOST]:
        own = {name: closest[key] for name in models if (key := (row["chunk"], name)) in closest}
        written = [f"{name.capitalize()}: {one['text'] or ''}" for name, one in own.items()]
        text = f"{row['prompt']} | {row['truth']}" if row["prompt"] is not None else PROTECTED
        rows.append(
            (
                f"{row['text_id']}, characters {row['start']:,} to {row['stop']:,}",
                _judged(row["remembered"]),
                *(
                    f"{own[name]['longest_common_substring']:g}" if name in own else NOTHING
                    for name in models
                ),
                _judged(None if row["ratio"] is None else row["suspicious"]),
                NOTHING if row["ratio"] is None else f"{row['ratio']:.2f}",
                *(
                    []
                    if hide_texts
                    else [Entry(text, notes=tuple(written) if row["prompt"] is not None else ())]
                ),
            )
        )
    caption = (
        "Written: whether the unlearned model writes a longer run of true words than its "
        "control does of any text. Words: that run, by model. Flagged: by the ratio rule. Ratio: "
        "the unlearned model's score over the original's."
    )
    if len(chunks) > _MOST:
        caption += f" The other {len(chunks) - _MOST:,} texts are in {CHUNKS_FILE}."
    table = Table(title="Text by text", columns=columns, rows=tuple(rows[:_OPEN]), caption=caption)
    if len(rows) <= _OPEN:
        return [table]
    further = Table(title="Further texts", columns=columns, rows=tuple(rows[_OPEN:]))
    return [table, fold(further)]


def _order(row: Row, closest: Mapping[tuple[int, str], Row]) -> tuple[bool, float, float, int]:
    """Sort by what is written, then by how little the score changed."""
    own = closest.get((row["chunk"], "unlearned"))
    ratio = row["ratio"]
    changed = max(ratio, 1 / ratio) if ratio and isfinite(ratio) else float("inf")
    words = own[LONGEST] if own else -1.0
    return not row["remembered"], -words, changed, row["chunk"]


def _name(row: Row) -> str:
    """Return how a text begins, or its id where the text is not shown."""
    words = " ".join((row["prompt"] or str(row["text_id"])).split())
    return words if len(words) <= _SHORT else f"{words[:_SHORT].rstrip()}…"


def _judged(answer: bool | None) -> str:
    return "not judged" if answer is None else "yes" if answer else "no"
