"""Token frequencies of a reference corpus, counted once with the target's tokenizer, and its words.

f(v) = (count_v + 1) / (Σ count + |V|), Laplace (Zhang et al. 2024, DC-PDD, equation 5); |V| is the
number of tokens of the tokenizer. Words are runs of letters and digits, with apostrophes and
hyphens inside, regardless of case. `detect.evidence.token_counts` counts both.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from inject.files import write_text
from inject.tables import read_parquet

_COUNTS = "counts.npy"
_FACTS = "frequency.json"
_WORDS = "word_counts.parquet"
FREQUENCY_FILES = (_COUNTS, _FACTS, _WORDS)
WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")


@dataclass(frozen=True, kw_only=True, eq=False)
class WordFrequency:
    """Counts of each word in a reference corpus."""

    counts: Mapping[str, int]
    """By word in its case-folded form."""
    total: int
    """Number of counted words."""

    def probability(self, word: str) -> float:
        """Return the share of a word, Laplace-smoothed: one that never occurs is rarest."""
        count = self.counts.get(word.casefold(), 0)
        return (count + 1) / (self.total + len(self.counts) + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenFrequency:
    """Counts of each token id in a reference corpus."""

    counts: npt.NDArray[np.int64]
    """[|V|]"""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """The source and the tokenizer; plain JSON values."""
    words: WordFrequency | None = None
    """Counts of the words; None if only ids were counted."""

    @property
    def total(self) -> int:
        """Σ count: the number of counted tokens."""
        return int(self.counts.sum())

    def log_frequency(self, ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """Return log f of each id, Laplace-smoothed (DC-PDD, equation 5)."""
        return np.log((self.counts[ids] + 1.0) / (self.total + len(self.counts)))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of a text's words: first character, and one past the last."""
    return [match.span() for match in WORD.finditer(text)]


def save_frequency(folder: Path, table: TokenFrequency) -> None:
    """Write counts, words and their source into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / _COUNTS, table.counts, allow_pickle=False)
    if table.words is not None:
        ordered = sorted(table.words.counts.items())
        columns = {
            "word": pa.array([word for word, _ in ordered], pa.string()),
            "count": pa.array([count for _, count in ordered], pa.int64()),
        }
        pq.write_table(pa.table(columns), folder / _WORDS)
    write_text(folder / _FACTS, json.dumps(table.identity, sort_keys=True))


def load_frequency(folder: Path) -> TokenFrequency:
    """Read the table that `save_frequency` wrote."""
    return TokenFrequency(
        counts=np.load(folder / _COUNTS, allow_pickle=False),
        identity=json.loads((folder / _FACTS).read_text(encoding="utf-8")),
        words=_load_words(folder / _WORDS),
    )


def _load_words(path: Path) -> WordFrequency | None:
    if not path.is_file():
        return None
    table = read_parquet(path)
    counts = dict(
        zip(table.column("word").to_pylist(), table.column("count").to_pylist(), strict=True)
    )
    return WordFrequency(counts=counts, total=sum(counts.values()))
