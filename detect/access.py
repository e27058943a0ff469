"""What a detector sees of the target: six levels, each of which includes those before it.

A detector's level follows from its needs (`detect.needs`), or is declared where it reads more of
them than the least: token statistics hold both the tokens' log-probabilities and what the whole
distribution says.
"""

from enum import IntEnum


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
    DISTRIBUTION = 4
    """The whole distribution over the vocabulary."""
    WEIGHTS = 5
    """The weights: gradients, hidden states, a copy that is trained."""

    @property
    def label(self) -> str:
        """The level as tables have it."""
        return _LABELS[self]


_LABELS = {
    Access.NONE: "none",
    Access.TEXT: "text",
    Access.LABELS: "label probabilities",
    Access.TOKENS: "token log-probabilities",
    Access.DISTRIBUTION: "full distribution",
    Access.WEIGHTS: "weights",
}
