"""Reads the texts and the questions of an audit, each with its file and row.

A `.txt` file is one text. Rows may bring an `id`, a `group` of texts that belong together, and
`protected` or a canary: such a text is shown nowhere.
"""

from pathlib import Path

from analysis.unlearning_audit.questions import Question
from analysis.unlearning_audit.text_chunks import SourceText
from detect.user_rows.labelled_rows import is_protected
from inject.errors import InputError, did_you_mean
from inject.examples.example import example_id
from inject.reading.row_parsers import PlacedRow
from inject.reading.rows import read_rows

_TEXT_COLUMNS = ("text", "input")
_IDS = ("example_id", "id", "text_id")


def read_texts(
    pattern: str, *, column: str | None = None, what: str = "texts"
) -> tuple[list[SourceText], list[str]]:
    """Read texts from a file, a folder or a glob.

    Args:
        pattern: `.txt`, `.jsonl`, `.csv`, `.parquet` …
        column: of the text; None: `text` or `input`.
        what: for messages.

    Returns:
        The texts, and how many rows were left out: empty or null ones, and repeated ones.

    Raises:
        InputError: nothing there, nothing in it, a row without the column, no text that is not
            empty, or other texts under one id.
    """
    texts: dict[str, SourceText] = {}
    empty: list[str] = []
    repeated: list[str] = []
    unlike: list[str] = []
    for row in read_rows(pattern, what=what):
        text = _value(row, [column] if column else _TEXT_COLUMNS, what)
        if not text.strip():
            empty.append(row.place)
            continue
        own = next((row.values[key] for key in _IDS if row.values.get(key) not in (None, "")), None)
        if own is not None:
            text_id = str(own)
        elif row.place.endswith((".txt:1", ".txt.gz:1", ".txt.zst:1")):
            text_id = Path(row.place).name.partition(".txt")[0]
        else:
            text_id = example_id(text)
        if text_id in texts:
            (repeated if texts[text_id].text == text else unlike).append(row.place)
            continue
        group = row.values.get("group")
        texts[text_id] = SourceText(
            text_id=text_id,
            group=text_id if group in (None, "") else f"group {group}",
            text=text,
            place=row.place,
            protected=is_protected(row.values),
        )
    if unlike:
        raise InputError(
            f"{what}: {len(unlike):,} rows have the id of another text",
            where=unlike[0],
            hint="Give each text an id of its own, or none.",
        )
    if not texts:
        raise InputError(f"{what}: every text is empty ({len(empty):,})", where=pattern)
    left_out = {"empty or null": empty, "there a second time": repeated}
    return list(texts.values()), [
        f"{what}: left out where the text is {why}: {len(places):,} "
        f"{'row' if len(places) == 1 else 'rows'}, the first at {places[0]}"
        for why, places in left_out.items()
        if places
    ]


def read_questions(pattern: str) -> list[Question]:
    """Read rows of `question` and `answer`.

    Raises:
        InputError: nothing there, or a row without one of the two.
    """
    questions = []
    for row in read_rows(pattern, what="questions"):
        question = _value(row, ("question",), "questions")
        answer = _value(row, ("answer",), "questions")
        if not question.strip() or not answer.strip():
            raise InputError("questions: the question or its answer is empty", where=row.place)
        group = row.values.get("group")
        name = row.place if group in (None, "") else f"group {group}"
        questions.append(Question(question.strip(), answer.strip(), name, row.place))
    return questions


def _value(row: PlacedRow, columns: "list[str] | tuple[str, ...]", what: str) -> str:
    name = next((name for name in columns if name in row.values), None)
    if name is None:
        raise InputError(
            f"{what}: the row has no {' or '.join(map(repr, columns))}."
            f"{did_you_mean(columns[0], row.values)}",
            where=row.place,
            allowed=f"one of its columns: {', '.join(row.values)}",
            hint="Name the column of the text with --text-column." if what == "texts" else None,
        )
    value = "" if row.values[name] is None else row.values[name]
    if not isinstance(value, str):
        raise InputError(
            f"{what}: {name!r} holds {type(value).__name__}, not a text", where=row.place
        )
    return value
