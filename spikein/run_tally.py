"""What is known of a run while it goes on: its stages, and about how long the rest will take.

The time left is that of the longest chain of steps still to come, or of all of them shared out
among as many at a time as were seen to run, whichever is longer. A step takes as long as those of
its kind took in this run; training follows from its operations and the rate seen so far. Nothing is
said before the first model reports how far it is. Cost: one pass over the steps, once a second.
"""

import time
from collections import Counter
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
    "results": "results accuracy_gain figures trajectory unlearning forgetting utility "
    "compared_weights unlearning_audit unlearning_audits",
}
"""Kinds of steps by the stage of a run that they belong to; any other kind is its own stage."""
_STAGES: Final = {kind: stage for stage, kinds in _KINDS.items() for kind in kinds.split()}
_SHORT_SECONDS: Final = 3.0
"""Of a step of whose kind none is finished, unless it trains."""
_ANEW_SECONDS: Final = 1.0
"""How old an estimate may be."""


class StageEnd(NamedTuple):
    """A stage of which every step is done."""

    stage: str
    steps: int
    reused: int
    """Steps of it that were not built here after all."""
    seconds: float
    """Of its steps, one after the other."""


@dataclass(kw_only=True)
class _Entry:
    """One step that is not done."""

    kind: str
    stage: str
    flops: float | None = None
    needs: tuple[str, ...] = ()
    """Digests."""
    began: float | None = None
    first: tuple[float, float] | None = None
    """When it first said how far it was, and how far that was."""
    share: float | None = None
    """Of the work after that, done."""
    latest: float = 0.0
    """When it said so."""


@dataclass(kw_only=True)
class _Stage:
    """What was done of one stage."""

    steps: int = 0
    reused: int = 0
    seconds: float = 0.0


@dataclass(kw_only=True)
class _Done:
    """What the finished steps of one kind took together."""

    steps: int = 0
    seconds: float = 0.0
    flops: float = 0.0


@dataclass
class RunTally:
    """The steps of a run by what became of them. Steps are known by name, which several share."""

    _open: dict[str, _Entry] = field(default_factory=dict)
    """By digest, inputs first; a step that nobody announced, by its name."""
    _named: dict[str, list[str]] = field(default_factory=dict)
    _to_do: Counter[str] = field(default_factory=Counter)
    _stages: dict[str, _Stage] = field(default_factory=dict)
    _kinds: dict[str, _Done] = field(default_factory=dict)
    _most: int = 1
    """Steps that ran at one time."""
    _estimate: tuple[float, float | None] | None = None
    """When the time left was last worked out, and what came out."""

    def plan(self, steps: "Sequence[Step]") -> None:
        """Take up the steps that the run will build, each after its inputs."""
        for step in steps:
            base = step.kind == "model" and not {"plan", "model"} & step.inputs.keys()
            self._add(
                step.name,
                step.digest,
                _Entry(
                    kind=step.kind,
                    stage=_BASE if base else _STAGES.get(step.kind, step.kind),
                    flops=step.cost.flops if step.cost else None,
                    needs=tuple(given.digest for given in step.inputs.values()),
                ),
            )

    def start(self, name: str) -> None:
        """Record that a step has begun."""
        now = time.monotonic()
        if not self._named.get(name):
            kind = name.partition(" ")[0]
            self._add(name, name, _Entry(kind=kind, stage=_STAGES.get(kind, kind)))
        self._open[self._named[name][0]].began = now
        self._most = max(self._most, len(self.running()))

    def advance(self, name: str, done: float, total: float | None) -> None:
        """Record how far a step is."""
        if not total or not self._named.get(name):
            return
        entry = self._open[self._named[name][0]]
        now = time.monotonic()
        # A step may have several parts, each of which begins at nothing.
        if entry.first is None or done < entry.first[1]:
            entry.first = (now, done)
        entry.share = (done - entry.first[1]) / max(total - entry.first[1], 1e-9)
        entry.latest = now

    def finish(self, name: str, *, seconds: float, reused: bool) -> StageEnd | None:
        """Record that a step is done; return its stage where that is done with it."""
        if not self._named.get(name):
            self.start(name)
        entry = self._open.pop(self._named[name].pop(0))
        stage = self._stages.setdefault(entry.stage, _Stage())
        stage.steps += 1
        stage.reused += reused
        stage.seconds += seconds
        if not reused:
            done = self._kinds.setdefault(entry.kind, _Done())
            done.steps += 1
            done.seconds += seconds
            done.flops += entry.flops or 0.0
        self._estimate = None
        self._to_do[entry.stage] -= 1
        if self._to_do[entry.stage]:
            return None
        del self._stages[entry.stage]
        return StageEnd(entry.stage, stage.steps, stage.reused, stage.seconds)

    def running(self) -> list[str]:
        """Return the names of the steps that run."""
        return [
            name
            for name, digests in self._named.items()
            if digests and self._open[digests[0]].began is not None
        ]

    def left(self) -> float | None:
        """Return about how many seconds the rest will take; None where nothing tells."""
        now = time.monotonic()
        if self._estimate is None or now - self._estimate[0] > _ANEW_SECONDS:
            self._estimate = now, self._left(now)
        at, seconds = self._estimate
        return None if seconds is None else max(seconds - (now - at), 0.0)

    def _add(self, name: str, digest: str, entry: _Entry) -> None:
        self._open[digest] = entry
        self._named.setdefault(name, []).append(digest)
        self._to_do[entry.stage] += 1

    def _left(self, now: float) -> float | None:
        chains: dict[str, float] = {}
        whole = 0.0
        rate = self._rate()
        for digest, entry in self._open.items():
            seconds = self._seconds(entry, now, rate)
            if seconds is None:
                return None
            whole += seconds
            chains[digest] = seconds + max((chains.get(one, 0.0) for one in entry.needs), default=0)
        return max(whole / self._most, max(chains.values(), default=0.0))

    def _seconds(self, entry: _Entry, now: float, rate: float | None) -> float | None:
        """Return how long a step still takes."""
        if entry.first is not None and entry.share:
            return (now - entry.first[0]) * (1 - entry.share) / entry.share
        if entry.flops:
            expected = None if rate is None else entry.flops / rate
        elif done := self._kinds.get(entry.kind):
            expected = done.seconds / done.steps
        else:
            expected = _SHORT_SECONDS
        if expected is None or entry.began is None:
            return expected
        return max(expected - (now - entry.began), 0.0)

    def _rate(self) -> float | None:
        """Return the operations a second that models are trained with; None before any was."""
        done = [one for one in self._kinds.values() if one.flops]
        operations = sum(one.flops for one in done)
        seconds = sum(one.seconds for one in done)
        for entry in self._open.values():
            if entry.flops and entry.first and entry.share:
                operations += entry.flops * entry.share
                seconds += entry.latest - entry.first[0]
        return operations / seconds if operations and seconds else None
