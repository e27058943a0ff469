"""Speed of building a corpus compared with the tokenizer's batch encoding of the same texts.

The texts are the docstrings of the standard library, numpy and scipy, in memory; the
tokenizer is trained on them. Both sides use all cores: the build one process per core, the batch
encoding one thread per core. They alternate, and the ratio is the median over pairs. Reading and
ordering the sources is not part of either side.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inject.corpus.background.docstrings import DocstringsSource
from inject.corpus.background.document import Document
from inject.corpus.build import BuildOptions, build_corpus
from inject.corpus.parallel_tokenisation import processes_for
from inject.corpus.tokenizer import train_tokenizer

PACKAGES = ["stdlib", "numpy", "scipy"]
VOCABULARY = 8192
REPEATS = 4
"""The texts are taken this many times over: a build of seconds, not of its start-up."""


def measure(*, rounds: int = 3) -> dict[str, Any]:
    """Return the ratio of throughputs, and both in MB of text a second."""
    # The variable is read once a process, before the first encoding.
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    texts = real_texts() * REPEATS
    tokenizer = train_tokenizer(texts[: len(texts) // REPEATS // 4], VOCABULARY)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    tokens = sum(
        len(item.ids) + 1
        for item in tokenizer.backend_tokenizer.encode_batch_fast(texts)
        if item.ids
    )
    processes = processes_for(10**12)
    encoding, building = [], []
    for _ in range(rounds):
        encoding.append(_seconds_to_encode(tokenizer, texts))
        building.append(_seconds_to_build(tokenizer, texts, tokens, processes))
    ratios = [plain / built for plain, built in zip(encoding, building, strict=True)]
    return {
        "build_over_tokenizer": statistics.median(ratios),
        "build_over_tokenizer_rounds": ratios,
        "build_mb_per_second": megabytes / statistics.median(building),
        "tokenizer_mb_per_second": megabytes / statistics.median(encoding),
        "build_processes": processes,
        "build_tokens": tokens,
        "build_mb": megabytes,
    }


def real_texts() -> list[str]:
    """Return the docstrings, the order of the source."""
    source = DocstringsSource(kind="docstrings", packages=PACKAGES)
    return [document.text for document in source.documents()]


def _seconds_to_encode(tokenizer: Any, texts: list[str]) -> float:
    started = time.perf_counter()
    tokenizer.backend_tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return time.perf_counter() - started


def _seconds_to_build(tokenizer: Any, texts: list[str], tokens: int, processes: int) -> float:
    def documents() -> Iterator[Document]:
        for index, text in enumerate(texts):
            yield Document(text, f"text {index}")

    with tempfile.TemporaryDirectory(prefix="spikein-bench-") as name:
        started = time.perf_counter()
        build_corpus(
            Path(name),
            documents=documents(),
            tokenizer=tokenizer,
            tokens=tokens,
            options=BuildOptions(processes=processes),
        )
        return time.perf_counter() - started
