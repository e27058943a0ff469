"""The mixture: shares, order, duplicates, and exhausted sources."""

import hashlib
import itertools
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.background import mixture
from inject.corpus.background.document import Document, Skipped
from inject.corpus.background.mixture import mixed_documents
from inject.errors import InputError
from inject.keyed import Stream, words


@dataclass(frozen=True)
class Fake:
    texts: Sequence[str]
    weight: float = 1.0
    finite: bool = True

    def label(self) -> str:
        return f"fake {self.weight}"

    def documents(self, skipped: Skipped | None = None) -> Iterator[Document]:
        for number, text in enumerate(self.texts):
            if text:
                yield Document(text, f"fake:{number}")
            elif skipped is not None:
                skipped.empty += 1


def texts_of(*sources: Fake, seed: int = 0) -> list[str]:
    return [document.text for document in mixed_documents(sources, seed=seed)]


texts = st.lists(st.text(min_size=1, max_size=6), max_size=12)
sizes = st.lists(st.integers(1, 40), min_size=8, max_size=30)


@settings(max_examples=30, deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), st.integers(0, 2**64 - 1))
def test_texts_come_once_in_any_reading_order(pools, seed):
    def key(text: str) -> int:
        item = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        return int(words(seed, Stream.DOCUMENT_ORDER, item))

    mixed = texts_of(*(Fake(pool) for pool in pools), seed=seed)
    assert Counter(mixed) == Counter({text for pool in pools for text in pool})
    assert mixed == texts_of(*(Fake(pool[::-1]) for pool in pools), seed=seed)
    assert texts_of(Fake(pools[0]), seed=seed) == sorted(set(pools[0]), key=key)


def test_a_stream_keeps_its_order_and_is_read_no_further_than_needed():
    read = []

    class Stream(Fake):
        def documents(self, skipped: Skipped | None = None) -> Iterator[Document]:
            for number in itertools.count():
                read.append(number)
                yield Document(f"stream {number}", "s")

    taken = list(itertools.islice(mixed_documents([Stream([], finite=False)], seed=3), 20))
    assert [document.text for document in taken] == [f"stream {number}" for number in range(20)]
    assert len(read) <= 22


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(sizes, st.sampled_from([0.1, 0.3, 1.0, 7.0])), min_size=2, max_size=5),
    st.integers(0, 99),
)
def test_sources_are_within_one_document_of_their_share(pools, seed):
    sources = [
        Fake([f"{index:02}{number:03}".ljust(5 + size, "x") for number, size in enumerate(pool)], w)
        for index, (pool, w) in enumerate(pools)
    ]
    largest = max(5 + size for pool, _ in pools for size in pool)
    total_weight = sum(source.weight for source in sources)
    characters, left = [0] * len(sources), [len(source.texts) for source in sources]
    for document in mixed_documents(sources, seed=seed):
        characters[document.source] += len(document.text)
        left[document.source] -= 1
        for source, have in zip(sources, characters, strict=True):
            share = source.weight / total_weight * sum(characters)
            assert share - have <= largest + 1e-6
        if 0 in left:
            break


def test_duplicates_and_empty_rows_are_counted():
    report = []
    sources = [Fake(["a", "b", "a", "", "a"]), Fake(["b", "c", "", ""], finite=False)]
    mixed = [document.text for document in mixed_documents(sources, seed=0, report=report)]
    assert sorted(mixed) == ["a", "b", "c"]
    assert sum(source.duplicates for source in report) == 3
    assert [source.empty for source in report] == [1, 2]
    assert sum(source.documents for source in report) == 3
    assert sum(source.bytes for source in report) == 3
    assert all(source.exhausted for source in report)


def test_exhausted_source_is_reported_and_the_others_continue(caplog):
    report = []
    sources = [
        Fake([f"a{number}" for number in range(3)], 5),
        Fake([f"b{number}" for number in range(300)], 1),
        Fake([f"c{number}" for number in range(300)], 2),
    ]
    with caplog.at_level(logging.WARNING):
        mixed = mixed_documents(sources, seed=0, report=report)
        sources_drawn = [next(mixed).source for _ in range(93)][3:]
    assert [source.exhausted for source in report] == [True, False, False]
    assert sources_drawn.count(2) == pytest.approx(2 * sources_drawn.count(1), rel=0.15)
    assert [record.getMessage() for record in caplog.records] == [
        "background: fake 5 is exhausted after 3 documents (6 bytes); the other sources "
        "continue without it"
    ]


def test_the_memory_of_a_finite_source_is_bounded(monkeypatch):
    monkeypatch.setattr(mixture, "HELD_BYTES", 1 << 20)
    large = [f"{number}".ljust(1000) for number in range(1100)]
    with pytest.raises(InputError, match="more than 1 MiB of text"):
        texts_of(Fake(large))
    assert len(texts_of(Fake(large, finite=False))) == 1100


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(texts, st.integers(1, 5)), min_size=1, max_size=3),
    st.integers(0, 5),
    st.integers(1, 30),
)
def test_rejected_documents_do_not_affect_the_mixture(pools, unwanted, count):
    """Order, shares and prefixes depend only on the accepted documents."""
    sources = [Fake(pool, weight=weight) for pool, weight in pools]
    accepted = [
        Fake([text for text in pool if len(text) != unwanted], weight=weight)
        for pool, weight in pools
    ]
    checked: list[tuple[int, str]] = []

    def keep(document: Document) -> bool:
        checked.append((document.source, document.text))
        return len(document.text) != unwanted

    report, clean = [], []
    mixed = list(
        itertools.islice(mixed_documents(sources, seed=3, report=report, keep=keep), count)
    )
    expected = list(itertools.islice(mixed_documents(accepted, seed=3, report=clean), count))
    assert [document.text for document in mixed] == [document.text for document in expected]
    assert [facts.bytes for facts in report] == [facts.bytes for facts in clean]
    refused = Counter(source for source, text in checked if len(text) == unwanted)
    assert [facts.dropped for facts in report] == [refused[index] for index in range(len(sources))]
    # Each document of a source is checked once, however long it waits to be drawn.
    per_source = Counter(checked)
    assert all(
        per_source[index, text] <= sources[index].texts.count(text) for index, text in per_source
    )
