"""What a word of a text is, and what a reference model says of one."""

import re
from dataclasses import dataclass

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
"""Letters, with apostrophes and hyphens inside."""
TOKEN = re.compile(r"(?<![\w’'-])(?<!\d[.,])[^\W_]+(?![\w-]|[.,]\d)")
"""Letters and digits without what an apostrophe or a hyphen joins: `1984`, `river` of `river's`."""


@dataclass(frozen=True)
class WordStatistics:
    """One word of a text under the reference model."""

    start: int
    stop: int
    """Characters of the text."""
    log_probability: float
    """Of all its pieces together."""
    rank: int
    """How many pieces are likelier, at the piece where they are most."""
    first_log_probability: float
    first_rank: int
    """Of its first piece."""
