"""Check that scores of two models can be divided by one another, before any is computed.

The models must tokenize texts identically and have the same shape. A retrained model must not have
been trained on the texts, as far as its folder records its training data.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from analysis.unlearning_audit.evidence import AUDITED, HOLDOUT
from inject.errors import InputError, first_names
from inject.examples.example import Example, example_id
from train.models.model_node import ModelNode

_SHAPE = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
_NAMED = 3


class Comparable(NamedTuple):
    """Common properties of models with comparable scores."""

    guessing: float
    """Loss of guessing tokens by their frequency, as `guessing_loss`."""
    context: tuple[int, str] | None
    """The fewest positions of any model, and its name; None if none has a limit."""
    notes: tuple[str, ...]


def check_comparable(models: Mapping[str, ModelNode], chunks: Sequence[Example]) -> Comparable:
    """Refuse models whose scores are not comparable.

    Raises:
        InputError: for a model of another shape than the original, or with another tokenizer; names
            both.
    """
    from detect.engine.target import load_tokenizer_and_context

    notes: list[str] = []
    contexts: list[tuple[int, str]] = []
    original: Any = None
    shape: dict[str, Any] = {}
    first = ""
    for model in models.values():
        name = model.pretrained or ""
        tokenizer, context = load_tokenizer_and_context(
            name, revision=model.revision, trust_remote_code=model.trust_remote_code
        )
        if context is not None:
            contexts.append((context, name))
        if original is None:
            original, shape, first = tokenizer, _shape(model), name
            continue
        _check_shape(shape, _shape(model), (first, name))
        notes += _check_tokens(original, tokenizer, (first, name), chunks)
    guessing = guessing_loss(
        chunks, [original(chunk.text)["input_ids"] for chunk in chunks], int(shape["vocab_size"])
    )
    return Comparable(guessing, min(contexts, default=None), tuple(notes))


def guessing_loss(
    chunks: Sequence[Example], tokens: Sequence[Sequence[int]], vocabulary: int
) -> float:
    """Return the loss, in nats per token, of guessing tokens by their frequency in the other texts.

    It is that of the control chunks, or of the audited ones if there are none. Unseen tokens share
    the probability of Witten and Bell (1991). A language model, which has read more and sees the
    context, does better.
    """
    scored = {chunk.dataset for chunk in chunks} & {HOLDOUT} or {AUDITED}
    everywhere, of_group = Counter[int](), defaultdict[str, Counter[int]](Counter)
    for chunk, ids in zip(chunks, tokens, strict=True):
        everywhere.update(ids)
        of_group[chunk.group].update(ids)
    losses = []
    for chunk, ids in zip(chunks, tokens, strict=True):
        if chunk.dataset in scored:
            own = of_group[chunk.group]
            total = everywhere.total() - own.total()
            kinds = max(len(everywhere) - sum(everywhere[token] == own[token] for token in own), 1)
            likely = (
                (everywhere[token] - own[token] + kinds / vocabulary) / (total + kinds)
                for token in ids
            )
            losses.append(-fmean(map(log, likely)))
    return round(fmean(losses), 6)


def check_never_fed(retrained: str, texts: Sequence[Example], chunks: Sequence[Example]) -> None:
    """Refuse a retrained model that was trained on one of the texts.

    A folder written by spikein lists in `exposures.parquet` the examples that the model was trained
    on, by the hash of their text. Nothing is known about other models.

    Raises:
        InputError: naming the texts.
    """
    from inject.stream.exposures import EXPOSURES_FILE, NEVER, read_exposures

    folder = Path(retrained).expanduser()
    if not (folder / EXPOSURES_FILE).is_file():
        return
    rows = read_exposures(folder, columns=["example_id", "status"]).to_pylist()
    fed = {row["example_id"] for row in rows if row["status"] != NEVER}
    ids = {source.source_id: source.source_id for source in texts}
    ids |= {example_id(source.text): source.source_id for source in texts}
    ids |= {example_id(chunk.text): chunk.source_id for chunk in chunks}
    seen = sorted({ids[name] for name in fed & ids.keys()})
    if seen:
        raise InputError(
            f"the retrained model was trained on {len(seen):,} of the texts: "
            f"{first_names(seen, _NAMED)}",
            where=str(folder / EXPOSURES_FILE),
            hint="A retrained model must not have seen any of them.",
        )


def _shape(model: ModelNode) -> dict[str, Any]:
    from transformers import AutoConfig

    from train.models.pretrained import code_options, find_model

    name, trust = model.pretrained or "", model.trust_remote_code
    model_folder = find_model(name, revision=model.revision, trust_remote_code=trust)
    code = code_options(model_folder, name, trust_remote_code=trust)
    config = AutoConfig.from_pretrained(model_folder.path, local_files_only=True, **code)
    text = config.get_text_config()
    return {key: getattr(text, key, None) for key in _SHAPE}


def _check_shape(
    original: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]
) -> None:
    unlike = [key for key in _SHAPE if original[key] != other[key]]
    if unlike:
        differences = ", ".join(f"{key} {original[key]} and {other[key]}" for key in unlike)
        raise InputError(
            f"it has another shape than {names[0]}: {differences}",
            where=names[1],
            hint="An unlearned or retrained model has the architecture of the original.",
        )


def _check_tokens(
    original: Any, other: Any, names: tuple[str, str], chunks: Sequence[Example]
) -> list[str]:
    """Refuse tokenizers that read the texts differently; tokens outside the texts may differ."""
    for number, chunk in enumerate(chunks):
        first, second = (tokenizer(chunk.text)["input_ids"] for tokenizer in (original, other))
        if first != second:
            at = next(
                (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
                min(len(first), len(second)),
            )
            raise InputError(
                f"its tokenizer is not that of {names[0]}: they read chunk {number} of "
                f"{chunk.source_id} as {len(second):,} and {len(first):,} tokens, which differ "
                f"from token {at + 1} on",
                where=names[1],
                hint="Scores can only be divided if both models score the same tokens.",
            )
    vocabulary, own_vocabulary = original.get_vocab(), other.get_vocab()
    unlike = {
        token
        for token in vocabulary.keys() | own_vocabulary.keys()
        if vocabulary.get(token) != own_vocabulary.get(token)
    }
    if not unlike:
        return []
    return [
        f"the vocabularies of {names[0]} and {names[1]} differ in {len(unlike):,} tokens, none of "
        "which occurs in the texts"
    ]
