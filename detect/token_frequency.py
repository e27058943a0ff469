"""Token frequencies of a reference corpus, counted once with the target's tokenizer, and its words.

f(v) = (count_v + 1) / (Σ count + |V|), Laplace (Zhang et al. 2024, DC-PDD, equation 5); |V| is the
number of tokens of the tokenizer. `frequency_key` names a table by the content of its source *and*
the tokenizer: the same text under another tokenizer is another table. Words are runs of letters and
digits, with apostrophes and hyphens inside, whatever their case. Cost: that of tokenising, 0.2 to
0.5 M tokens/s a core.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from inject.corpus.background.document import text_of
from inject.corpus.tokenizer import encode_texts, vocabulary_size
from inject.digest import digest, text_digest
from inject.errors import InputError
from inject.files import write_text
from inject.reading.rows import files_identity, read_rows
from inject.sealed import seal, whole
from inject.tables import read_parquet

_COUNTS = "counts.npy"
_FACTS = "frequency.json"
_WORDS = "word_counts.parquet"
_TEXTS_A_BATCH = 256
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")


@dataclass(frozen=True, kw_only=True, eq=False)
class WordFrequency:
    """Counts of each word in a reference corpus."""

    counts: Mapping[str, int]
    """By word in its case-folded form."""
    total: int
    """How many words were counted."""

    def probability(self, word: str) -> float:
        """Return the share of a word, Laplace-smoothed: one that was never counted is rarest."""
        count = self.counts.get(word.casefold(), 0)
        return (count + 1) / (self.total + len(self.counts) + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenFrequency:
    """Counts of each token id in a reference corpus."""

    counts: npt.NDArray[np.int64]
    """[|V|]"""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What was counted, with which tokenizer; plain JSON values."""
    words: WordFrequency | None = None
    """Counts of the words; None where only ids were counted."""

    @property
    def total(self) -> int:
        """Σ count: how many tokens were counted."""
        return int(self.counts.sum())

    def log_frequency(self, ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """Return log f of each id, Laplace-smoothed (DC-PDD, equation 5)."""
        return np.log((self.counts[ids] + 1.0) / (self.total + len(self.counts)))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where the words of a text stand: first character, and one past the last."""
    return [found.span() for found in _WORD.finditer(text)]


def count_words(texts: Iterable[str]) -> WordFrequency:
    """Count the words of texts."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(found.casefold() for found in _WORD.findall(text))
    return WordFrequency(counts=counts, total=counts.total())


def count_ids(
    arrays: Iterable[npt.NDArray[np.integer[Any]]],
    vocabulary: int,
    *,
    identity: Mapping[str, Any] | None = None,
) -> TokenFrequency:
    """Count ids of 0 … vocabulary − 1 in arrays, such as the blocks of a corpus."""
    counts = np.zeros(vocabulary, np.int64)
    for array in arrays:
        counts += np.bincount(array, minlength=vocabulary)
    return TokenFrequency(counts=counts, identity=identity or {})


def count_texts(
    tokenizer: Any, texts: Iterable[str], *, identity: Mapping[str, Any] | None = None
) -> TokenFrequency:
    """Count the tokens and words of texts; no start or end tokens are added."""
    counts: Counter[str] = Counter()

    def counted() -> Iterator[str]:
        for text in texts:
            counts.update(found.casefold() for found in _WORD.findall(text))
            yield text

    table = count_ids(_encoded(tokenizer, counted()), vocabulary_size(tokenizer), identity=identity)
    return replace(table, words=WordFrequency(counts=counts, total=counts.total()))


def count_files(tokenizer: Any, pattern: str, *, cache: Path | None = None) -> TokenFrequency:
    """Count the texts of a file, folder or glob, or take the table from the cache.

    Args:
        tokenizer: the target's.
        pattern: as `inject.reading.rows.read_rows`; the text field is found by its usual names.
        cache: a folder of tables, each in a folder named by `frequency_key`.

    Raises:
        InputError: no such file, unreadable rows, no text at all.
    """
    identity = {"files": files_identity(pattern), "tokenizer": tokenizer_digest(tokenizer)}
    folder = cache / frequency_key(identity["files"], tokenizer) if cache else None
    if folder and whole(folder):
        return load_frequency(folder)
    rows = read_rows(pattern, what="frequency")
    texts = (text for row in rows if (text := text_of(row.values, None, row.place)) is not None)
    table = count_texts(tokenizer, texts, identity=identity)
    if not table.total:
        raise InputError("holds no text to count", where=pattern)
    if folder:
        save_frequency(folder, table)
        seal(folder, {"of": identity})
    return table


def frequency_key(source: Any, tokenizer: Any) -> str:
    """Return the 16 hex digits that name a table: its source's content and the tokenizer.

    Args:
        source: canonical identity of what is counted (`files_identity`, a corpus digest).
        tokenizer: the tokenizer it is counted with.
    """
    return digest({"source": source, "tokenizer": tokenizer_digest(tokenizer)})[:16]


def tokenizer_digest(tokenizer: Any) -> str:
    """Return the digest of all that decides a tokenizer's ids (its complete JSON form)."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return text_digest(backend.to_str())
    return digest({"class": type(tokenizer).__name__, "vocabulary": tokenizer.get_vocab()})


def save_frequency(folder: Path, table: TokenFrequency) -> None:
    """Write counts, words and what was counted into a folder, which is made."""
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
    """Read what `save_frequency` wrote."""
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


def _encoded(tokenizer: Any, texts: Iterator[str]) -> Iterator[npt.NDArray[np.int64]]:
    while batch := list(islice(texts, _TEXTS_A_BATCH)):
        yield np.concatenate(encode_texts(tokenizer, batch))
