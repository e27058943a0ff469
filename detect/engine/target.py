"""A target: the model under test, with its own tokenizer.

Local folders and hub ids; weights are read from safetensors only, and a model's own code runs only
under `trust_remote_code`. An unreachable hub is detected within seconds.
"""

import inspect
import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from detect.engine.vocabulary_statistics import Head
from detect.settings import DeviceMap, Dtype
from inject.errors import InputError, first_line
from inject.keyed import I64
from train.device import default_device

_log = logging.getLogger(__name__)

_UNLIMITED = 1_000_000_000
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
# Some models transform their logits too weakly for a probe to detect.
_LOGIT_TRANSFORMS = ("final_logit_softcapping", "logits_soft_cap", "logit_scale", "logits_scaling")


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """A causal language model in evaluation mode and its tokenizer."""

    name: str
    """Path or hub id as the user wrote it."""
    model: Any
    tokenizer: Any
    context: int | None
    """Maximum positions of one sequence; None if the model sets no limit."""
    device: torch.device

    @cached_property
    def vocabulary(self) -> int:
        """Number of logits per position."""
        layer = self.model.get_output_embeddings()
        if layer is None:
            return int(self.model.config.get_text_config().vocab_size)
        return int(layer.weight.shape[0])

    @cached_property
    def embedded(self) -> int:
        """Number of ids that the model accepts."""
        return int(self.model.get_input_embeddings().weight.shape[0])

    @property
    def depends_on_batch(self) -> bool:
        """Whether the numbers of a text depend on the other texts of its batch.

        In 8 bits they do: large values are separated by column, over the whole batch.
        """
        return bool(getattr(self.model, "is_loaded_in_8bit", False))

    def takes(self, argument: str) -> bool:
        """Return whether the model's forward pass has an argument of this name."""
        return argument in inspect.signature(self.model.forward).parameters

    def check_ids(self, ids: I64, label: str) -> None:
        """Reject ids without an embedding: special tokens, spelled out.

        Raises:
            InputError: names the text, `label`, and the token.
        """
        beyond = ids[ids >= self.embedded]
        if len(beyond):
            token = self.tokenizer.convert_ids_to_tokens(int(beyond[0]))
            raise InputError(
                f"{label} contains the token {token!r} (id {int(beyond[0]):,}), and the model's "
                f"embedding has {self.embedded:,} rows",
                where=self.name,
                hint="Remove the token from the text.",
            )

    @cached_property
    def head(self) -> Head | None:
        """The output embedding, if body and head together give the model's own logits.

        Verified once on a short probe. None for a model that transforms its logits (scaling,
        soft-capping) or whose head is not a plain linear layer: its own logits are then used.
        """
        reason = self._why_not_split()
        if reason is None:
            layer = self.model.get_output_embeddings()
            weight = layer.weight.detach().to(self.device)
            bias = None if layer.bias is None else layer.bias.detach().to(self.device)
            return Head(weight=weight, bias=bias)
        _log.warning("%s: %s; its own logits are used, which is slower", self.name, reason)
        return None

    def hidden(self, **inputs: Any) -> torch.Tensor:
        """Return the last hidden states, [batch, length, hidden], on the target's device."""
        states: torch.Tensor = self.model.base_model(**inputs, use_cache=False)[0]
        # The last layer of a model that is spread over devices may be on another one.
        return states.to(self.device)

    def _why_not_split(self) -> str | None:
        layer = self.model.get_output_embeddings()
        if type(layer) is not torch.nn.Linear:
            return f"its output layer is a {type(layer).__name__}"
        if layer.weight.is_meta:
            return "its output layer is loaded for each use"
        config = self.model.config.get_text_config()
        for key in _LOGIT_TRANSFORMS:
            if getattr(config, key, None) not in (None, 1, 1.0):
                return f"it transforms its logits ({key})"
        probe = torch.arange(1, 1 + min(8, self.vocabulary - 1), device=self.device)[None]
        with torch.inference_mode():
            whole = self.model(input_ids=probe, use_cache=False).logits.float().to(self.device)
            try:
                split = layer(self.hidden(input_ids=probe)).float().to(self.device)
            except (TypeError, RuntimeError, AttributeError) as error:
                return f"its body and its head cannot be run apart ({error})"
        if whole.shape != split.shape:
            return "its body and its head give another number of logits than the model"
        tolerance = 1e-5 if layer.weight.dtype == torch.float32 else 1e-2
        if (whole - split).abs().max() > tolerance * (1 + whole.abs().max()):
            return "its logits are not those of its output layer"
        return None


