"""Whether scores of two models can be divided by one another, before any of them is asked.

The models must cut texts into the same tokens, and be of one shape; a retrained model must not have
been fed what it stands for not knowing, as far as its folder says what it was fed.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.unlearning_audit.checks import Weights
from analysis.unlearning_audit.text_chunks import Chunk, SourceText
from inject.errors import InputError
from inject.examples.example import example_id
from spikein.unlearning_audit.request import AuditSettings

_SHAPE = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
_NAMED = 3


def check_comparable(
    settings: AuditSettings, chunks: Sequence[Chunk]
) -> tuple[tuple[str, ...], int]:
    """Refuse models whose scores say nothing of one another; return notes, and the vocabulary.

    Raises:
        InputError: a model that is not there, of another shape than the original, or with another
            tokenizer; names both.
    """
    from detect.engine.target import load_tokenizer_and_context

    tokenizers, shapes = {}, {}
    for name, model in settings.models.items():
        options: dict[str, Any] = {
            "revision": getattr(settings.revisions, name),
            "trust_remote_code": settings.trust_remote_code,
        }
        tokenizers[name], _ = load_tokenizer_and_context(model, **options)
        shapes[name] = _shape(model, options)
    notes: list[str] = []
    for name in tokenizers:
        if name == "original":
            continue
        both = (settings.original, settings.models[name])
        _check_shape(shapes["original"], shapes[name], both)
        notes += _check_tokens(tokenizers["original"], tokenizers[name], both, chunks)
    return tuple(notes), int(shapes["original"]["vocab_size"])


def compare_weights(settings: AuditSettings) -> Weights:
    """Return how the unlearned model's weights lie to the original's, read tensor by tensor.

    Cost: one reading of both models' files; the largest matrix of each in memory.
    """
    from train.models.pretrained import find_model, model_identity

    names = [settings.original, settings.unlearned]
    revisions = [settings.revisions.original, settings.revisions.unlearned]
    pairs = list(zip(names, revisions, strict=True))
    folders = [find_model(name, revision=revision) for name, revision in pairs]
    if any(folder.adapter for folder in folders):
        first, second = (model_identity(name, revision=revision) for name, revision in pairs)
        return Weights(first == second, math.nan, "a LoRA adapter is compared by its digest alone")
    return _compare_tensors(*(_tensors(folder.path) for folder in folders))


def _tensors(folder: Path) -> dict[str, Path]:
    """Return the file of each tensor by its name."""
    from safetensors import safe_open

    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            found |= dict.fromkeys(file.keys(), path)
    return found


def _compare_tensors(one: Mapping[str, Path], other: Mapping[str, Path]) -> Weights:
    import torch
    from safetensors import safe_open

    same = one.keys() == other.keys()
    products = np.zeros(3)
    for name in sorted(one.keys() & other.keys()):
        pair = []
        for path in (one[name], other[name]):
            with safe_open(path, "pt") as file:
                pair.append(file.get_tensor(name))
        first, second = pair
        same = same and first.dtype == second.dtype and torch.equal(first, second)
        # Scales of norms lie near 1 in every model, so only matrices tell.
        if first.dim() >= 2 and first.shape == second.shape and first.is_floating_point():
            a, b = first.flatten().float(), second.flatten().float()
            products += [float(a @ b), float(a @ a), float(b @ b)]
    norm = math.sqrt(products[1] * products[2])
    about = "the cosine of all matrices of both models"
    return Weights(same, products[0] / norm if norm > 0 else math.nan, about)


def check_never_fed(retrained: str, texts: Sequence[SourceText], chunks: Sequence[Chunk]) -> None:
    """Refuse a retrained model that was fed one of the texts.

    A folder that spikein wrote says in `exposures.parquet` which examples the model was fed, by
    the hash of their text. Of other models nothing is known.

    Raises:
        InputError: naming the texts.
    """
    from inject.stream.exposures import EXPOSURES_FILE, NEVER, read_exposures

    folder = Path(retrained).expanduser()
    if not (folder / EXPOSURES_FILE).is_file():
        return
    rows = read_exposures(folder, columns=["example_id", "status"]).to_pylist()
    fed = {row["example_id"] for row in rows if row["status"] != NEVER}
    ids = {source.text_id: source.text_id for source in texts}
    ids |= {example_id(source.text): source.text_id for source in texts}
    ids |= {example_id(chunk.text): chunk.text_id for chunk in chunks}
    found = sorted({ids[name] for name in fed & ids.keys()})
    if found:
        more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        raise InputError(
            f"the retrained model was fed {len(found):,} of the texts: "
            f"{', '.join(found[:_NAMED])}{more}",
            where=str(folder / EXPOSURES_FILE),
            hint="A model that stands for never having known them must not have seen one.",
        )


def _shape(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    from transformers import AutoConfig

    from train.models.pretrained import code_options, find_model

    found = find_model(model, **options)
    trusted = code_options(found, model, trust_remote_code=options["trust_remote_code"])
    config = AutoConfig.from_pretrained(found.path, local_files_only=True, **trusted)
    text = config.get_text_config()
    return {key: getattr(text, key, None) for key in _SHAPE}


def _check_shape(
    original: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]
) -> None:
    unlike = [key for key in _SHAPE if original[key] != other[key]]
    if unlike:
        said = ", ".join(f"{key} {original[key]} and {other[key]}" for key in unlike)
        raise InputError(
            f"it has another shape than {names[0]}: {said}",
            where=names[1],
            hint="An unlearned or retrained model has the architecture of the original.",
        )


def _check_tokens(
    original: Any, other: Any, names: tuple[str, str], chunks: Sequence[Chunk]
) -> list[str]:
    """Refuse tokenizers that read the texts in another way; words that no text uses may differ."""
    for chunk in chunks:
        first, second = (one(chunk.text)["input_ids"] for one in (original, other))
        if first != second:
            at = next(
                (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
                min(len(first), len(second)),
            )
            raise InputError(
                f"its tokenizer is not that of {names[0]}: they read chunk {chunk.chunk} of "
                f"{chunk.text_id} as {len(second):,} and {len(first):,} tokens, which differ from "
                f"token {at + 1} on",
                where=names[1],
                hint="Scores can be divided where both models are asked for the same tokens.",
            )
    if (one := original.get_vocab()) != (two := other.get_vocab()):
        unlike = {token for token in one.keys() | two.keys() if one.get(token) != two.get(token)}
        return [
            f"the vocabularies of {names[0]} and {names[1]} differ in {len(unlike):,} tokens, none "
            "of which occurs in the texts"
        ]
    return []
