"""Counts tokens and words of a clean corpus, or of files of texts.

A table depends on its source's content *and* the tokenizer: the same text under another tokenizer
gives another table. Cost: tokenising, 0.2 to 0.5 M tokens/s per core; for a corpus, decoding the
first 20 M tokens, one second per million.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from detect.settings import DetectSettings
from detect.token_frequency import (
    WORD,
    TokenFrequency,
    WordFrequency,
    save_frequency,
)
from inject.corpus.background.document import text_of
from inject.corpus.corpus import TOKENS, Corpus, corpus_tokenizer
from inject.corpus.tokenizer import encode_texts, vocabulary_size
from inject.digest import digest, text_digest
from inject.errors import InputError
from inject.reading.change_guard import unchanged
from inject.reading.rows import files_identity, read_rows
from inject.step import Step, StepContext
from inject.stream.inputs import corpus_execution, open_corpus
from train.models.model_node import GivenModel, ModelNode

_TEXTS_A_BATCH = 256
_TOKENS_A_BLOCK = 1 << 18
# Decoding and counting words takes about one second per million tokens.
_TOKENS_FOR_WORDS = 20_000_000


def frequency_step(corpus: Step, detect: DetectSettings) -> Step | None:
    """Count tokens and words: of the clean corpus (words of its first 20 M tokens), or of files.

    Args:
        corpus: the clean corpus, which also gives the tokenizer.
        detect: names the texts to count; the result is None if it names none.
    """
    if detect.frequency is None:
        return None
    pattern = None if detect.frequency == "corpus" else detect.frequency
    return Step(
        kind="frequency",
        label="corpus" if pattern is None else "files",
        function=f"{__name__}:build",
        settings={"files": [] if pattern is None else files_identity(pattern)},
        inputs={"corpus": corpus},
        libraries=("unicode",),
        reads={"corpus": TOKENS},
        execution={"pattern": pattern, **corpus_execution(corpus)},
    )


def file_frequency_step(pattern: str, model: ModelNode) -> Step:
    """Count the tokens and words of files, by the tokenizer of a pretrained model."""
    return Step(
        kind="frequency",
        label="files",
        function=f"{__name__}:build_by_model",
        settings={"files": files_identity(pattern), "tokenizer": tokenizer_digest(_load(model))},
        libraries=("unicode",),
        execution={"pattern": pattern, **model.execution("model")},
    )


def _load(model: ModelNode | GivenModel) -> Any:
    from detect.engine.target import load_tokenizer_and_context

    tokenizer, _ = load_tokenizer_and_context(
        model.pretrained or "", revision=model.revision, trust_remote_code=model.trust_remote_code
    )
    return tokenizer


def build_by_model(context: StepContext) -> None:
    """Count the tokens and words of files by a model's tokenizer, and write them."""
    tokenizer, pattern = _load(ModelNode.given(context, "model")), context.execution["pattern"]
    with unchanged("frequency", lambda: files_identity(pattern), context.settings["files"]):
        save_frequency(context.out, count_files(tokenizer, pattern))


def build(context: StepContext) -> None:
    """Count the tokens and words, and write them."""
    clean = open_corpus(context)
    tokenizer = corpus_tokenizer(context.inputs["corpus"])
    pattern = context.execution["pattern"]
    if pattern is None:
        step = 1 << 20
        blocks = (
            clean.read(start, min(start + step, clean.n_tokens))
            for start in range(0, clean.n_tokens, step)
        )
        words = count_words(_texts(clean, tokenizer))
        table = replace(count_ids(blocks, clean.facts.vocabulary), words=words)
    else:
        files = context.settings["files"]
        with unchanged("detect.frequency", lambda: files_identity(pattern), files):
            table = count_files(tokenizer, pattern)
    save_frequency(context.out, table)


def _texts(clean: Corpus, tokenizer: Any) -> Iterator[str]:
    """Yield the documents of a corpus as text, as far as their words count."""
    tail = np.zeros(0, np.int64)
    stop = min(clean.n_tokens, _TOKENS_FOR_WORDS)
    for start in range(0, stop, _TOKENS_A_BLOCK):
        block = np.concatenate([tail, clean.read(start, min(start + _TOKENS_A_BLOCK, stop))])
        ends = np.flatnonzero(block == clean.facts.end_token)
        *documents, tail = np.split(block, ends)
        yield from tokenizer.batch_decode(
            [ids.tolist() for ids in documents], skip_special_tokens=True
        )
    yield tokenizer.decode(tail.tolist(), skip_special_tokens=True)


def count_words(texts: Iterable[str]) -> WordFrequency:
    """Count the words of texts."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word.casefold() for word in WORD.findall(text))
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
            counts.update(word.casefold() for word in WORD.findall(text))
            yield text

    table = count_ids(_encode(tokenizer, counted()), vocabulary_size(tokenizer), identity=identity)
    return replace(table, words=WordFrequency(counts=counts, total=counts.total()))


def count_files(tokenizer: Any, pattern: str) -> TokenFrequency:
    """Count the texts of a file, folder or glob.

    Args:
        tokenizer: the target's tokenizer.
        pattern: as `inject.reading.rows.read_rows`; the text field is found by its usual names.

    Raises:
        InputError: no such file, unreadable rows, or no text.
    """
    identity = {"files": files_identity(pattern), "tokenizer": tokenizer_digest(tokenizer)}
    rows = read_rows(pattern, purpose="frequency")
    texts = (text for row in rows if (text := text_of(row.values, None, row.place)) is not None)
    table = count_texts(tokenizer, texts, identity=identity)
    if not table.total:
        raise InputError("contains no text to count", where=pattern)
    return table


def tokenizer_digest(tokenizer: Any) -> str:
    """Return the digest of a tokenizer's complete JSON form, which determines its ids."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return text_digest(backend.to_str())
    return digest({"class": type(tokenizer).__name__, "vocabulary": tokenizer.get_vocab()})


def _encode(tokenizer: Any, texts: Iterator[str]) -> Iterator[npt.NDArray[np.int64]]:
    while batch := list(islice(texts, _TEXTS_A_BATCH)):
        yield np.concatenate(encode_texts(tokenizer, batch))
