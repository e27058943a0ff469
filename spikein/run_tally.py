"""Stages of a running run, and an estimate of its remaining time.

The time left is that of the longest chain of remaining steps, or of all of them divided by the
number of steps seen to run at a time, whichever is longer. A step takes as long as those of its
kind took in this run; training time follows from its operations and the rate so far. There is no
estimate before the first model reports progress. Cost: a pass over the steps at each event, and
one per second.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from inject.step import Step

_BASE: Final = "base model"
_KINDS: Final = {
    "examples": "examples variants",
    "corpus": "tokenizer corpus general_text",
    "plan and audit": "plan audit",
    "models": "model adapter",
    "evidence": "frequency statistics gradients shots neighbours neighbour_means continuations "
    "forgotten_continuations audit_continuations choices words guesses entities",
    "scores": "scores orders paraphrase_scores accuracy",
    "results": "results accuracy_gain trajectory unlearning forgetting utility "
    "compared_weights unlearning_audit unlearning_audits",
}
"""Kinds of steps by the stage of a run that they belong to; any other kind is its own stage."""
_STAGES: Final = {kind: stage for stage, kinds in _KINDS.items() for kind in kinds.split()}
_SHORT_SECONDS: Final = 3.0
"""Seconds of a step of a kind without a finished step, unless it trains."""
_ANEW_SECONDS: Final = 1.0
"""Maximum age of an estimate, in seconds."""


class StageEnd(NamedTuple):
    """A finished stage."""

    stage: str
    steps: int
    reused: int
    """Steps that were not built here after all."""
    seconds: float
    """Sum over its steps."""


@dataclass(kw_only=True)
class _Entry:
    """One step."""

    kind: str
    stage: str
    flops: float = 0.0
    needs: tuple[str, ...] = ()
    """Digests."""
    began: float | None = None
    first: tuple[float, float] | None = None
    """Time of its first progress report, and the units done then."""
    latest: float = 0.0
    """Time of its last progress report."""
    share: float = 0.0
    """Share of the work in between that was done by then."""
    seconds: float = 0.0
    """Time that it took."""
    reused: bool = False


@dataclass
class RunTally:
    """The steps of a run by state. Events name steps, and several steps may share a name."""

    _open: dict[str, _Entry] = field(default_factory=dict)
    """Steps by digest, inputs first; a step that was not announced, by its name."""
    _named: dict[str, list[str]] = field(default_factory=dict)
    """Digests of these steps, by name."""
    _done: list[_Entry] = field(default_factory=list)
    _most: int = 1
    """Most steps that ran at the same time."""
    _estimate: tuple[float, float | None] | None = None
    """Time and result of the last estimate."""

    def plan(self, steps: "Sequence[Step]") -> None:
        """Add the steps that the run will build, each after its inputs."""
        for step in steps:
            base = step.kind == "model" and not {"plan", "model"} & step.inputs.keys()
            self._open[step.digest] = _Entry(
                kind=step.kind,
                stage=_BASE if base else _STAGES.get(step.kind, step.kind),
                flops=(step.cost and step.cost.flops) or 0.0,
                needs=tuple(source.digest for source in step.inputs.values()),
            )
            self._named.setdefault(step.name, []).append(step.digest)

    def start(self, name: str) -> None:
        """Record that a step has begun."""
        self._entry(name).began = time.monotonic()
        self._most = max(
            self._most, sum(open_entry.began is not None for open_entry in self._open.values())
        )

    def advance(self, name: str, done: float, total: float | None) -> None:
        """Record the progress of a step."""
        if not total:
            return
        entry, now = self._entry(name), time.monotonic()
        # A step may have several parts, each of which starts at 0.
        if entry.first is None or done < entry.first[1]:
            entry.first = (now, done)
        entry.share = (done - entry.first[1]) / max(total - entry.first[1], 1e-9)
        entry.latest = now

    def finish(self, name: str, *, seconds: float, reused: bool) -> StageEnd | None:
        """Record that a step is done; return its stage if that is now finished."""
        entry = self._entry(name)
        del self._open[self._named[name].pop(0)]
        entry.seconds, entry.reused = seconds, reused
        self._done.append(entry)
        self._estimate = None
        if any(finished.stage == entry.stage for finished in self._open.values()):
            return None
        ended = [finished for finished in self._done if finished.stage == entry.stage]
        return StageEnd(
            entry.stage,
            steps=len(ended),
            reused=sum(finished.reused for finished in ended),
            seconds=sum(finished.seconds for finished in ended),
        )

    def left(self) -> float | None:
        """Return the estimated remaining seconds; None if there is no basis."""
        now = time.monotonic()
        if self._estimate is None or now - self._estimate[0] > _ANEW_SECONDS:
            self._estimate = now, self._remaining_seconds(now)
        at, seconds = self._estimate
        return None if seconds is None else max(seconds - (now - at), 0.0)

    def _entry(self, name: str) -> _Entry:
        """Return the next step of a name; add one that was not announced."""
        digests = self._named.setdefault(name, [])
        if not digests:
            kind = name.partition(" ")[0]
            self._open[name] = _Entry(kind=kind, stage=_STAGES.get(kind, kind))
            digests.append(name)
        return self._open[digests[0]]

    def _remaining_seconds(self, now: float) -> float | None:
        took: dict[str, list[float]] = {}
        for entry_done in self._done:
            if not entry_done.reused:
                took.setdefault(entry_done.kind, []).append(entry_done.seconds)
        rate = self._rate()
        chains: dict[str, float] = {}
        whole = 0.0
        for digest, entry in self._open.items():
            if entry.first is not None and entry.share:
                seconds = (now - entry.first[0]) * (1 - entry.share) / entry.share
            elif entry.flops and rate is None:
                return None
            else:
                times = took.get(entry.kind, [_SHORT_SECONDS])
                seconds = entry.flops / rate if entry.flops and rate else sum(times) / len(times)
                if entry.began is not None:
                    seconds = max(seconds - (now - entry.began), 0.0)
            whole += seconds
            chains[digest] = seconds + max(
                (chains.get(entry_done, 0.0) for entry_done in entry.needs), default=0
            )
        return max(whole / self._most, max(chains.values(), default=0.0))

    def _rate(self) -> float | None:
        """Return the training rate in operations per second; None before any training."""
        done = [
            (finished.flops, finished.seconds) for finished in self._done if not finished.reused
        ]
        done += [
            (finished.flops * finished.share, finished.latest - finished.first[0])
            for finished in self._open.values()
            if finished.first
        ]
        seconds = sum(seconds for flops, seconds in done if flops)
        return sum(flops for flops, _ in done) / seconds if seconds else None
