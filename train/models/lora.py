"""LoRA (Hu et al. 2022) through peft: adapters added, checked after training, merged and saved.

New adapters are a pure function of (model, settings, seed) and leave the global random state
unchanged. A run in which no adapter moved is an error: other tools miss it, as the loss looks like
that of any frozen model. Merging needs one more copy of the adapted matrices.
"""

import json
import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedModel

from inject.errors import SpikeinError, unknown_name
from inject.files import replacing
from inject.keyed import item_key
from train.models.shapes import FAMILIES
from train.process_state import plain_transformers
from train.settings import LoraSettings

if TYPE_CHECKING:
    from peft import PeftModel

FOLDER = "adapter"
"""Folder of the adapter, next to the merged model."""

_log = logging.getLogger(__name__)


class AdapterUntrained(SpikeinError):
    """No adapter moved while training."""


def add_adapters(model: PreTrainedModel, settings: LoraSettings, *, seed: int) -> "PeftModel":
    """Freeze a model and add adapters; their update starts at zero.

    Args:
        model: its weights are frozen in place.
        settings: rank, scale, dropout and layers.
        seed: decides the new weights.

    Raises:
        InputError: if no layer has a requested name.
    """
    from peft import LoraConfig, get_peft_model

    targets = settings.target_modules or default_targets(model)
    layers = linear_layers(model)
    if targets != ("all-linear",):
        for name in targets:
            if name not in layers:
                problem = f"no linear layer of this model is called {name!r}"
                raise unknown_name(problem, name, layers, where="train.lora.target_modules")
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear" if targets == ("all-linear",) else list(targets),
        bias="none",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), plain_transformers(), warnings.catch_warnings():
        # peft reads attributes that transformers will drop.
        warnings.simplefilter("ignore", FutureWarning)
        torch.default_generator.manual_seed(item_key(f"adapter/{seed}"))
        return get_peft_model(model, config)


def default_targets(model: PreTrainedModel) -> tuple[str, ...]:
    """Return the layers that are adapted by default."""
    family = FAMILIES.get(model.config.model_type)
    return ("all-linear",) if family is None else family.adapted


def linear_layers(model: torch.nn.Module) -> list[str]:
    """Return the names of a model's linear layers, without their path, sorted, each once."""
    return sorted(
        {
            name.rsplit(".", 1)[-1]
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.Linear)
        }
    )


def adapter_norms(weights: Mapping[str, torch.Tensor]) -> dict[str, tuple[float, float]]:
    """Return the norms of both matrices of every adapted layer: A (down) and B (up).

    Args:
        weights: a state with the complete matrices of the adapters
            (`peft.get_peft_model_state_dict`, or the whole model's).
    """
    downs = {name: weight for name, weight in weights.items() if ".lora_A." in name}
    return {
        name.split(".lora_A.")[0]: (
            float(down.float().norm()),
            float(weights[name.replace(".lora_A.", ".lora_B.")].float().norm()),
        )
        for name, down in downs.items()
    }


def require_trained(
    before: Mapping[str, tuple[float, float]],
    after: Mapping[str, tuple[float, float]],
    *,
    lr: float,
) -> None:
    """Check that training moved the adapters.

    Args:
        before: `adapter_norms` of the new adapters.
        after: `adapter_norms` of the trained ones.
        lr: the learning rate, for the message.

    Raises:
        AdapterUntrained: if all updates are still zero, or no matrix changed.
    """
    still = [
        name for name, (down, up) in after.items() if up == 0 or (down, up) == before.get(name)
    ]
    if len(still) == len(after):
        raise AdapterUntrained(
            f"LoRA trained nothing: the updates of all {len(after)} adapted layers are "
            f"unchanged, at learning rate {lr:g}. Either no token carried a loss (see "
            "train.loss_on), or no gradient reached the adapters."
        )
    if still:
        _log.warning(
            "LoRA left %d of %d adapted layers unchanged; the first is %s",
            len(still),
            len(after),
            still[0],
        )


def save_adapted(
    model: "PeftModel", out: Path, *, weights: Mapping[str, torch.Tensor] | None = None
) -> None:
    """Write the adapter to `out/adapter` and the merged model to `out`; the model is unchanged.

    Args:
        model: with trained adapters.
        out: the folder of the trained model.
        weights: the whole state, if the model's own parameters are spread over processes.
    """
    state = model.state_dict() if weights is None else weights
    with plain_transformers():
        model.save_pretrained(out / FOLDER, state_dict=state)
        (out / FOLDER / "README.md").unlink(missing_ok=True)
        _settle(out / FOLDER / "adapter_config.json")
        model.get_base_model().save_pretrained(out, state_dict=merged_weights(model, state))


def merged_weights(
    model: "PeftModel", state: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the weights of the model itself with each update added: W + alpha / rank · B A.

    Args:
        model: has scale and form of each adapted layer.
        state: its whole state.
    """
    prefix = "base_model.model."
    merged = {
        name.removeprefix(prefix).replace(".base_layer.", "."): weight.detach()
        for name, weight in state.items()
        if ".lora_" not in name
    }
    for name, module in model.named_modules():
        down = state.get(f"{name}.lora_A.default.weight")
        if down is None:
            continue
        update = module.scaling["default"] * (state[f"{name}.lora_B.default.weight"] @ down)
        # Some layers store their matrix transposed (GPT-2's).
        if module.fan_in_fan_out:
            update = update.T
        own = f"{name.removeprefix(prefix)}.weight"
        merged[own] = merged[own] + update.detach().to(merged[own].device, merged[own].dtype)
    return merged


def _settle(path: Path) -> None:
    """Remove from an adapter's settings the values that differ between machines and runs."""
    content = json.loads(path.read_text(encoding="utf-8"))
    base = content.get("base_model_name_or_path")
    if base is not None and Path(base).exists():
        content["base_model_name_or_path"] = None
    # peft writes sets in arbitrary order.
    for key in ("target_modules", "exclude_modules"):
        if isinstance(content.get(key), list):
            content[key] = sorted(content[key])
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, sort_keys=True), encoding="utf-8")
