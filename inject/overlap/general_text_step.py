"""General text: documents of the background that follow the corpus, on which no model was trained.

They measure the cost of unlearning on text of the same kind as the background. The documents are
the next ones in the order of the mixture, so the corpus and its derived artifacts stay unchanged;
documents that overlap with a row of any dataset are left out, as in the corpus. An `examples`
artifact, so that its token statistics are computed like those of any pool; each document is a
separate group.

Cost: the documents before them are read once more, of each only the first words are tokenised.
"""

from collections.abc import Iterator
from typing import Any

from inject.corpus.background.document import Document
from inject.corpus.background.mixture import mixed_documents
from inject.corpus.background.registry import SOURCES, sources_identity
from inject.corpus.corpus import TOKENS, Corpus, corpus_tokenizer
from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError
from inject.examples.example import OF_EXAMPLES, Example, example_id, write_examples
from inject.overlap.corpus_step import SearchedRows
from inject.reading.change_guard import unchanged
from inject.step import Step, StepContext

DATASET = "general"
OPENING = 256
"""Approximate tokens of each document: many openings are more informative than few long
documents."""
_HEAD = 64
"""Characters that show whether a document has any token at all."""


def general_text_step(corpus: Step, tokens: int) -> Step | None:
    """Take this many tokens of the documents after a corpus; None for zero tokens.

    Args:
        corpus: its step; an imported one has no order of documents that continues after it.
        tokens: how many.
    """
    if not tokens or corpus.execution["imported"] is not None:
        return None
    return Step(
        kind="general_text",
        label=f"{tokens}-behind-{corpus.label}",
        function=f"{__name__}:build",
        # They are named, searched and ordered like those of the corpus.
        settings={**corpus.settings, "tokens": tokens},
        inputs={"corpus": corpus},
        libraries=corpus.libraries,
        code=corpus.code,
        reads={"corpus": TOKENS},
        facets=OF_EXAMPLES,
        execution=corpus.execution,
    )


def build(context: StepContext) -> None:
    """Read the documents again, and write the openings of those after the corpus."""
    settings, folder = context.settings, context.inputs["corpus"]
    sources = SOURCES.validate_python(context.execution["sources"])
    keep = SearchedRows.model_validate(context.execution["searched"]).filter(settings)
    tokenizer = corpus_tokenizer(folder)
    used = Corpus.open(folder).facts.documents
    with unchanged("corpus.sources", lambda: sources_identity(sources), settings["sources"]):
        documents = mixed_documents(sources, seed=settings["seed"], keep=keep)
        taken = take_tokens(
            documents_after(documents, used, tokenizer), settings["tokens"], tokenizer
        )
    names = [example_id(text) for text in taken]
    write_examples(
        context.out,
        [
            Example(example_id=name, dataset=DATASET, source_id=str(row), group=name, text=text)
            for row, (name, text) in enumerate(zip(names, taken, strict=True))
        ],
    )


def documents_after(documents: Iterator[Document], used: int, tokenizer: Any) -> Iterator[Document]:
    """Yield the documents that come after those of a corpus.

    Args:
        documents: in the order of the mixture.
        used: documents with a token in the corpus, the last of them cut; documents without any
            token are in between and do not count.
        tokenizer: of the corpus.
    """
    for document in documents:
        parts = document.text[:_HEAD], document.text[_HEAD:]
        if not any(len(encode_texts(tokenizer, [part])[0]) for part in parts):
            continue
        if used:
            used -= 1
            continue
        yield document


def take_tokens(documents: Iterator[Document], n_required: int, tokenizer: Any) -> list[str]:
    """Return the openings of documents until they have this many tokens.

    Raises:
        InputError: sources that are exhausted before that.
    """
    openings, tokens = [], 0
    for document in documents:
        text, length = _opening(document.text, tokenizer)
        openings.append(text)
        tokens += length
        if tokens >= n_required:
            return openings
    raise InputError(
        f"the sources have {tokens:,} tokens after the corpus, fewer than the {n_required:,} of "
        "unlearning.general_tokens",
        where="unlearning.general_tokens",
        hint="Request fewer (0 for none), add a source, or request a shorter corpus.",
    )


def _opening(text: str, tokenizer: Any) -> tuple[str, int]:
    """Return the words of a text that make about `OPENING` tokens, and how many they make."""
    length = len(encode_texts(tokenizer, [text])[0])
    if length <= OPENING:
        return text, length
    # At the end of a word, so that no token is there which the text does not have.
    whole = text[: len(text) * OPENING // length].rsplit(None, 1)
    opening = whole[0] if whole and whole[0].strip() else text
    return opening, len(encode_texts(tokenizer, [opening])[0])
