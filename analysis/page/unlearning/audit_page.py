"""The page of one audit: what is still written and a picture of it, then every number.

It is drawn from the audit's artifact. A text is shown if it is not protected (its artifact then
lacks it) and hiding was not requested; else its id is shown. The rule's flags come last, before the
facts: they are what the audit judges, not what it concludes.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from math import inf, isfinite, nan
from pathlib import Path

from analysis.findings import Row, read_table
from analysis.intervals.estimate import Estimate
from analysis.page.drawing.elements import round_limits
from analysis.page.drawing.matrix import AxisHeading, Matrix, MatrixAxis
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import (
    Badge,
    Badges,
    Columns,
    Note,
    Part,
    Section,
    VerticalGroup,
    fold,
    present,
    render_page,
)
from analysis.page.table import PROTECTED, Table, TableColumn, listing, numbers, texts, with_noun
from analysis.page.table import Row as Line
from analysis.page.unlearning.tables import NUMBER, SIGNED
from analysis.unit import NOTHING, PERCENT, Dot, Entry, Unit
from analysis.unlearning_audit.audit import AUDIT_FILE, AUDITS, CHUNKS_FILE
from analysis.unlearning_audit.checks import MARGIN, QUESTIONS, UNKNOWN, YES
from analysis.unlearning_audit.evidence import LONGEST, MODELS
from detect.generation.continuations import CONTINUATIONS_FILE
from inject.files import write_text
from inject.tables import read_parquet

Closest = Mapping[str, Row]
"""By model, the continuation of a text with the longest run of true words."""
_LEFT, _RIGHT = 640.0, 500.0
_PICTURED, _OPEN, _MOST = 16, 6, 200
"""Texts in the picture, in the open table, and in both tables."""
_FINE = Unit("", 3)
"""Of the tables of all numbers."""
_SHORT = 34
"""Letters of a text that name it in the picture."""
_WRITTEN = ("remembered_original", "remembered_unlearned")
_RULE = ("flagged", "false_alarms", "missed", "wrong")
_CHECKS = {
    "working": "Working model",
    "knew": "Original knew the texts",
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
    rows = read_table(folder, AUDITS).to_pylist()
    cells = {row["quantity"]: Estimate.of(row) for row in rows}
    chunks = _chunks(folder, hide_texts=hide_texts)
    further = {*cells} - {*_WRITTEN, *_RULE, *QUESTIONS}
    pictures = present(_texts_picture(chunks, record), VerticalGroup(_side_pictures(cells)))
    sections = [
        Section("texts", "Texts", "Texts still generated, one by one",
                _text_tables(chunks, hide_texts=hide_texts)),
        Section("checks", "Checks", "Validity checks",
                present([Note(note) for note in record["notes"]],
                        numbers_table("Checks", rows, record, QUESTIONS))),
        Section("rule", "Rule", "Does the ratio rule detect it?",
                present(_rule_note(cells, record),
                        numbers_table("The ratio rule", rows, record, _RULE),
                        fold(numbers_table("Further numbers", rows, record, further)))),
        Section("audited", "Set-up", "What was audited",
                present(listing("The audit", ("", "About"), [*about.items()]))),
    ]  # fmt: skip
    page = render_page(
        "spikein audit of an unlearned model",
        title,
        _sentences(cells, record, len(chunks)),
        [section for section in sections if section.parts],
        first=[Columns(pictures, "pictures" if len(pictures) > 1 else ""), _badges(record)],
    )
    write_text(path, page)


def _chunks(folder: Path, *, hide_texts: bool) -> list[tuple[Row, Closest]]:
    """Return the audited texts with what was written of them: most written first, then those whose
    score changed least."""
    closest: dict[int, dict[str, Row]] = {}
    # Of equal ones the first, which comes last here.
    written = reversed(read_parquet(folder / CONTINUATIONS_FILE).to_pylist())
    for row in sorted(written, key=lambda row: (row[LONGEST], row["rouge_l"])):
        closest.setdefault(row["chunk"], {})[row["model"]] = row
    hidden = {"prompt": None, "truth": None} if hide_texts else {}
    chunks = [
        ({**row, **hidden}, closest.get(row["chunk"], {}))
        for row in read_parquet(folder / CHUNKS_FILE).to_pylist()
        if row["part"] == "audited"
    ]

    def order(chunk: tuple[Row, Closest]) -> tuple[bool, float, float, int]:
        row, own = chunk
        ratio = row["ratio"]
        changed = max(ratio, 1 / ratio) if ratio and isfinite(ratio) else inf
        words = own["unlearned"][LONGEST] if "unlearned" in own else -1.0
        return not row["remembered"], -words, changed, row["chunk"]

    return sorted(chunks, key=order)


def _sentences(cells: Mapping[str, Estimate], record: Row, chunks: int) -> list[str]:
    """Return the shares that the models still write, and the verdict with its meaning."""
    head, verdict, meaning = record["headline"].rpartition(f"{record['verdict'].capitalize()}: ")
    counted = f"{verdict}{meaning} {with_noun(chunks, 'text')} audited; 95 % intervals."
    shares = [cells[name] for name in _WRITTEN if name in cells and cells[name].available]
    if len(shares) < len(_WRITTEN):
        return [f"{head.strip()} Verdict: {record['verdict']}.", counted]
    original, unlearned = (PERCENT.text(*share[:3]) for share in shares)
    levels = {name: round(level) for name, level in record["levels"].items()}
    other = f", of the original {levels['original']:,}" if len({*levels.values()}) > 1 else ""
    return [
        f"The unlearned model still writes {unlearned} of the texts, the original {original}. "
        f"Verdict: {record['verdict']}.",
        f"Written: {with_noun(levels['unlearned'], 'true word')} in a row is the most "
        f"that the control writes of a text{other} ({record['levels_of']}); a model that writes "
        f"more knows it; one that writes less may still know it. {counted}",
    ]


def _available(cells: Mapping[str, Estimate], labels: Mapping[str, str]) -> dict[str, Estimate]:
    """Return the numbers that have an interval, by their labels."""
    cells = {name: cell for name, cell in cells.items() if cell.available}
    return {label: cells[name] for name, label in labels.items() if name in cells}


def _texts_picture(chunks: Sequence[tuple[Row, Closest]], record: Row) -> Picture | None:
    """Return the longest run of true words that each model writes of each text."""
    visible = [(row, own) for row, own in chunks if "unlearned" in own][:_PICTURED]
    models = _models(visible)
    if not visible:
        return None
    # Without a control, the amount of text written by chance is unknown.
    levels = {name: nan if level is None else level for name, level in record["levels"].items()}
    columns = [
        (
            AxisHeading(model.capitalize(), rule=levels.get(model, levels["unlearned"])),
            [_words_dot(row, model, own[model]) if model in own else None for row, own in visible],
        )
        for model in models
    ]
    words = [own[model][LONGEST] for _, own in visible for model in models if model in own]
    _, high = round_limits([*words, max(levels.values()) + 1], 5, 0.0, 1.0)
    matrix = Matrix(
        rows=[AxisHeading(_name(row)) for row, _ in visible],
        columns=columns,
        axis=MatrixAxis(0.0, high, 0.0, ((0.0, "0"), (high, f"{high:g}"))),
        label=f"Longest run of true words that {len(models)} models write of {len(visible)} texts",
        row_height=20.0,
        phone_columns=3,
    )
    caption = "Best of all samples."
    if record["levels"]["unlearned"] is not None:
        caption += " Dashed: the most that a model's control writes of any text."
    if len(chunks) > len(visible):
        caption += f" The first {len(visible)} of {with_noun(len(chunks), 'text')}, most written."
    title = "True words in a row that each model writes"
    return picture("still-written", title, caption, matrix, _LEFT)


def _words_dot(row: Row, model: str, written: Row) -> Dot:
    words = written[LONGEST]
    hover = f"{_name(row)}: {model} writes {words:g} true words in a row"
    return Dot(words, nan, nan, hover, text=f"{words:g}")


def _models(chunks: Sequence[tuple[Row, Closest]]) -> list[str]:
    """Return the models that wrote something."""
    return [name for name in MODELS if any(name in own for _, own in chunks)]


def _side_pictures(cells: Mapping[str, Estimate]) -> list[Part]:
    """Return the share that each model writes, and the losses that the checks use."""
    names = {name: name.removeprefix("remembered_").capitalize() for name in _WRITTEN}
    shares, losses = (_available(cells, labels) for labels in (names, _DIFFERENCES))
    ends = [end for cell in losses.values() for end in (cell.low, cell.high)]
    low, high = round_limits(ends, 0.1, -2 * MARGIN, 2 * MARGIN)
    share_axis = MatrixAxis(0.0, 1.0, 0.0, ((0.0, "0"), (0.5, "50 %"), (1.0, "100 %")))
    loss_axis = MatrixAxis(low, high, 0.0, ((0.0, "0"),), zone=(-MARGIN, MARGIN))
    return present(
        _rows_picture("shares", "Share of the texts still written", shares, NUMBER, share_axis,
                      "With 95 % intervals; a lower bound on the model's knowledge."),
        _rows_picture("losses", "Loss above its comparison, nats per token", losses, SIGNED,
                      loss_axis,
                      "Other texts, control or retained: minus the best other model; audited ones: "
                      "minus the control. Left of 0: likelier. Shaded: within "
                      f"{MARGIN:g}. Lines: 95 % intervals."),
    )  # fmt: skip


def _rows_picture(
    name: str,
    title: str,
    cells: Mapping[str, Estimate],
    unit: Unit,
    axis: MatrixAxis,
    caption: str,
) -> Picture | None:
    """Return a row per number with its interval; None without any."""
    dots = [unit.dot(label, cell) for label, cell in cells.items()]
    matrix = Matrix(
        rows=[AxisHeading(label) for label in cells],
        columns=[(AxisHeading(""), dots)],
        axis=axis,
        label=f"{title}: " + "; ".join(dot.hover for dot in dots if dot),
        row_height=24.0,
    )
    return picture(name, title, caption, matrix if dots else None, _RIGHT)


def _badges(record: Row) -> Badges:
    """Return a badge per check: its answer."""
    badges = []
    for name, check in record["checks"].items():
        mark = "" if check["answer"] == UNKNOWN else "failed"
        mark = "passed" if check["answer"].startswith(YES) else mark
        badges.append(Badge(_CHECKS.get(name, name), mark, [check["answer"]]))
    return Badges(badges, "checks")


def _rule_note(cells: Mapping[str, Estimate], record: Row) -> Note | None:
    """Return a note on the chunks that the rule flags and on its error rate."""
    words = {
        "flagged": "Classified as not forgotten: a share of {} of the texts",
        "false_alarms": f"of {record['control']}, where nothing was seen, {{}}",
        "missed": "of the texts still written it misses {}",
    }
    texts = {name: NUMBER.brief(cells.get(name)) for name in words}
    sentence = "; ".join(text.format(texts[name]) for name, text in words.items() if texts[name])
    return Note(f"{sentence}.", "say") if texts["flagged"] else None


def numbers_table(
    title: str, rows: Sequence[Row], record: Row, names: Collection[str] | None = None
) -> Table | None:
    """Return a row per number: its name, the number with its interval, and what it is of.

    Args:
        title: of the table.
        rows: of an audit's findings.
        record: of its JSON file.
        names: of the numbers that are shown; None for all.
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
        quantity, number = row["quantity"], _FINE.brief(row)
        if names is not None and quantity not in names:
            continue
        name = quantity.replace("_", " ")
        if (check := checks.get(quantity)) is not None:
            name = check["question"]
            number = ": ".join(filter(None, (check["answer"], number)))
        note = "; ".join(filter(None, (about.get(quantity, ""), row["note"])))
        lines.append((f"{name[0].upper()}{name[1:]}", number, note))
    return listing(title, ("Number", "Found", "About"), lines)


