"""The step that trains a tokenizer on the background."""

from collections.abc import Iterable, Iterator
from typing import Any

from inject.corpus.background.background import Background
from inject.corpus.background.document import Document
from inject.corpus.tokenizer import train_tokenizer
from inject.step import Step, StepContext

SAMPLE_BYTES = 8_000_000
"""A tokenizer is trained on this much of the mixture; more changes little and takes long."""


def tokenizer_step(background: Background, named: list[dict[str, Any]], vocabulary: int) -> Step:
    """Train a tokenizer on the sources.

    Args:
        background: what it is trained on.
        named: its identity.
        vocabulary: number of ids.
    """
    return Step(
        kind="tokenizer",
        label=f"bpe-{vocabulary}",
        function=f"{__name__}:build",
        settings={
            "train": vocabulary,
            "sample_bytes": SAMPLE_BYTES,
            "sources": named,
            "seed": background.seed,
        },
        libraries=("tokenizers",),
        code=background.code(),
        execution={"background": background.plain()},
    )


def build(context: StepContext) -> None:
    """Train the tokenizer, and save it."""
    settings = context.settings
    background = Background.given(context.execution["background"])
    with background.unchanged(settings["sources"]):
        texts = _sample(background.documents(), settings["sample_bytes"])
        tokenizer = train_tokenizer(texts, settings["train"])
    tokenizer.save_pretrained(context.out)


def _sample(documents: Iterable[Document], limit: int) -> Iterator[str]:
    """Yield texts until they hold `limit` UTF-8 bytes."""
    taken = 0
    for document in documents:
        if taken >= limit:
            return
        taken += len(document.text.encode())
        yield document.text
