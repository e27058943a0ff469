"""How much of the target a detector sees: seven levels, each including those before it.

A detector's level follows from its needs (`detect.evidence.needs`), or is declared if the detector
reads more than the minimum: token statistics contain both the tokens' log-probabilities and
statistics of the whole distribution. Anything that a level does not allow is withheld: reading it
raises `AccessRefusedError`. Every level allows full access to the user's own models (a reference,
shadow models). No array is copied; the cost is a few microseconds per row.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import numpy as np

from detect.token_statistics import TokenStatistics

_OWN_MODELS = frozenset({"reference", "shadows"})
EvidenceT = TypeVar("EvidenceT")


class Access(IntEnum):
    """Access level a detector requires."""

    label: str
    """The level's name in tables."""

    def __new__(cls, level: int, label: str) -> "Access":
        """Return the level of a number."""
        access = int.__new__(cls, level)
        access._value_, access.label = level, label
        return access

    NONE = 0, "none"
    """Nothing: the detector reads only texts and labels."""
    TEXT = 1, "text"
    """Texts that the target writes."""
    LABELS = 2, "label probabilities"
    """Probabilities of a few answers."""
    TOKENS = 3, "token log-probabilities"
    """The log-probability of each token of a text."""
    RANKS = 4, "token ranks"
    """Number of vocabulary tokens that are likelier than each token of a text."""
    DISTRIBUTION = 5, "full distribution"
    """The whole distribution over the vocabulary."""
    WEIGHTS = 6, "weights"
    """The weights: gradients, hidden states, a copy that is trained."""


_COLUMN_ACCESS = {
    "reason": Access.NONE,
    **dict.fromkeys(("ids", "log_probability", "offsets"), Access.TOKENS),
    "rank": Access.RANKS,
}


class AccessRefusedError(Exception):
    """A detector read something that its level does not allow."""

    def __init__(self, subject: str, needed: Access) -> None:
        super().__init__(f"{subject} requires access to the target's {needed.label}")
        self.what = subject
        self.needed = needed


def allowed_evidence(evidence: EvidenceT, level: Access) -> EvidenceT:
    """Return the evidence, without those parts of the target that a level does not allow.

    Below `TOKENS` there are no token statistics, below `DISTRIBUTION` only their ids, offsets,
    log-probabilities and, from `RANKS` on, ranks. Shares all arrays with the input.
    """
    if level >= Access.DISTRIBUTION:
        return evidence
    columns = [name for name, needed in _COLUMN_ACCESS.items() if level >= needed]

    def limited(value: Any) -> Any:
        if not isinstance(value, TokenStatistics):
            return value
        statistics = object.__new__(_LimitedStatistics)
        # Python calls `__getattr__` for absent attributes; frozen dataclasses are filled this way.
        attributes = vars(value)
        vars(statistics).update((name, attributes[name]) for name in columns if name in attributes)
        return statistics

    allowed: EvidenceT = rebuilt(evidence, limited, _OWN_MODELS)
    if level < Access.TOKENS:
        nothing = MappingProxyType(_NoStatistics())
        return replace(allowed, statistics=nothing)  # type: ignore[type-var]
    return allowed


class _LimitedStatistics(TokenStatistics):
    """Token statistics without some of their columns; reading one of those raises."""

    def __getattr__(self, name: str) -> NoReturn:
        if name in {field.name for field in fields(TokenStatistics)}:
            needed = _COLUMN_ACCESS.get(name, Access.DISTRIBUTION)
            raise AccessRefusedError(f"`{name}`", needed)
        raise AttributeError(name)


class _NoStatistics(dict[str, Any]):
    """There are no views; requesting one by name raises."""

    def __missing__(self, name: str) -> NoReturn:
        raise AccessRefusedError(f"view {name!r}", Access.TOKENS)


def rebuilt(value: Any, change: Callable[[Any], Any], skipped: frozenset[str] = frozenset()) -> Any:
    """Return evidence, or a part of it, with a change applied to its components.

    Sequences become tuples and mappings become read-only; unchanged values are returned as they
    are.

    Args:
        value: the value to change.
        change: returns its argument if the components must be visited.
        skipped: fields that stay as they are.
    """
    if isinstance(value, str | int | float | bytes | None):
        return value
    changed = change(value)
    if changed is not value or isinstance(value, np.ndarray):
        return changed
    if isinstance(value, Mapping):
        items = {key: rebuilt(item, change, skipped) for key, item in value.items()}
        same = all(items[key] is item for key, item in value.items())
        return value if same and isinstance(value, MappingProxyType) else MappingProxyType(items)
    if isinstance(value, Sequence):
        rows = tuple(rebuilt(item, change, skipped) for item in value)
        if isinstance(value, tuple) and all(map(operator.is_, rows, value)):
            return value
        return type(value)(*rows) if hasattr(value, "_fields") else rows
    if is_dataclass(value) and not isinstance(value, type):
        # Fields can be absent: a withheld text has no ids.
        parts = {
            name: part
            for name, item in vars(value).items()
            if name not in skipped and (part := rebuilt(item, change, skipped)) is not item
        }
        if parts:
            value = copy(value)
            vars(value).update(parts)
    return value
