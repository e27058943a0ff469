"""Paraphrases that a model writes: asked once, checked, and kept.

An answer that is empty, or the text itself, is asked for again with another seed, a few times;
then it is an error that names the row. Answers are kept in a folder under the digest of everything
that they depend on, so that a killed run asks for none twice.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from inject.digest import digest
from inject.errors import InputError
from inject.examples.example import Example
from inject.files import write_text
from inject.variants.settings import ParaphraseVariant

TRIES = 4


class TextGenerator(Protocol):
    """A model that answers prompts."""

    def write(self, prompt: str, *, seed: int) -> str:
        """Return the model's answer to a prompt."""
        ...


def dataset_paraphrases(example: Example, versions: int) -> list[str]:
    """Return the first paraphrases that the dataset brings.

    Raises:
        InputError: it brings fewer than `versions`.
    """
    if len(example.paraphrases) < versions:
        raise InputError(
            f"the variant `paraphrase` needs {versions} paraphrases of each row, and row "
            f"{example.source_id} brings {len(example.paraphrases)}",
            where=f"contaminants.{example.dataset}",
            hint="Lower `versions`, or let a model write them: {kind: paraphrase, by: model, …}.",
        )
    return list(example.paraphrases[:versions])


def model_paraphrases(
    examples: Sequence[Example],
    variant: ParaphraseVariant,
    *,
    writer: TextGenerator,
    cache: Path | None,
    progress: Callable[[int, int], None] | None,
) -> list[list[str]]:
    """Return `versions` paraphrases of each example.

    Args:
        examples: in order.
        variant: model, prompt, temperature, seed.
        writer: the model.
        cache: a folder for answers; None keeps nothing.
        progress: called with the number of answers so far, and in all.

    Raises:
        InputError: the model returns nothing, or the text itself, `TRIES` times.
    """
    written = []
    total = len(examples) * variant.versions
    for place, example in enumerate(examples):
        versions = []
        for version in range(variant.versions):
            versions.append(_paraphrase(example, variant, version, writer, cache))
            if progress is not None:
                progress(place * variant.versions + version + 1, total)
        written.append(versions)
    return written


def _paraphrase(
    example: Example,
    variant: ParaphraseVariant,
    version: int,
    writer: TextGenerator,
    cache: Path | None,
) -> str:
    prompt = variant.prompt.replace("{text}", example.text)
    answer = ""
    for attempt in range(TRIES):
        seed = (variant.seed + version * TRIES + attempt) % 2**31
        answer = _asked(prompt, variant, seed, writer, cache).strip()
        if answer and _plain(answer) != _plain(example.text):
            return answer
    raise InputError(
        f"the paraphrase model {variant.model} returned "
        f"{'the text unchanged' if answer else 'nothing'} for row {example.source_id}, "
        f"{TRIES} times with different seeds",
        where=f"contaminants.{example.dataset}",
        hint="Raise the temperature, change the prompt, or use another model.",
    )


def _asked(
    prompt: str, variant: ParaphraseVariant, seed: int, writer: TextGenerator, cache: Path | None
) -> str:
    asked = {
        "model": variant.model,
        "base_url": variant.base_url,
        "prompt": prompt,
        "temperature": variant.temperature,
        "max_tokens": variant.max_tokens,
        "seed": seed,
    }
    path = cache / f"answer-{digest(asked)[:32]}.json" if cache is not None else None
    if path is not None and path.is_file():
        return str(json.loads(path.read_text(encoding="utf-8"))["answer"])
    answer = writer.write(prompt, seed=seed)
    if path is not None:
        write_text(path, json.dumps({"answer": answer}, ensure_ascii=False))
    return answer


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
