"""What a detector sees of the target: seven levels, each of which includes those before it.

A detector's level follows from its needs (`detect.evidence.needs`), or is declared where it reads
more of them than the least: token statistics hold both the tokens' log-probabilities and what the
whole distribution says. What a level does not allow is withheld: reading it raises
`AccessRefusedError`. Models of one's own (a reference, shadow models) may be read whole at every
level. No array is copied; the cost is a few microseconds a row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

from detect.token_statistics import TokenStatistics

_OWN_MODELS = frozenset({"reference", "shadows"})
EvidenceT = TypeVar("EvidenceT")


class Access(IntEnum):
    """What of the target a detector must see."""

    NONE = 0
    """Nothing: it reads texts and labels alone."""
    TEXT = 1
    """What the target writes."""
    LABELS = 2
    """The probabilities of a few answers."""
    TOKENS = 3
    """The log-probability of each token of a text."""
    RANKS = 4
    """How many tokens of the vocabulary are likelier than each token of a text."""
    DISTRIBUTION = 5
    """The whole distribution over the vocabulary."""
    WEIGHTS = 6
    """The weights: gradients, hidden states, a copy that is trained."""

    @property
    def label(self) -> str:
        """The level as tables have it."""
        return _LABELS[self]


_COLUMN_ACCESS = {
    "reason": Access.NONE,
    **dict.fromkeys(("ids", "log_probability", "offsets"), Access.TOKENS),
    "rank": Access.RANKS,
}
_LABELS = {
    Access.NONE: "none",
    Access.TEXT: "text",
    Access.LABELS: "label probabilities",
    Access.TOKENS: "token log-probabilities",
    Access.RANKS: "token ranks",
    Access.DISTRIBUTION: "full distribution",
    Access.WEIGHTS: "weights",
}


class AccessRefusedError(Exception):
    """A detector read what its level does not allow."""

    def __init__(self, what: str, needed: Access) -> None:
        super().__init__(f"{what} takes access to the target's {needed.label}")
        self.what = what
        self.needed = needed


def allowed_evidence(evidence: EvidenceT, level: Access) -> EvidenceT:
    """Return the evidence without what a level does not allow of the target.

    Below `TOKENS` there are no token statistics, below `DISTRIBUTION` only their ids, offsets,
    log-probabilities and, from `RANKS` on, ranks. Shares all arrays with what is given.
    """
    if level >= Access.DISTRIBUTION:
        return evidence
    limited: EvidenceT = _limited(evidence, level)
    if level < Access.TOKENS:
        return replace(limited, statistics=_NoStatistics())  # type: ignore[type-var]
    return limited


class _LimitedStatistics(TokenStatistics):
    """Token statistics without some of their columns; reading one of those raises."""

    def __getattr__(self, name: str) -> NoReturn:
        if name in {field.name for field in fields(TokenStatistics)}:
            needed = _COLUMN_ACCESS.get(name, Access.DISTRIBUTION)
            raise AccessRefusedError(f"`{name}`", needed)
        raise AttributeError(name)


class _NoStatistics(Mapping[str, Any]):
    """No view is there; asking for one by name raises."""

    def __getitem__(self, name: str) -> NoReturn:
        raise AccessRefusedError(f"view {name!r}", Access.TOKENS)

    def __contains__(self, name: object) -> bool:
        return False

    def get(self, name: str, default: Any = None) -> Any:
        """Return the default: there is no view."""
        return default

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _limited(value: Any, level: Access) -> Any:
    """Return evidence, or a part of it, with limited token statistics of the target."""
    if isinstance(value, TokenStatistics):
        columns = [name for name, needed in _COLUMN_ACCESS.items() if level >= needed]
        limited = object.__new__(_LimitedStatistics)
        # What is absent is asked of `__getattr__`; frozen dataclasses are filled this way.
        vars(limited).update((name, vars(value)[name]) for name in columns if name in vars(value))
        return limited
    if isinstance(value, Mapping):
        found = {key: _limited(item, level) for key, item in value.items()}
        same = all(found[key] is item for key, item in value.items())
        return value if same else MappingProxyType(found)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if not value or isinstance(value[0], str | bytes | bool | int | float):
            return value
        items = tuple(_limited(item, level) for item in value)
        if all(one is other for one, other in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else items
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: limited
            for field in fields(value)
            if field.name not in _OWN_MODELS
            and (limited := _limited(given := getattr(value, field.name), level)) is not given
        }
        return replace(value, **changed) if changed else value
    return value
