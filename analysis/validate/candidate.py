"""The detectors that are to be judged (`FILE.py:NAME`, a function, a `Detector`) and their scores.

The argument of a plain function is determined by the annotation of its parameter (`TokenStatistics`
or `ExampleEvidence`), else by the parameter's name (`statistics`, `stats`; `example`, `evidence`),
else by trial: whichever of the two it returns a number or a text for, token statistics first.

Where it fails on rows whose texts a bundle does not hold, it is run only on the others, and
these get a reason. The time limit applies to 1,000 rows: the first rows are timed (after a few that
warm up), and what would take longer than the limit is not started.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

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
from detect.evidence import Evidence
from detect.evidence.needs import Need
from detect.ground_truth.ground_truth import ScoredModel, readable
from detect.guarded_call import GuardedScores, safe_message, score_guarded
from detect.registry import KnownDetector
from detect.token_statistics import EMPTY_TEXT
from detect.views import TEXT
from inject.errors import InputError

Floats = npt.NDArray[np.float64]
Given = str | Detector | Callable[[Any], float | str]
"""How a detector is given."""

TIME_LIMIT = 60.0
"""Seconds for 1,000 rows."""
WITHHELD = "the text is protected, and not in the bundle"
_TRIED = 5
_WARM_UP = 3
_TIMED = 20


class TooSlow(InputError):
    """A detector takes longer than the limit."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A detector that could not be judged."""

    given: str
    name: str
    kind: Literal["loading", "needs", "failed", "too slow"]
    problem: str
    """The problem and its location, for people."""


class CandidateScores(NamedTuple):
    """Scores of one detector on the rows of one model."""

    settings: Sequence[DetectorSetting]
    values: Floats
    """[rows, settings]."""
    reasons: dict[tuple[int, int], str]
    """Why a score is NaN, by row and setting."""
    notes: tuple[str, ...]
    seconds: float
    """The duration of scoring."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A detector that is to be judged."""

    given: str
    """As it was given."""
    name: str
    """In tables."""
    settings: tuple[DetectorSetting, ...]
    """The requested setting first, then the rest of its grid."""
    takes: str
    """Its argument, and how that was determined; one line."""

    @property
    def detector(self) -> Detector:
        """The detector."""
        return self.settings[0].detector

    @property
    def default(self) -> str:
        """The requested setting, in the words of the scores."""
        return self.settings[0].text

    def settings_for(self, model: ScoredModel) -> list[DetectorSetting]:
        """Return the settings whose needs the model's evidence meets.

        Raises:
            InputError: unmet needs of the requested setting.
        """
        lacking = _unmet_needs(self.settings[0], model.evidence)
        if lacking:
            needs = " and ".join(map(str, lacking))
            parts = {need.part for need in lacking}
            raise InputError(
                f"it needs {needs}, which this ground truth does not have for the model "
                f"{model.model!r}",
                where=self.given,
                hint=packing_hint([part for part in model.left_out if part in parts]),
            )
        return [setting for setting in self.settings if not _unmet_needs(setting, model.evidence)]

    def check_time(self, model: ScoredModel, limit: float) -> float:
        """Time the first rows; return the seconds that 1,000 would take.

        Raises:
            TooSlow: more than the limit.
            InputError: a failing detector.
        """
        settings = self.settings_for(model)
        evidence = readable(model.evidence)
        rows = range(len(evidence.texts))[: _WARM_UP + _TIMED]
        if len(rows) <= _WARM_UP:
            return 0.0
        self._columns(evidence.take(rows[:_WARM_UP]), settings, model)
        started = time.perf_counter()
        timed = rows[_WARM_UP:]
        self._columns(evidence.take(timed), settings, model)
        needed = (time.perf_counter() - started) / len(timed) * 1000
        if needed > limit:
            raise TooSlow(
                f"it is too slow: by its first {len(timed)} rows, 1,000 would take "
                f"{needed:,.0f} s, and the limit is {limit:,.0f} s",
                where=self.given,
                hint="Make it faster, or give it longer by --time-limit.",
            )
        return needed

    def score(
        self,
        model: ScoredModel,
        rows: Sequence[int] | None = None,
        *,
        settings: Sequence[DetectorSetting] | None = None,
    ) -> CandidateScores:
        """Score rows of a model.

        Args:
            model: whose evidence is given.
            rows: which, in this order; None for all.
            settings: under which; None for all whose needs are met.

        Raises:
            InputError: a failure on every row, or a result other than scores.
        """
        chosen = self.settings_for(model) if settings is None else settings
        evidence = model.evidence if rows is None else model.evidence.take(rows)
        scored_rows = list(range(len(evidence.texts)))
        withheld = {row for row in scored_rows if evidence.texts[row] is None}
        started = time.perf_counter()
        scores = self._columns(evidence, chosen, model)
        everywhere = len(scores.failed) == len(scored_rows)
        if scores.failed and model.withheld.any() and (everywhere or scores.failed & withheld):
            scored_rows = [row for row in scored_rows if row not in withheld]
            scores = self._columns(readable(evidence), chosen, model)
        if scores.failure is not None and len(scores.failed) == len(scored_rows):
            raise scores.failure
        values = np.full((len(evidence.texts), len(chosen)), np.nan)
        reasons = {(row, at): WITHHELD for row in withheld for at in range(len(chosen))}
        for at, column in enumerate(scores.columns):
            values[scored_rows, at] = [score.value for score in column.scores]
            for row, score in zip(scored_rows, column.scores, strict=True):
                # A detector that checks for a text sees a withheld one as empty.
                if np.isnan(score.value) and (row not in withheld or score.reason != EMPTY_TEXT):
                    reasons[row, at] = score.reason or "not a number"
        notes = dict.fromkeys(note for column in scores.columns for note in column.notes)
        return CandidateScores(chosen, values, reasons, tuple(notes), time.perf_counter() - started)

    def _columns(
        self, evidence: Evidence, settings: Sequence[DetectorSetting], model: ScoredModel
    ) -> GuardedScores:
        return score_guarded(
            self.detector,
            evidence,
            [setting.parameters for setting in settings],
            rows=len(evidence.texts),
            protected=model.protected,
        )


