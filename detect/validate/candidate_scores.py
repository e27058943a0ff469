"""Scores of a detector that is judged: within a time limit, on all rows that it can be given.

A detector that reads texts of withheld rows is run on the other rows alone; those get NaN and a
reason. The time limit holds for 1,000 rows: the first rows are timed (after a few that warm up),
and what would take longer than the limit is not begun.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from detect.detector_settings import DetectorSetting
from detect.evidence import Evidence, HeldOutRows
from detect.ground_truth.ground_truth import ScoredModel
from detect.ground_truth.withheld import REASON, TextWithheld, guarded, readable
from detect.guarded_call import GuardedScores, score_guarded
from detect.validate.candidate import Candidate
from inject.errors import InputError

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

TIME_LIMIT = 60.0
"""Seconds for 1,000 rows."""
_WARM_UP = 3
_TIMED = 20


class TooSlow(InputError):
    """A detector takes longer than the limit."""


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
        self._columns(there.take(rows[:_WARM_UP]), settings, model.protected)
        started = time.perf_counter()
        timed = rows[_WARM_UP:]
        self._columns(there.take(timed), settings, model.protected)
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
            InputError: it fails on every row, or returns anything but scores.
        """
        asked = list(self.settings(model) if settings is None else settings)
        chosen = np.arange(len(model.rows)) if rows is None else np.asarray(rows, dtype=np.int64)
        evidence = model.evidence if rows is None else model.evidence.take(chosen.tolist())
        withheld, held_out = model.withheld[chosen], model.held_out_withheld
        there = np.arange(len(chosen))
        started = time.perf_counter()
        try:
            found = self._columns(evidence, asked, model.protected, (withheld, held_out))
        except TextWithheld:
            there = np.flatnonzero(~withheld)
            if not len(there):
                raise
            found = self._columns(readable(evidence, withheld, held_out), asked, model.protected)
        if found.failure is not None and found.failed == len(there):
            raise found.failure
        values = np.full((len(chosen), len(asked)), np.nan)
        reasons = {
            (int(row), at): REASON
            for row in np.setdiff1d(np.arange(len(chosen)), there)
            for at in range(len(asked))
        }
        notes: list[str] = []
        for at, column in enumerate(found.columns):
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
        protected: bool,
        withheld: tuple[Mask, Mask] | None = None,
    ) -> GuardedScores:
        """Run the detector; what it reads of withheld rows, or held-out rows, is refused."""

        def guard(part: Evidence, rows: list[int]) -> Evidence:
            return part if withheld is None else guarded(part, withheld[0][rows], withheld[1])

        return score_guarded(
            self.candidate.detector,
            evidence,
            [one.parameters for one in settings],
            rows=len(evidence.texts),
            protected=protected,
            guard=guard,
        )


def _readable_held_out(model: ScoredModel) -> HeldOutRows | None:
    """Return the held-out rows whose texts are here."""
    nothing = np.zeros(len(model.rows), dtype=np.bool_)
    return readable(model.evidence, nothing, model.held_out_withheld).held_out


def _lacking(setting: DetectorSetting, evidence: Evidence) -> list[str]:
    return [str(need) for need in setting.needs if not need.met_by(evidence)]
