"""The options of a multiple-choice row, and which of them is the right one.

In rows of one's own, options come as a list of texts, as a list of objects (`[{text, label}]`), as
two lists (`{text: […], label: […]}`) or by letter (`{A: …, B: …}`); the answer as the data's label
of the option (`label`), as a letter, as an index, as its text, or as a list of 0 and 1. If two of
these readings name different options, nothing is guessed: the row is an error that names the
deciding option of the dataset. Letters within the options, as in `(A) text`, are removed, since
templates add letters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from inject.errors import InputError
from inject.examples.template import letter
from inject.keyed import Stream, item_key, words
from inject.settings import Settings

_TEXT, _LABEL = "text", "label"
_FORMS = (
    "a list of texts, a list of objects with `text` (and `label`), "
    "{text: […], label: […]}, or {A: …, B: …}"
)
_WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_BARE = re.compile(r"[(\[]?(\w+)[)\].:]?")


class RowsOptions(Settings):
    """Options of `rows`."""

    answers: Literal["auto", "letter", "index", "text"] = "auto"
    """How the answer names an option: by letter (or the data's label), index or text; `auto` takes
    the one that fits, and rejects a row if two fit different options."""
    first_index: Literal[0, 1] = 0
    """The first index."""
    shuffle_options: bool = False
    """Shuffle the options of each row, by seed and content, for data with the right one first
    (TruthfulQA's `mc1_targets`)."""
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the rows to read, in whole groups, the same for every seed and order; null reads
    all. Others stay in a background with the same file."""
    where: tuple[Annotated[str, Field(pattern=r"^[^=]+=")], ...] = ()
    """Read only rows with all these values, each `PATH=VALUE`, such as `task_id=1`. VALUE is an
    exact text, otherwise JSON: `true`, `false`, `null`, a number (`1` is `1.0`)."""


def choice_fields(options: Sequence[str], gold: int | None) -> Mapping[str, Any]:
    """Return `options`, `answer_letter` and `answer_text`; the answers are empty without gold.

    Args:
        options: the texts of the options, without their letters, in the order shown.
        gold: index of the correct option; None if the row does not give it.
    """
    return {
        "options": list(options),
        "answer_letter": "" if gold is None else letter(gold),
        "answer_text": "" if gold is None else options[gold],
    }


def gold_index(label: str, labels: Sequence[str], *, place: str) -> int | None:
    """Return which label is the gold one; None for an empty one (a test set without answers).

    Raises:
        InputError: a label that the row does not have.
    """
    label = label.strip()
    if not label:
        return None
    if label not in labels:
        raise InputError(
            f"the gold label {label!r} is not one of the row's options.",
            where=place,
            allowed=", ".join(labels),
        )
    return list(labels).index(label)


class _RawOptions(NamedTuple):
    texts: list[str]
    names: list[str]
    """The data's label of each option; empty without labels."""


def read_choice(
    options: Any,
    letters: Any,
    answer: Any,
    settings: RowsOptions,
    *,
    key: str,
    seed: int,
    place: str,
) -> tuple[list[str], int | None, bool]:
    """Return a row's options, the right one, and whether the row gives it by its text.

    Options are without letters, in the order shown; the right one is an index, None if the row does
    not contain it.

    Args:
        options: as the row has them (see the module's first lines).
        letters: the data's labels of the options, a list; None if not mapped.
        answer: as the row has it; None or an empty text: the row does not give it.
        settings: the dataset's options.
        key: distinguishes the row from others, such as its question.
        seed: keys, with `key` and the options, the order if options are shuffled.
        place: file and row, for messages.

    Raises:
        InputError: options of no known form, an answer that names none of them, or two.
    """
    raw = _raw_options(options, place)
    if letters is not None:
        raw = raw._replace(names=_names(letters, len(raw.texts), place))
    positions = [letter(index) for index in range(len(raw.texts))]
    texts = _without_letters(raw.texts, raw.names or positions)
    texts = _without_letters(texts, positions)
    gold, by_text = None, False
    if answer is not None and answer != "":
        gold, by_text = _gold(answer, raw, texts, settings, place)
    if settings.shuffle_options:
        item = item_key("\n".join([key, *texts]))
        option_keys = words(seed, Stream.SHUFFLE_OPTIONS, item, range(len(texts)))
        order = np.argsort(option_keys, kind="stable").tolist()
        texts = [texts[index] for index in order]
        gold = None if gold is None else order.index(gold)
    return texts, gold, by_text


def _raw_options(options: Any, place: str) -> _RawOptions:
    names: Any = None
    if isinstance(options, Mapping) and isinstance(options.get(_TEXT), list | tuple):
        texts, names = options[_TEXT], options.get(_LABEL)
    elif isinstance(options, Mapping) and all(
        isinstance(value, str | int | float) for value in options.values()
    ):
        texts, names = list(options.values()), list(options)
    elif isinstance(options, list | tuple) and any(isinstance(part, Mapping) for part in options):
        texts = [_text_of(option, number, place) for number, option in enumerate(options, start=1)]
        names = [option[_LABEL] for option in options if _LABEL in option] or None
    else:
        texts = options
    if not isinstance(texts, list | tuple) or not texts:
        raise InputError(f"the row's options are {_describe(options)}", where=place, allowed=_FORMS)
    return _RawOptions(
        _texts(texts, place), [] if names is None else _names(names, len(texts), place)
    )


def _text_of(option: Any, number: int, place: str) -> Any:
    if isinstance(option, Mapping) and _TEXT in option:
        return option[_TEXT]
    raise InputError(
        f"option {number} has no {_TEXT!r}; it is {_describe(option)}",
        where=place,
        hint="Name the part with the text: `options: choices.*.NAME`, and "
        "`letters: choices.*.NAME` for what the data calls the option.",
    )


def _describe(value: Any) -> str:
    """Describe a value without its texts."""
    if isinstance(value, Mapping):
        return f"an object with {', '.join(map(str, value)) or 'nothing'}"
    return f"of type {type(value).__name__}" if value else "empty"


def _texts(values: Sequence[Any], place: str) -> list[str]:
    for number, value in enumerate(values, start=1):
        if isinstance(value, Mapping | list | tuple):
            raise InputError(
                f"option {number} is a {type(value).__name__}", where=place, allowed=_FORMS
            )
    return ["" if value is None else str(value).strip() for value in values]


def _names(values: Any, options: int, place: str) -> list[str]:
    if not isinstance(values, list | tuple) or len(values) != options:
        number = len(values) if isinstance(values, list | tuple) else "no list of"
        raise InputError(f"{number} letters for {options} options", where=place)
    names = [str(value).strip() for value in values]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise InputError(f"two options of the row have the label {duplicate!r}", where=place)
    return names


def _without_letters(texts: list[str], names: Sequence[str]) -> list[str]:
    """Remove each option's label from its front if all options have theirs, in one form."""
    if len(texts) < 2:
        return texts
    form = re.match(r"([(\[]?)" + re.escape(names[0]) + r"([)\].:])\s*\S", texts[0], re.IGNORECASE)
    if form is None:
        return texts
    fronts = [
        re.match(
            re.escape(form[1]) + re.escape(name) + re.escape(form[2]) + r"\s*(?=\S)",
            text,
            re.IGNORECASE,
        )
        for name, text in zip(names, texts, strict=True)
    ]
    if not all(fronts):
        return texts
    return [text[front.end() :] for text, front in zip(texts, fronts, strict=True) if front]


def _gold(
    answer: Any, raw: _RawOptions, texts: list[str], settings: RowsOptions, place: str
) -> tuple[int, bool]:
    if isinstance(answer, list | tuple) and answer:
        if len(answer) == len(texts) and all(value in (0, 1) for value in answer):
            return _find_flag(answer, place), False
        answer = answer[0]
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    text = str(answer).strip()
    readings = dict(_readings(text, raw, texts, settings))
    if "label" in readings:
        return readings["label"], False
    indices = set(readings.values())
    if not indices:
        raise _no_option(text, raw, texts, settings, place)
    if len(indices) > 1:
        ways = ", ".join(
            f"by {way} option {letter(index)}" for way, index in sorted(readings.items())
        )
        raise InputError(
            f"the answer {text!r} can be read in several ways: {ways}",
            where=place,
            hint="Set the contaminant's `options.answers` to letter, index or text.",
        )
    return indices.pop(), set(readings) == {"text"}


def _readings(
    text: str, raw: _RawOptions, texts: list[str], settings: RowsOptions
) -> Iterator[tuple[str, int]]:
    """Yield (way, index of the option) for every way in which the answer names an option."""
    bare = _BARE.fullmatch(text)
    if settings.answers in ("auto", "letter"):
        for name in (text, bare[1] if bare else text):
            if name in raw.names:
                yield "label", raw.names.index(name)
                return
        positions = [letter(index) for index in range(len(texts))]
        if not raw.names and bare and bare[1].upper() in positions:
            yield "letter", positions.index(bare[1].upper())
    if settings.answers in ("auto", "index") and _WHOLE_NUMBER.fullmatch(text):
        index = int(text) - settings.first_index
        if 0 <= index < len(texts):
            yield "index", index
    if settings.answers in ("auto", "text"):
        same = [
            index for index, forms in enumerate(zip(texts, raw.texts, strict=True)) if text in forms
        ]
        if len(same) == 1:
            yield "text", same[0]


def _find_flag(flags: Sequence[Any], place: str) -> int:
    right = [index for index, flag in enumerate(flags) if flag]
    if len(right) != 1:
        raise InputError(
            f"the row has {len(right)} right answers",
            where=place,
            allowed="exactly one 1 in the list of 0 and 1",
        )
    return right[0]


def _no_option(
    text: str, raw: _RawOptions, texts: list[str], settings: RowsOptions, place: str
) -> InputError:
    last = len(texts) - 1 + settings.first_index
    names = ", ".join(raw.names or (letter(index) for index in range(len(texts))))
    allowed = {
        "letter": names,
        "index": f"{settings.first_index} to {last}",
        "text": "the text of exactly one option",
    }
    hint = "If the text is free and not an option, map it to a name other than `answer`."
    if _WHOLE_NUMBER.fullmatch(text) and settings.answers in ("auto", "index"):
        problem = f"the answer {text} is out of range: the row has {len(texts)} options"
        if settings.first_index == 0 and int(text) == len(texts):
            hint = "If indices count from 1, set the contaminant's `options.first_index: 1`."
    else:
        # The row may be protected, or long: its text is not repeated.
        description = repr(text) if len(text) <= 12 else f"of {len(text)} characters"
        problem = f"the answer {description} is not one of the row's {len(texts)} options"
    kinds = [settings.answers] if settings.answers != "auto" else list(allowed)
    return InputError(
        problem, where=place, allowed="; ".join(allowed[kind] for kind in kinds), hint=hint
    )
