"""A detector: its declaration, its result, and two short ways to write one.

A detector names its needs (`detect.evidence.needs`); the union over all requested detectors is met
once. Scores: higher always means 'more likely a member'. A detector that cannot score returns NaN
and a reason.
"""

import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import update_wrapper
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from detect.access import Access
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.needs import Need, every_kind
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT, view_names
from inject.errors import InputError, did_you_mean, unknown_name
from inject.settings import Settings

EMPTY_SELECTION = "empty selection"
OPTION: dict[str, JsonValue] = {"option": True}
"""Marks a number among parameters as an option: shown in a setting's text only if it differs
from the default (`Field(json_schema_extra=OPTION)`)."""
_LONGEST_TITLE = 40
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


class Score(NamedTuple):
    """One score, or NaN and why."""

    value: float
    reason: str | None = None


class NoScores(InputError):
    """A detector's result is not a list of scores; the message quotes nothing from it."""


class Column(NamedTuple):
    """One setting's scores of all examples, and notes on them for people."""

    scores: list[Score]
    notes: tuple[str, ...] = ()


class NoParameters(Settings):
    """The detector has no parameters."""


@dataclass(frozen=True, kw_only=True)
class Detector:
    """A detector: its description, its needs, and its scoring function.

    `score` returns one column for each setting, so a grid costs one pass.
    """

    name: str
    """Its name in settings, tables and `scores.parquet`."""
    title: str = ""
    """Its printed title: `Min-K%++`; empty for its name."""
    summary: str
    """Its measure, in one line."""
    source: str = ""
    """Paper and equation."""
    needs: tuple[Need, ...]
    """Its needs (`detect.evidence.needs`)."""
    further_needs: Callable[[Any], tuple[Need, ...]] | None = None
    """Further needs of one choice of its parameters, such as a number of shots."""
    access: Access = Access.NONE
    """Its access to the target, if it exceeds that of its needs: all token statistics except ids,
    offsets and log-probabilities belong to the full `DISTRIBUTION`."""
    depends_on_rows: bool = False
    """Whether an example's score depends on the other examples (a transductive detector)."""
    assumption: str = ""
    """The assumption under which its scores mean membership; one sentence."""
    aliases: tuple[str, ...] = ()
    """Alternative names."""
    order: int = 100
    """Its rank in tables: small numbers first, equal ones by name."""
    parameters: type[Settings] = NoParameters
    """Its defaults are the paper's."""
    grid: tuple[Settings, ...] = ()
    """The settings to choose from on `tune`."""
    libraries: tuple[str, ...] = ()
    """Dependencies whose versions affect the scores: distributions such as `scikit-learn`, and
    Python's `zlib` and `unicode` (its tables of letters, if words or capitals count)."""
    score: Callable[[Evidence, Sequence[Any]], list[Column]]

    def needs_with(self, parameters: Settings) -> tuple[Need, ...]:
        """Return its needs with a choice of its parameters."""
        further = self.further_needs(parameters) if self.further_needs else ()
        return tuple(dict.fromkeys((*self.needs, *further)))

    def access_with(self, parameters: Settings) -> Access:
        """Return its access level with a choice of its parameters."""
        return max((self.access, *(need.access for need in self.needs_with(parameters))))


Example = Callable[[ExampleEvidence, Sequence[Any]], list[Score]]
Note = Callable[[Evidence, Any], str | None]


def each_example(
    score: Example, note: Note | None = None
) -> Callable[[Evidence, Sequence[Any]], list[Column]]:
    """Return a detector's `score` from one that scores a single example under all settings.

    Empty statistics of the text (`text` view) pass their reason on.
    """

    def score_all(evidence: Evidence, settings: Sequence[Any]) -> list[Column]:
        rows = []
        for example in evidence.examples():
            text = example.statistics.get(TEXT)
            if text is not None and not len(text):
                rows.append([Score(math.nan, text.reason)] * len(settings))
            else:
                scores = score(example, settings)
                if not isinstance(scores, list | tuple) or len(scores) != len(settings):
                    raise TypeError(
                        f"{_describe_result(scores)} returned for {len(settings)} settings of one "
                        "example"
                    )
                rows.append(list(scores))
        columns = []
        for index, setting in enumerate(settings):
            remark = note(evidence, setting) if note else None
            columns.append(Column([row[index] for row in rows], (remark,) if remark else ()))
        return columns

    # `inspect` and error messages find the function that was written for the detector.
    return update_wrapper(score_all, score)


def each_setting(
    score: Callable[[ExampleEvidence, Any], Score], note: Note | None = None
) -> Callable[[Evidence, Sequence[Any]], list[Column]]:
    """Return a detector's `score` from one that scores a single example under one setting."""

    def score_example(example: ExampleEvidence, settings: Sequence[Any]) -> list[Score]:
        return [score(example, setting) for setting in settings]

    return each_example(update_wrapper(score_example, score), note)


def one_score(
    function: Callable[[ExampleEvidence], float | str], note: Note | None = None
) -> Callable[[Evidence, Sequence[Any]], list[Column]]:
    """Return `score` of a detector without parameters; a returned text is a reason."""

    def score(example: ExampleEvidence, settings: Sequence[Any]) -> list[Score]:
        value = function(example)
        if isinstance(value, str):
            return [Score(math.nan, value)] * len(settings)
        if type(value) is not float and exact_number(value) is None:
            description = "nothing" if value is None else f"a value that is {described(value)}"
            raise NoScores(
                f"it returned {description}",
                allowed="a number, or a text that gives the reason for its absence",
            )
        return [Score(value)] * len(settings)

    return each_example(update_wrapper(score, function), note)


