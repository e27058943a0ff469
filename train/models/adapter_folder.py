"""A LoRA adapter saved without a model: peft's folder, and the base model that it names.

The adapter is added to its base's weights when the model is loaded, so that later code sees an
ordinary model; with a quantised base it remains separate. Safetensors only. The base's path is not
part of an adapter's identity, but its content is.
"""

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from inject.errors import InputError, first_line, reading
from inject.reading.change_guard import content_digest

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
_PLACES = ("base_model_name_or_path", "revision")


class Adapter(NamedTuple):
    """A saved adapter."""

    path: Path
    base: str
    """Path or hub id of its base model."""
    revision: str | None
    """Revision of the base, on the hub."""


def find_adapter(folder: Path, name: str) -> Adapter | None:
    """Return the adapter in a folder; None for any other folder, including a merged model's.

    Raises:
        InputError: an adapter without its base, with pickled weights, or of another kind than LoRA.
    """
    if not (folder / CONFIG).is_file() or (folder / "config.json").is_file():
        return None
    config = _config(folder, name)
    kind = str(config.get("peft_type") or "").upper()
    if kind != "LORA":
        raise InputError(
            f"its adapter is of the kind {kind or 'unknown'!r}", where=name, allowed="LoRA"
        )
    if config.get("modules_to_save"):
        raise InputError(
            "its adapter replaces whole layers (modules_to_save)",
            where=name,
            hint="Merge it into its base where it was trained, and save the whole model.",
        )
    if not (folder / WEIGHTS).is_file():
        is_pickled = (folder / "adapter_model.bin").is_file()
        pickled = " (those in adapter_model.bin are pickled)" if is_pickled else ""
        raise InputError(f"the adapter has no weights in {WEIGHTS}{pickled}", where=name)
    base = config.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise InputError(
            "the adapter does not name its base model",
            where=f"{name}: {CONFIG}",
            hint="Write its path or hub id there, as base_model_name_or_path.",
        )
    revision = config.get("revision")
    return Adapter(folder, base, revision if isinstance(revision, str) else None)


def adapter_identity(adapter: Adapter) -> dict[str, Any]:
    """Return the inputs that determine an adapter's numbers, except its base."""
    config = _config(adapter.path, str(adapter.path))
    return {
        "weights": content_digest(adapter.path / WEIGHTS),
        "settings": {key: value for key, value in config.items() if key not in _PLACES},
    }


def with_adapter(
    model: "PreTrainedModel", adapter: Adapter, name: str, *, merge: bool
) -> "PreTrainedModel":
    """Return a model with an adapter added to it.

    Args:
        model: the adapter's base; changed in place.
        adapter: the adapter to add.
        name: the adapter as the user wrote it.
        merge: merge it into the weights; else the adapter remains separate.

    Raises:
        InputError: if the adapter's weights are damaged, or do not fit the base.
    """
    from peft import PeftModel, get_peft_model_state_dict
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(adapter.path / WEIGHTS, framework="pt") as file:
            saved = set(file.keys())
        with warnings.catch_warnings():
            # Its warnings are replaced by the comparison below: peft loads any matching part.
            warnings.simplefilter("ignore")
            adapted = PeftModel.from_pretrained(model, str(adapter.path), local_files_only=True)
    except SafetensorError as error:
        raise InputError(f"the adapter's weights are damaged ({error})", where=name) from error
    except (ValueError, RuntimeError, KeyError, TypeError) as error:
        raise _misfit_error(adapter, name, first_line(error)) from error
    added = set(get_peft_model_state_dict(adapted))
    if different := sorted(saved ^ added):
        verb = "has no place for" if different[0] in saved else "needs"
        raise _misfit_error(
            adapter, name, f"the base {verb} {different[0]}, of {len(different)} such"
        )
    if merge:
        return adapted.merge_and_unload()
    return adapted.get_base_model()


def _misfit_error(adapter: Adapter, name: str, detail: str) -> InputError:
    return InputError(
        f"the adapter does not fit its base {adapter.base} ({detail})",
        where=name,
        hint="Check that base_model_name_or_path names the model it was trained on.",
    )


def _config(folder: Path, name: str) -> dict[str, Any]:
    with reading(name, f"{CONFIG} cannot be read"):
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise InputError(f"{CONFIG} contains no settings", where=name)
    return config
