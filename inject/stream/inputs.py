"""How steps open their inputs: the corpus, the examples as tokens, and the variants of copies.

The paths of an import's files are execution, never identity: the store may have a corpus that was
imported from a folder which has been moved, copied or changed since. `corpus_execution` gives a
step that reads a corpus the paths, when the step is made.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inject.corpus.corpus import Corpus, corpus_tokenizer
from inject.corpus.imported_layout import token_files
from inject.corpus.tokenizer import encode_texts
from inject.examples.example import Example, read_examples
from inject.keyed import I64
from inject.step import Step, StepContext
from inject.stream.exposures import TextKey
from inject.variants.rendition import WHOLE, Rendition, read_renditions


def corpus_execution(corpus: Step) -> dict[str, Any]:
    """Return the execution of a step that opens a corpus: the origin of its import.

    Args:
        corpus: the step that made it.
    """
    return {"imported": corpus.execution["imported"]}


def variants_of(plan: Step) -> dict[str, Step]:
    """Return a plan's variants as an input of the steps that read them, if it has any."""
    return {"variants": plan.inputs["variants"]} if "variants" in plan.inputs else {}


def open_corpus(context: StepContext) -> Corpus:
    """Open a step's input `corpus`; files of an import are compared with it, once a process.

    Raises:
        InputError: as `Corpus.open`.
    """
    return Corpus.open(context.inputs["corpus"], outside=token_files(context.execution["imported"]))


@contextmanager
def reading_corpus(context: StepContext) -> Iterator[list[str]]:
    """Check the corpus before and after it is read by code that does not check it.

    Yields:
        The paths of its shards.

    Raises:
        InputError: as `Corpus.open`, before anything is read or after all is.
    """
    opened = open_corpus(context)
    yield [str(file) for file in opened.files]
    Corpus.open(Path(opened.path), outside=opened.files)


def example_tokens(examples: Sequence[Example], tokenizer: Any) -> dict[str, I64]:
    """Return the token ids of each example's text, by example_id; no special tokens."""
    encoded = encode_texts(tokenizer, [example.text for example in examples])
    return {example.example_id: ids for example, ids in zip(examples, encoded, strict=True)}


def read_pool_and_corpus(context: StepContext) -> tuple[list[Example], dict[str, I64], Corpus]:
    """Return examples, their token ids and the clean corpus of a step's inputs."""
    clean = open_corpus(context)
    pool = read_examples(context.inputs["examples"])
    tokenizer = corpus_tokenizer(context.inputs["corpus"])
    return pool, example_tokens(pool, tokenizer), clean


def renditions_of(context: StepContext) -> list[Rendition] | None:
    """Return the texts that copies can carry; None if they all carry the whole example."""
    return read_renditions(context.inputs["variants"]) if "variants" in context.inputs else None


def copy_texts(context: StepContext, tokens: Mapping[str, I64]) -> dict[TextKey, I64]:
    """Return the token ids of each text that copies can carry, by example_id and variant.

    Args:
        context: of the step; with the input `variants` if the experiment has any.
        tokens: token ids of each whole example.
    """
    renditions = renditions_of(context)
    if renditions is None:
        return {(name, WHOLE): ids for name, ids in tokens.items()}
    return {(rendition.example_id, rendition.variant): rendition.tokens for rendition in renditions}