def check_detector(detector: Detector, *, place: str) -> None:
    """Refuse a detector that cannot run, before any work is done.

    Raises:
        InputError: a name that an experiment file cannot contain, an unknown need or view,
            parameters without defaults, a grid of something else, or a `score` that is not
            callable.
    """
    if not _NAME.fullmatch(detector.name):
        raise InputError(
            f"{detector.name!r} cannot name a detector",
            where=place,
            allowed="letters, digits, '_', '.', '+' and '-'",
        )
    title: object = detector.title
    if not isinstance(title, str) or not title.isprintable() or len(title) > _LONGEST_TITLE:
        raise InputError(
            f"{detector.name!r} has the title {title!r}",
            where=place,
            allowed=f"one line of at most {_LONGEST_TITLE} characters, such as 'Min-K%++'",
        )
    needs = detector.needs
    if not isinstance(needs, tuple | list):
        raise InputError(f"its needs are a {type(needs).__name__}", where=place, allowed="a tuple")
    for need in needs:
        if not isinstance(need, Need):
            need_text = need.__name__ if isinstance(need, type) else repr(need)
            hint = ""
            if isinstance(need, type) and issubclass(need, Need):
                hint = f"Write {need_text}(), not {need_text}."
            raise InputError(
                f"unknown need: {need_text}.{did_you_mean(need_text, _need_names())}",
                where=place,
                allowed=", ".join(_need_names()),
                hint=hint,
            )
        if isinstance(need, View) and need.name not in view_names():
            problem = f"it needs a view that does not exist: {need.name!r}"
            raise unknown_name(problem, str(need.name), view_names(), where=place)
    try:
        detector.parameters()
    except (TypeError, ValueError) as error:
        raise InputError(
            "its parameters need a default each",
            where=place,
            hint=str(error).partition("\n")[0],
        ) from None
    if not all(isinstance(setting, detector.parameters) for setting in detector.grid):
        raise InputError(
            "its grid has entries that are not its parameters",
            where=place,
            allowed=f"objects of {detector.parameters.__name__}",
        )
    if not callable(detector.score):
        raise InputError("its score is not callable", where=place)


Argument = Literal["statistics", "example"]
"""Argument of a plain function: the token statistics of a text, or all evidence on an example."""

_ARGUMENTS: dict[Argument, tuple[type[Any], tuple[str, ...]]] = {
    "statistics": (TokenStatistics, ("statistics", "stats", "token_statistics")),
    "example": (ExampleEvidence, ("example", "evidence", "example_evidence")),
}
"""The class that an annotation names, and the names of a parameter without annotation."""


def declared_argument(function: Callable[..., Any]) -> Argument | None:
    """Return the argument type that a plain function declares; None if it declares none.

    Its annotation counts first, then the name of its first parameter.
    """
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):
        return None  # Built-in functions have no signature to look at.
    if first is None:
        return None
    annotation = first.annotation
    for argument, (kind, names) in _ARGUMENTS.items():
        if annotation is first.empty:
            if first.name in names:
                return argument
        elif annotation is kind or str(annotation).rpartition(".")[2] == kind.__name__:
            return argument
    return None


def detector_of(
    function: Callable[[Any], float | str],
    name: str,
    *,
    place: str,
    argument: Argument | None = None,
) -> Detector:
    """Return a plain function as a detector.

    It takes the token statistics of one text, or one example's evidence, and returns a float. It
    needs the `text` view and has no parameters; a text that it returns instead of a number is the
    reason for a missing score. As it declares nothing, it may read every column of the token
    statistics, and counts as requiring the full distribution.

    Args:
        function: the function.
        name: the detector's name.
        place: its origin, for messages.
        argument: its argument type; None: the declared one, else one example's evidence.

    Raises:
        InputError: if it does not take one argument.
    """
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise InputError(
            "the function does not take one argument",
            where=place,
            allowed="a function from TokenStatistics or ExampleEvidence to a float",
        ) from None
    except ValueError:
        pass  # Built-in functions have no signature to look at.
    score = one_score(function)
    if (argument or declared_argument(function)) == "statistics":
        score = one_score(
            update_wrapper(lambda example: function(example.statistics[TEXT]), function)
        )
    first = (inspect.getdoc(function) or "").strip().partition("\n")[0]
    return Detector(
        name=name,
        summary=first or "a function without a docstring",
        needs=(View(TEXT),),
        access=Access.DISTRIBUTION,
        score=score,
    )


def exact_number(value: Any) -> float | None:
    """Return a number as the equal float; None if it is not a number, or no float equals it.

    NumPy numbers and tensors without dimensions count; booleans do not.
    """
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if number == value or math.isnan(number) else None


def described(value: Any) -> str:
    """Return a name for a value that is not a number: `a Tensor of shape (3,)`, `nothing`."""
    if value is None:
        return "nothing"
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" + (f" of shape {tuple(shape)}" if shape else "")


def _need_names() -> list[str]:
    return [kind.__name__ for kind in every_kind()]


def _describe_result(result: Any) -> str:
    if result is None:
        return "nothing"
    return f"{len(result)} scores" if isinstance(result, list | tuple) else type(result).__name__


def exact_floor(count: int, share: Fraction) -> int:
    """Return floor(count · share), exactly: 0.29 of 100 is 29."""
    return math.floor(count * share)
