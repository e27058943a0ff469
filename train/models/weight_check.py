"""Checks that a saved model is a causal language model, and that its weights are finite.

`AutoModelForCausalLM` silently gives an encoder such as BERT a causal head, and its scores look
like any others; so the configuration is checked before a weight is read, and the loaded model is
tested for looking ahead. NaN and infinite weights are reported after loading. Cost: reading
`config.json`; one pass over the weights; two passes of the model over eight tokens.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inject.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_DECODERS = "causal language models (decoders), such as Llama, OLMo, GPT-NeoX, GPT-2 or Qwen"
_BLOCK = 1 << 24
_PROBED = 8
# Far above the differences of kernels between runs in 16 bits.
_TOLERANCE = 0.02


def check_causal(folder: Path, name: str, trusted: Mapping[str, Any] | None = None) -> None:
    """Reject a model that is not a causal language model, by its configuration.

    Args:
        folder: folder of `config.json`.
        name: the model as the user wrote it.
        trusted: code that may be run (`train.models.pretrained.code_options`); none if absent.

    Raises:
        InputError: an encoder, an encoder-decoder, or a model with another head than a language
            model's. An unreadable configuration is left to the loader.
    """
    config = _config(folder, trusted)
    if config is None:
        return
    problem = _why_not_causal(config)
    if problem:
        raise InputError(problem, where=name, allowed=_DECODERS)


def check_vocabulary(
    folder: Path,
    highest: int,
    name: str,
    trusted: Mapping[str, Any] | None = None,
) -> None:
    """Reject a tokenizer that produces ids without an embedding in a saved model.

    Other special tokens beyond the embedding are allowed: plain text contains none of them, and
    some models have such a tokenizer (Gemma 3 without images has the placeholder of an image). A
    text that spells one out is rejected when it is encoded.

    Args:
        folder: folder of `config.json`.
        highest: highest id of the tokenizer, by `highest_text_id` or `highest_stream_id`.
        name: the tokenizer as the user wrote it.
        trusted: as in `check_causal`.

    Raises:
        InputError: as `require_rows`.
    """
    rows = vocabulary_rows(folder, trusted)
    if rows is not None:
        require_rows(highest, rows, place=name)


def vocabulary_rows(folder: Path, trusted: Mapping[str, Any] | None = None) -> int | None:
    """Return the number of ids that a saved model accepts; None if its configuration has none.

    Args:
        folder: folder of `config.json`.
        trusted: as in `check_causal`.
    """
    config = _config(folder, trusted)
    rows = getattr(config.get_text_config(), "vocab_size", None) if config is not None else None
    return rows if isinstance(rows, int) else None


def require_rows(highest: int, rows: int, *, place: str) -> None:
    """Check that a model's embedding has a row for a tokenizer's highest id.

    Raises:
        InputError: if it has none; names both numbers.
    """
    if highest >= rows:
        raise InputError(
            f"the tokenizer makes ids up to {highest:,}, and the model's embedding has {rows:,} "
            "rows",
            where=place,
            hint="The tokenizer is another model's, or tokens were added to it and not to the "
            "model; save the model's own tokenizer with it.",
        )


def highest_text_id(tokenizer: Any) -> int:
    """Return the highest id that plain text can have, without special tokens."""
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    return max({*tokenizer.get_vocab().values()} - special, default=-1)


def highest_stream_id(tokenizer: Any) -> int:
    """Return the highest id of a training stream: of plain text, end tokens and start tokens."""
    ends = (tokenizer.eos_token_id, tokenizer.bos_token_id)
    return max(highest_text_id(tokenizer), *(-1 if end is None else end for end in ends))


def check_finite(model: "PreTrainedModel", name: str) -> None:
    """Reject weights that are NaN or infinite.

    Raises:
        InputError: names the first such tensor, and their number.
    """
    import torch

    bad = []
    with torch.inference_mode():
        for key, tensor in model.state_dict().items():
            if not tensor.is_floating_point() or tensor.is_meta:
                continue
            blocks = tensor.flatten().split(_BLOCK)
            if not all(bool(torch.isfinite(block).all()) for block in blocks):
                bad.append(key)
    if bad:
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise InputError(
            f"its weights contain NaN or infinity: {bad[0]}{more}",
            where=name,
            hint="Its training diverged, or the file is damaged; every score would be NaN.",
        )


def check_looks_back(model: Any, name: str) -> None:
    """Reject a model whose predictions change with a later token.

    Two passes over a few tokens that differ in the last, for models whose configuration does not
    show it, such as those with their own code.

    Raises:
        InputError: if the model looks ahead.
    """
    import torch

    rows = model.get_input_embeddings().weight.shape[0]
    if rows < 3:
        return
    ids = torch.arange(_PROBED, device=model.device)[None] % (rows - 1)
    changed = ids.clone()
    changed[0, -1] = rows - 1
    with torch.inference_mode():
        before, after = (model(input_ids=each).logits[:, :-1].float() for each in (ids, changed))
    if (before - after).abs().max() > _TOLERANCE * (1 + before.abs().max()):
        raise InputError(
            "its predictions change with the words that follow: not a causal language model",
            where=name,
            allowed=_DECODERS,
        )


def _config(folder: Path, trusted: Mapping[str, Any] | None) -> Any:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, **(trusted or {}))
    except (OSError, ValueError, KeyError, ImportError):
        return None


def _why_not_causal(config: Any) -> str | None:
    from transformers.models.auto import modeling_auto as auto

    causal = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    kind = config.model_type
    named = [str(name) for name in getattr(config, "architectures", None) or []]
    description = f"it is a {named[0] if named else kind}"
    if getattr(config, "is_encoder_decoder", False):
        return f"{description}, an encoder and a decoder, not a causal language model"
    if "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {}):
        return None
    # These support both: with the same weights they look ahead unless configured as decoders.
    both = {*auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, "bert-generation"}
    decodes = getattr(config, "is_decoder", False) or getattr(config, "causal", False)
    if kind == "xlnet" or (kind in both and not decodes):
        return f"{description}, which sees the words that follow: not a causal language model"
    # Copies of known models have other names, such as `LLaMAForCausalLM`.
    heads = {*map(str, causal.values()), *(name for name in named if name.endswith("ForCausalLM"))}
    # A body without a head is left to the loader, which detects missing weights.
    bodies = [name for name in named if name.endswith("Model") and name not in heads]
    if named and not bodies and not heads.intersection(named):
        return f"{description}, which lacks a causal language model's head"
    return None
