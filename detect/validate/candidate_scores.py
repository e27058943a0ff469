"""Scores of a detector that is judged: within a time limit, on all rows that it can be given.

A detector that reads texts of withheld rows is run on the other rows alone; those get NaN and a
reason. The time limit holds for 1,000 rows. It is met in two ways: the first rows are timed (after
a few that warm up), and what would take longer than the limit is not begun; what is begun is
interrupted when its time is over.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import update_wrapper
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from detect.detector import Column, Detector
from detect.detector_settings import DetectorSetting
from detect.evidence import Evidence, HeldOutRows
from detect.ground_truth.ground_truth import ScoredModel
from detect.ground_truth.withheld import REASON, TextWithheld, guarded, readable
from detect.guarded_call import score_guarded
from detect.validate.candidate import Candidate
from detect.validate.time_limit import TookTooLong, TooSlow, time_limit
from inject.errors import InputError

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

TIME_LIMIT = 60.0
"""Seconds for 1,000 rows."""
_WARM_UP = 3
_TIMED = 20
_LEAST = 5.0
"""Seconds that any call is given."""


class CandidateScores(NamedTuple):
    """Scores of one detector on the rows of one model."""

    values: Floats
    """[rows, settings]."""
    reasons: dict[tuple[int, int], str]
    """Why a score is NaN, by row and setting."""
    notes: tuple[str, ...]
    seconds: float
    """How long scoring took."""


@dataclass(frozen=True, kw_only=True)
class CandidateRunner:
    """Runs one detector on models, within the limits."""

    candidate: Candidate
    seconds: float = TIME_LIMIT
    """The limit for 1,000 rows."""

    def settings(self, model: ScoredModel) -> list[DetectorSetting]:
        """Return the settings whose needs the model's evidence meets.

        Raises:
            InputError: those of the one that was asked for are not met.
        """
        first = self.candidate.settings[0]
        lacking = _lacking(first, model.evidence)
        if lacking:
            raise InputError(
                f"it needs {' and '.join(lacking)}, which this ground truth does not hold for the "
                f"model {model.model!r}",
                where=self.candidate.given,
            )
        return [one for one in self.candidate.settings if not _lacking(one, model.evidence)]

    def check_time(self, model: ScoredModel) -> float:
        """Time the first rows; return the seconds that 1,000 would take.

        Raises:
            TooSlow: more than the limit.
            InputError: it fails.
        """
        rows = np.flatnonzero(~model.withheld)[: _WARM_UP + _TIMED].tolist()
        settings = self.settings(model)
        if len(rows) <= _WARM_UP:
            return 0.0
        there = replace(model.evidence, held_out=_readable_held_out(model))
        self._columns(there.take(rows[:_WARM_UP]), settings, self.seconds)
        started = time.perf_counter()
        timed = rows[_WARM_UP:]
        self._columns(there.take(timed), settings, self.seconds)
        needed = (time.perf_counter() - started) / len(timed) * 1000
        if needed > self.seconds:
            raise TooSlow(
                f"it is too slow: its first {len(timed)} rows say that 1,000 would take "
                f"{needed:,.0f} s, and the limit is {self.seconds:,.0f} s",
                where=self.candidate.given,
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
            TooSlow: it did not end in time.
            InputError: it fails, or returns anything but a score a row.
        """
        asked = list(self.settings(model) if settings is None else settings)
        chosen = np.arange(len(model.rows)) if rows is None else np.asarray(rows, dtype=np.int64)
        allowed = max(_LEAST, self.seconds * len(chosen) / 1000)
        evidence = model.evidence if rows is None else model.evidence.take(chosen.tolist())
        withheld, held_out = model.withheld[chosen], model.held_out_withheld
        there = np.arange(len(chosen))
        started = time.perf_counter()
        try:
            columns = self._columns(evidence, asked, allowed, (withheld, held_out))
        except TextWithheld:
            there = np.flatnonzero(~withheld)
            if not len(there):
                raise
            columns = self._columns(readable(evidence, withheld, held_out), asked, allowed)
        values = np.full((len(chosen), len(asked)), np.nan)
        reasons = {
            (int(row), at): REASON
            for row in np.setdiff1d(np.arange(len(chosen)), there)
            for at in range(len(asked))
        }
        notes: list[str] = []
        for at, column in enumerate(columns):
            values[there, at] = [score.value for score in column.scores]
            notes += column.notes
            for row, score in zip(there.tolist(), column.scores, strict=True):
                if np.isnan(score.value):
                    reasons[row, at] = score.reason or "not a number"
        return CandidateScores(
            values, reasons, tuple(dict.fromkeys(notes)), time.perf_counter() - started
        )

    def _columns(
        self,
        evidence: Evidence,
        settings: Sequence[DetectorSetting],
        allowed: float,
        withheld: tuple[Mask, Mask] | None = None,
    ) -> list[Any]:
        """Run the detector; what it reads of withheld rows, or held-out rows, is refused."""
        detector = self.candidate.detector
        if withheld is not None and any(one.any() for one in withheld):
            detector = _hiding(detector, *withheld)
        try:
            with time_limit(allowed):
                return score_guarded(
                    detector,
                    evidence,
                    [one.parameters for one in settings],
                    rows=len(evidence.texts),
                )
        except InputError as error:
            if isinstance(error.__cause__, TookTooLong):
                raise TooSlow(
                    f"it is too slow: {error.problem} on {len(evidence.texts)} rows",
                    where=error.where,
                    hint="Make it faster, or give it longer by --time-limit.",
                ) from error
            raise
        except TookTooLong as late:
            # The timer went off between the detector's end and ours.
            raise TooSlow(f"it is too slow: {late}", where=self.candidate.given) from late


def _readable_held_out(model: ScoredModel) -> HeldOutRows | None:
    """Return the held-out rows whose texts are here."""
    nothing = np.zeros(len(model.rows), dtype=np.bool_)
    return readable(model.evidence, nothing, model.held_out_withheld).held_out


def _hiding(detector: Detector, withheld: Mask, held_out: Mask) -> Detector:
    """Return a detector that is refused what it reads of withheld texts."""

    def score(evidence: Evidence, settings: Sequence[Any]) -> list[Column]:
        return detector.score(guarded(evidence, withheld, held_out), settings)

    # Messages name the file of the detector's own function.
    return replace(detector, score=update_wrapper(score, detector.score))


def _lacking(setting: DetectorSetting, evidence: Evidence) -> list[str]:
    return [str(need) for need in setting.needs if not need.met_by(evidence)]
