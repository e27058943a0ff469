"""The step that trains a tokenizer on the background."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from inject.corpus.background.document import Document
from inject.corpus.background.mixture import mixed_documents
from inject.corpus.background.registry import SOURCES, AnySource, source_code, sources_identity
from inject.corpus.tokenizer import train_tokenizer
from inject.reading.change_guard import unchanged
from inject.settings import plain
from inject.step import Step, StepContext

SAMPLE_BYTES = 8_000_000
"""A tokenizer is trained on this much of the mixture; more changes little and takes long."""


def tokenizer_step(
    vocabulary: int, sources: Sequence[AnySource], named: list[dict[str, Any]], *, seed: int
) -> Step:
    """Train a tokenizer with this vocabulary size on sources; `named` is their identity."""
    return Step(
        kind="tokenizer",
        label=f"bpe-{vocabulary}",
        function=f"{__name__}:build",
        settings={
            "train": vocabulary,
            "sample_bytes": SAMPLE_BYTES,
            "sources": named,
            "seed": seed,
        },
        libraries=("tokenizers",),
        code=tuple(place for source in sources for place in source_code(source)),
        execution={"sources": [plain(source) for source in sources]},
    )


def build(context: StepContext) -> None:
    """Train the tokenizer, and save it."""
    settings = context.settings
    sources = SOURCES.validate_python(context.execution["sources"])
    with unchanged("corpus.sources", lambda: sources_identity(sources), settings["sources"]):
        texts = _sample(mixed_documents(sources, seed=settings["seed"]), settings["sample_bytes"])
        tokenizer = train_tokenizer(texts, settings["train"])
    tokenizer.save_pretrained(context.out)


def _sample(documents: Iterable[Document], limit: int) -> Iterator[str]:
    """Yield texts until they contain `limit` UTF-8 bytes."""
    taken = 0
    for document in documents:
        if taken >= limit:
            return
        taken += len(document.text.encode())
        yield document.text