def _text_tables(chunks: Sequence[tuple[Row, Closest]], *, hide_texts: bool) -> list[Part]:
    """Return the table of texts, most written first: some open, the rest folded."""
    models = _models(chunks)
    columns = (
        *texts("Text", "Written"),
        *numbers(*(f"Words, {name}" for name in models)),
        *texts("Flagged"),
        *numbers("Ratio"),
        TableColumn("Beginning | truth, and what is written", long=True),
    )
    rows: list[Line] = [
        (
            f"{row['text_id']}, characters {row['start']:,} to {row['stop']:,}",
            _format_answer(row["remembered"]),
            *(f"{own[name][LONGEST]:g}" if name in own else NOTHING for name in models),
            _format_answer(None if row["ratio"] is None else row["suspicious"]),
            NOTHING if row["ratio"] is None else f"{row['ratio']:.2f}",
            _text_entry(row, own),
        )
        for row, own in chunks[:_MOST]
    ]
    caption = (
        "Written: whether the unlearned model writes a longer run of true words than its "
        "control does of any text. Words: that run, by model. Flagged: by the ratio rule. Ratio: "
        "the unlearned model's score over the original's."
    )
    if len(chunks) > _MOST:
        caption += f" The other {len(chunks) - _MOST:,} texts are in {CHUNKS_FILE}."
    if hide_texts:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    table = Table(title="Text by text", columns=columns, rows=tuple(rows[:_OPEN]), caption=caption)
    further = Table(title="Further texts", columns=columns, rows=tuple(rows[_OPEN:]))
    return present(table, fold(further) if further.rows else None)


def _text_entry(row: Row, own: Closest) -> Entry:
    """Return the beginning and the rest of a text, and the continuations by models."""
    if row["prompt"] is None:
        return Entry(PROTECTED)
    written = (f"{name.capitalize()}: {own[name]['text'] or ''}" for name in MODELS if name in own)
    return Entry(f"{row['prompt']} | {row['truth']}", notes=tuple(written))


def _name(row: Row) -> str:
    """Return the beginning of a text, or its id if the text is not shown."""
    words = " ".join((row["prompt"] or str(row["text_id"])).split())
    return words if len(words) <= _SHORT else f"{words[:_SHORT].rstrip()}…"


def _format_answer(answer: bool | None) -> str:
    return "not judged" if answer is None else "yes" if answer else "no"