def load_candidate(
    source: Given, evidence: Evidence, *, taken: Iterable[str], protected: bool = True
) -> Candidate:
    """Load a detector.

    Args:
        source: `FILE.py:NAME`, with parameters behind further colons; or an object.
        evidence: an example to try a function on if its argument is unknown.
        taken: names of the stored detectors; a detector of the same name gets a suffix.
        protected: the evidence may hold a protected text (see `detect.guarded_call`).

    Raises:
        InputError: a loading failure, or a function that takes neither of the two.
    """
    text = source if isinstance(source, str) else _object_name(source)
    settings = parse_detectors(source) if isinstance(source, str) else [_wrap_object(source, text)]
    if len({setting.name for setting in settings}) > 1:
        raise InputError("names several detectors", where=text, hint="Give them one by one.")
    function = settings[0].known.function
    takes = "a Detector"
    if function is not None:
        declared = declared_argument(function)
        argument = declared or _try_arguments(function, evidence, text, protected)
        words = {"statistics": "token statistics", "example": "one example's evidence"}[argument]
        takes = f"a function of {words} ({'as it says' if declared else 'found by trial'})"
        if declared is None:
            detector = detector_of(function, settings[0].name, place=text, argument=argument)
            settings = [
                replace(setting, known=replace(setting.known, detector=detector))
                for setting in settings
            ]
    name, names = settings[0].name, set(taken)
    while name in names:
        name = f"{name} (yours)"
    return Candidate(given=text, name=name, settings=tuple(with_grids(settings)), takes=takes)


def packing_hint(parts: Sequence[str]) -> str | None:
    """Return the hint on parts that a bundle was packed without; None without any."""
    if not parts:
        return None
    options = " ".join(f"--include {part}" for part in parts)
    return f"The bundle was packed without; `spikein bundle RUN {options}` brings what the run has."


def _unmet_needs(setting: DetectorSetting, evidence: Evidence) -> list[Need]:
    return [need for need in setting.needs if not need.met_by(evidence)]


def _wrap_object(detector: Detector | Callable[[Any], Any], text: str) -> DetectorSetting:
    place, function = f"the detector {text}", None
    if not isinstance(detector, Detector):
        if not callable(detector) or isinstance(detector, type):
            raise InputError(
                f"is a {type(detector).__name__}",
                where=place,
                allowed="FILE.py:NAME, a function, or a Detector",
            )
        function, detector = detector, detector_of(detector, text, place=place)
    check_detector(detector, place=place)
    source = KnownDetector(detector=detector, origin="given in Python", code=(), function=function)
    return DetectorSetting(known=source, parameters=detector.parameters())


def _object_name(detector: Any) -> str:
    if isinstance(detector, Detector):
        return detector.name
    name = str(getattr(detector, "__name__", "")) or type(detector).__name__
    return name.replace("<lambda>", "lambda")


def _try_arguments(
    function: Callable[..., Any], evidence: Evidence, place: str, protected: bool
) -> Argument:
    """Return the argument kind of a function: the one for which it returns a number or a text."""
    problems = []
    order: tuple[Argument, ...] = ("statistics", "example")
    scored = [row for row, table in enumerate(evidence.statistics[TEXT]) if len(table)]
    scored.sort(key=lambda row: evidence.texts[row] is None)
    examples = list(evidence.take(scored[:_TRIED]).examples())
    for argument in order:
        tried = []
        for example in examples:
            try:
                value = function(example.statistics[TEXT] if argument == "statistics" else example)
            except Exception as error:
                tried.append(safe_message(error, protected=protected))
                continue
            # One row that it fails on is a missing score, not another kind of function.
            if isinstance(value, str) or exact_number(value) is not None:
                return argument
            tried.append(f"it returns {described(value)}")
        problems.append(f"{argument}: {tried[0] if tried else 'no row has a text'}")
    raise InputError(
        "it takes neither token statistics nor one example's evidence; " + "; ".join(problems),
        where=place,
        allowed="a function that returns a number, or a text that explains why there is none",
        hint="Annotate its parameter: spikein.TokenStatistics or spikein.ExampleEvidence.",
    )
