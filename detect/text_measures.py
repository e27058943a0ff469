"""Measures of a text with separate files: norms of its gradient, and its neighbours.

Computing them requires torch; this module, which detectors import, does not.
"""

from dataclasses import dataclass, field
from typing import Literal

from inject.tables import record_table

Order = Literal["1", "2", "inf"]
ORDERS: tuple[Order, ...] = ("1", "2", "inf")
NORMS_FILE = "gradients.parquet"


@dataclass(frozen=True, kw_only=True)
class GradientNorms:
    """The norms of one text; all None if it has no loss."""

    whole: float | None = None
    """2-norm over all trained parameters together."""
    tensors: tuple[float, ...] | None = None
    """Mean over the trained tensors of each one's p-norm, for p of `ORDERS`."""
    embeddings: tuple[float, ...] | None = None
    """p-norm of the gradient with respect to the input embeddings, for p of `ORDERS`."""
    reason: str | None = None
    """Reason why there are none, else None."""
    tokens_in: int = field(default=0, compare=False)
    """Tokens with a loss; not stored."""


write_norms, read_norms = record_table(NORMS_FILE, GradientNorms, unwritten="tokens_in")


NEIGHBOURS_FILE = "neighbours.parquet"
MEANS_FILE = "neighbour_means.parquet"


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The neighbours of one text, the likeliest exchange first."""

    texts: tuple[str, ...] = ()
    reason: str | None = None
    """Reason why there are none, else None."""


@dataclass(frozen=True, kw_only=True)
class NeighbourMeans:
    """The target's mean log-probabilities of the neighbours of one text."""

    means: tuple[float, ...] = ()
    """Mean log-probability of each neighbour that could be scored."""
    reason: str | None = None
    """Reason why there are none, else None."""


write_neighbours, read_neighbours = record_table(NEIGHBOURS_FILE, Neighbours)
write_means, read_means = record_table(MEANS_FILE, NeighbourMeans)