def make_target(
    model: Any, tokenizer: Any, *, name: str, device: torch.device | None = None
) -> Target:
    """Return a target from a model and a tokenizer in memory; puts the model in eval mode.

    A model that is quantised, or spread over devices, is not moved.
    """
    model_device = device or next(model.parameters()).device
    placed = model if _has_fixed_device(model) else model.to(model_device)
    return Target(
        name=name,
        model=placed.eval(),
        tokenizer=tokenizer,
        context=_context(model.config, tokenizer),
        device=model_device,
    )


def load_target(
    path_or_id: str,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    device: str = "auto",
    dtype: Dtype = "auto",
    device_map: DeviceMap = "none",
) -> Target:
    """Load a causal language model and its tokenizer from a folder or from the hub.

    Args:
        path_or_id: a folder with `config.json` and `*.safetensors`, a folder with a LoRA adapter
            that names its base, or a hub id.
        revision: branch, tag or commit on the hub.
        trust_remote_code: run the model's own code.
        device: `auto` uses the first accelerator, else the CPU.
        dtype: `auto` is float32 on a CPU, elsewhere that of the saved weights; `8bit` and `4bit`
            quantise.
        device_map: `auto` spreads the model over all devices; the inputs go where its first layer
            is.

    Raises:
        InputError: missing folder, unreachable hub, unknown id, no safetensors, no tokenizer,
            or one larger than the model; not a causal language model; weights that are not finite;
            unknown device; both a device and a map of devices; no bitsandbytes.
    """
    from train.models.pretrained import QUANTISED, load_causal_model
    from train.models.weight_check import check_looks_back

    if device_map == "auto" and device != "auto":
        raise InputError(
            f"device {device} and a map of all devices are both given", where="device_map"
        )
    target_device = usable_device(device)
    options: dict[str, Any] = {"revision": revision, "trust_remote_code": trust_remote_code}
    tokenizer, _ = load_tokenizer_and_context(path_or_id, **options)
    form = default_device().scoring_format(dtype, device_kind=target_device.type)
    # Quantised models cannot be moved later.
    spread = "auto" if device_map == "auto" else {"": target_device} if form in QUANTISED else None
    model = load_causal_model(path_or_id, dtype=form, device_map=spread, **options)
    if spread is not None:
        target_device = _first_device(model)
    target = make_target(model, tokenizer, name=path_or_id, device=target_device)
    check_looks_back(target.model, path_or_id)
    return target


def load_tokenizer_and_context(
    path_or_id: str, *, revision: str | None = None, trust_remote_code: bool = False
) -> tuple[Any, int | None]:
    """Return a model's tokenizer, and its maximum positions, without its weights.

    Raises:
        InputError: as `load_target`, for these two.
    """
    from transformers import AutoConfig, AutoTokenizer

    from train.models.pretrained import code_options, find_model
    from train.models.weight_check import check_vocabulary, highest_text_id

    source = find_model(path_or_id, revision=revision, trust_remote_code=trust_remote_code)
    trusted = code_options(source, path_or_id, trust_remote_code=trust_remote_code)
    part = "tokenizer"
    hint: str | None = "A model is scored with its own tokenizer: save both in one folder."
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.path, local_files_only=True, **trusted)
        part, hint = "configuration", None
        config = AutoConfig.from_pretrained(source.path, local_files_only=True, **trusted)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise InputError(
            f"its {part} cannot be loaded: {first_line(error)}", where=path_or_id, hint=hint
        ) from error
    check_vocabulary(source.path, highest_text_id(tokenizer), path_or_id, trusted)
    return tokenizer, _context(config, tokenizer)


def usable_device(name: str) -> torch.device:
    """Return a device by its name; raise `InputError` if it cannot be used here."""
    if name == "auto":
        return torch.device(default_device().kind)
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ValueError) as error:
        raise InputError(
            f"{name!r} is not a device that can be used here ({first_line(error)})",
            where="device",
            allowed="auto, cpu, cuda, cuda:N, mps",
        ) from error
    return device


def _context(whole: Any, tokenizer: Any) -> int | None:
    config = whole.get_text_config()
    for key in _CONTEXT_KEYS:
        if isinstance(value := getattr(config, key, None), int) and value > 0:
            return value
    limit = getattr(tokenizer, "model_max_length", None)
    return int(limit) if limit is not None and limit < _UNLIMITED else None


def _has_fixed_device(model: Any) -> bool:
    """Return whether a model is quantised, or accelerate moves the inputs of its layers."""
    spread = getattr(model, "hf_device_map", None) is not None
    return spread or bool(getattr(model, "is_quantized", False))


def _first_device(model: Any) -> torch.device:
    """Return the input device of a model that accelerate has placed."""
    device: torch.device = model.get_input_embeddings().weight.device
    if device.type != "meta":
        return device
    # The layer is loaded for each use, on the device that computes.
    return torch.device(default_device().kind)
