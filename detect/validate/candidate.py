"""The detectors that are to be judged: given as `FILE.py:NAME`, as a function, or as a `Detector`.

What a plain function takes is told by the annotation of its parameter (`TokenStatistics` or
`ExampleEvidence`), else by the parameter's name (`statistics`, `stats`; `example`, `evidence`),
else by trial: whichever of the two it returns a number or a text for, token statistics first.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from detect.detector import (
    Argument,
    Detector,
    check_detector,
    declared_argument,
    described,
    detector_of,
    exact_number,
)
from detect.detector_settings import DetectorSetting, parse_detectors, with_grids
from detect.evidence import Evidence, ExampleEvidence
from detect.guarded_call import in_words
from detect.registry import KnownDetector
from detect.views import TEXT
from inject.errors import InputError

Given = str | Detector | Callable[[Any], float | str]
"""How a detector is given."""

_TRIED = 5


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A detector that is to be judged."""

    given: str
    """As it was given."""
    name: str
    """In tables."""
    settings: tuple[DetectorSetting, ...]
    """What was asked for first, then the rest of its grid."""
    takes: str
    """What it takes, and how that is known; one line."""

    @property
    def detector(self) -> Detector:
        """The detector."""
        return self.settings[0].detector

    @property
    def default(self) -> str:
        """The setting that was asked for, in the words of the scores."""
        return self.settings[0].text


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A detector that could not be judged."""

    given: str
    name: str
    kind: Literal["loading", "needs", "failed", "too slow"]
    problem: str
    """What happened and where, as a person reads it."""


def load_candidate(
    given: Given, evidence: Evidence, *, taken: Iterable[str], protected: bool = True
) -> Candidate:
    """Load a detector.

    Args:
        given: `FILE.py:NAME`, with parameters behind further colons; or an object.
        evidence: what a function is tried on where it does not say what it takes.
        taken: names of the stored detectors; a detector of the same name is told apart.
        protected: the evidence may hold a protected text (see `detect.guarded_call`).

    Raises:
        InputError: it cannot be loaded, or takes neither of the two.
    """
    text = given if isinstance(given, str) else _object_name(given)
    settings = parse_detectors(given) if isinstance(given, str) else [_of_object(given, text)]
    if len({one.name for one in settings}) > 1:
        raise InputError("names several detectors", where=text, hint="Give them one by one.")
    function = settings[0].known.function
    takes = "a Detector"
    if function is not None:
        declared = declared_argument(function)
        argument = declared or _by_trial(function, evidence, text, protected)
        what = {"statistics": "token statistics", "example": "one example's evidence"}[argument]
        takes = f"a function of {what} ({'as it says' if declared else 'found by trial'})"
        if declared is None:
            detector = detector_of(function, settings[0].name, where=text, argument=argument)
            settings = [
                replace(one, known=replace(one.known, detector=detector)) for one in settings
            ]
    name = settings[0].name
    names = set(taken)
    shown = name
    while shown in names:
        shown = f"{shown} (yours)"
    return Candidate(given=text, name=shown, settings=tuple(with_grids(settings)), takes=takes)


def _of_object(given: Detector | Callable[[Any], Any], text: str) -> DetectorSetting:
    where = f"the detector {text}"
    if isinstance(given, Detector):
        known = KnownDetector(detector=given, origin="given in Python", code=())
    elif callable(given) and not isinstance(given, type):
        known = KnownDetector(
            detector=detector_of(given, text, where=where),
            origin="given in Python",
            code=(),
            function=given,
        )
    else:
        raise InputError(
            f"is a {type(given).__name__}",
            where=where,
            allowed="FILE.py:NAME, a function, or a Detector",
        )
    check_detector(known.detector, where=where)
    return DetectorSetting(known=known, parameters=known.detector.parameters())


def _object_name(given: Any) -> str:
    if isinstance(given, Detector):
        return given.name
    name = str(getattr(given, "__name__", "")) or type(given).__name__
    return name.replace("<lambda>", "lambda")


def _by_trial(
    function: Callable[..., Any], evidence: Evidence, where: str, protected: bool
) -> Argument:
    """Return what a function takes: that for which it returns a number or a text."""
    problems = []
    order: tuple[Argument, ...] = ("statistics", "example")
    examples = [one for one in _first_examples(evidence) if len(one.statistics[TEXT])]
    for argument in order:
        tried = []
        for one in examples:
            try:
                value = function(one.statistics[TEXT] if argument == "statistics" else one)
            except Exception as error:
                tried.append(in_words(error, protected=protected))
                continue
            # One row that it fails on is a missing score, not another kind of function.
            if isinstance(value, str) or exact_number(value) is not None:
                return argument
            tried.append(f"it returns {described(value)}")
        problems.append(f"{argument}: {tried[0] if tried else 'no row has a text'}")
    raise InputError(
        "it takes neither token statistics nor one example's evidence; " + "; ".join(problems),
        where=where,
        hint="Annotate its parameter: spikein.TokenStatistics or spikein.ExampleEvidence.",
    )


def _first_examples(evidence: Evidence) -> Sequence[ExampleEvidence]:
    rows = [row for row, one in enumerate(evidence.statistics[TEXT]) if len(one)][:_TRIED]
    return list(evidence.take(rows).examples())
