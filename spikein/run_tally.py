"""What is known of a run while it goes on: its stages, and about how long the rest will take.

The time left is that of the longest chain of steps still to come, or of all of them shared out
among as many at a time as were seen to run, whichever is longer. A step takes as long as those of
its kind took in this run; training follows from its operations and the rate seen so far. Nothing is
said before the first model reports how far it is. Cost: a pass over the steps at each event, and
one a second.
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
    """One step."""

    kind: str
    stage: str
    flops: float = 0.0
    needs: tuple[str, ...] = ()
    """Digests."""
    began: float | None = None
    first: tuple[float, float] | None = None
    """When it first said how far it was, and how far that was."""
    latest: float = 0.0
    """When it last said so."""
    share: float = 0.0
    """Of the work in between, what was done by then."""
    seconds: float = 0.0
    """It took."""
    reused: bool = False


@dataclass
class RunTally:
    """The steps of a run by what became of them. Steps are known by name, which several share."""

    _open: dict[str, _Entry] = field(default_factory=dict)
    """By digest, inputs first; a step that nobody announced, by its name."""
    _named: dict[str, list[str]] = field(default_factory=dict)
    """The digests of those, by name."""
    _done: list[_Entry] = field(default_factory=list)
    _most: int = 1
    """Steps that ran at one time."""
    _estimate: tuple[float, float | None] | None = None
    """When the time left was last worked out, and what came out."""

    def plan(self, steps: "Sequence[Step]") -> None:
        """Take up the steps that the run will build, each after its inputs."""
        for step in steps:
            base = step.kind == "model" and not {"plan", "model"} & step.inputs.keys()
            self._open[step.digest] = _Entry(
                kind=step.kind,
                stage=_BASE if base else _STAGES.get(step.kind, step.kind),
                flops=(step.cost and step.cost.flops) or 0.0,
                needs=tuple(given.digest for given in step.inputs.values()),
            )
            self._named.setdefault(step.name, []).append(step.digest)

    def start(self, name: str) -> None:
        """Record that a step has begun."""
        self._entry(name).began = time.monotonic()
        self._most = max(self._most, sum(one.began is not None for one in self._open.values()))

    def advance(self, name: str, done: float, total: float | None) -> None:
        """Record how far a step is."""
        if not total:
            return
        entry, now = self._entry(name), time.monotonic()
        # A step may have several parts, each of which begins at nothing.
        if entry.first is None or done < entry.first[1]:
            entry.first = (now, done)
        entry.share = (done - entry.first[1]) / max(total - entry.first[1], 1e-9)
        entry.latest = now

    def finish(self, name: str, *, seconds: float, reused: bool) -> StageEnd | None:
        """Record that a step is done; return its stage where that is done with it."""
        entry = self._entry(name)
        del self._open[self._named[name].pop(0)]
        entry.seconds, entry.reused = seconds, reused
        self._done.append(entry)
        self._estimate = None
        if any(one.stage == entry.stage for one in self._open.values()):
            return None
        ended = [one for one in self._done if one.stage == entry.stage]
        return StageEnd(
            entry.stage,
            steps=len(ended),
            reused=sum(one.reused for one in ended),
            seconds=sum(one.seconds for one in ended),
        )

    def left(self) -> float | None:
        """Return about how many seconds the rest will take; None if nothing tells."""
        now = time.monotonic()
        if self._estimate is None or now - self._estimate[0] > _ANEW_SECONDS:
            self._estimate = now, self._left(now)
        at, seconds = self._estimate
        return None if seconds is None else max(seconds - (now - at), 0.0)

    def _entry(self, name: str) -> _Entry:
        """Return the step of a name that is built next; one that nobody announced is added."""
        digests = self._named.setdefault(name, [])
        if not digests:
            kind = name.partition(" ")[0]
            self._open[name] = _Entry(kind=kind, stage=_STAGES.get(kind, kind))
            digests.append(name)
        return self._open[digests[0]]

    def _left(self, now: float) -> float | None:
        took: dict[str, list[float]] = {}
        for one in self._done:
            if not one.reused:
                took.setdefault(one.kind, []).append(one.seconds)
        rate = self._rate()
        chains: dict[str, float] = {}
        whole = 0.0
        for digest, entry in self._open.items():
            if entry.first is not None and entry.share:
                seconds = (now - entry.first[0]) * (1 - entry.share) / entry.share
            elif entry.flops and rate is None:
                return None
            else:
                known = took.get(entry.kind, [_SHORT_SECONDS])
                seconds = entry.flops / rate if entry.flops and rate else sum(known) / len(known)
                if entry.began is not None:
                    seconds = max(seconds - (now - entry.began), 0.0)
            whole += seconds
            chains[digest] = seconds + max((chains.get(one, 0.0) for one in entry.needs), default=0)
        return max(whole / self._most, max(chains.values(), default=0.0))

    def _rate(self) -> float | None:
        """Return the operations a second that models are trained with; None before any was."""
        done = [(one.flops, one.seconds) for one in self._done if not one.reused]
        done += [
            (one.flops * one.share, one.latest - one.first[0])
            for one in self._open.values()
            if one.first
        ]
        seconds = sum(seconds for flops, seconds in done if flops)
        return sum(flops for flops, _ in done) / seconds if seconds else None
