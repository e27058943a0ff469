"""Existing causal language models: a saved folder, a GGUF file, or a repository on the hub.

All end in a local folder, of which only configuration, tokenizer and safetensors are used:
pickled weights can run code when read, and are rejected. Ids are resolved by `inject.hub.resolver`:
an unreachable hub is detected within seconds; then the cache is used. A folder with a LoRA adapter
stands for its base with the adapter added.

Models in 8 or 4 bits use bitsandbytes if it is installed. The output layer and the norms
keep 16 bits; products are computed in bfloat16 (4 bits) or float16 (8 bits).
"""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from inject.errors import InputError, Unreachable, did_you_mean, first_line
from inject.hub.resolver import mark_unresolved
from inject.hub.snapshot import CODE_FILES, MODEL_FILES, fetch_snapshot, foreign_code, trusted_code
from inject.model_folder import PICKLED, model_files, require_own_files
from train.models.adapter_folder import Adapter, adapter_identity, find_adapter, with_adapter
from train.models.gguf import gguf_folder, gguf_identity, is_gguf
from train.models.weight_check import check_causal, check_finite

if TYPE_CHECKING:
    from transformers import PreTrainedModel


QUANTISED = ("8bit", "4bit")


def quantisation_config(bits: str, name: str) -> Any:
    """Return the settings of transformers' loader.

    Args:
        bits: one of `QUANTISED`.
        name: the model, for the message.

    Raises:
        InputError: if bitsandbytes is not installed.
    """
    if find_spec("bitsandbytes") is None:
        raise InputError(
            f"a model in {bits} needs bitsandbytes, which is not installed",
            where=name,
            allowed="auto, float32, bfloat16, float16 without it",
            hint="pip install bitsandbytes",
        )
    import torch
    from transformers import BitsAndBytesConfig

    if bits == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )


class ModelFolder(NamedTuple):
    """A model on this machine."""

    path: Path
    """Folder with `config.json`, safetensors and, usually, a tokenizer."""
    commit: str | None
    """The hub's commit; None for a local folder."""
    adapter: Adapter | None = None
    """Adapter to add to the weights; `path` and `commit` are then its base's."""


def find_model(
    path_or_id: str, *, revision: str | None = None, trust_remote_code: bool = False
) -> ModelFolder:
    """Return the folder of a model, fetched from the hub if it is not local.

    Args:
        path_or_id: a folder, a GGUF file (a path, or `hf://OWNER/NAME/FILE.gguf`), or a hub id
            such as `EleutherAI/pythia-160m`.
        revision: branch, tag or commit on the hub.
        trust_remote_code: also fetch the Python files of the repository.

    Raises:
        InputError: if there is no such folder or repository, the hub cannot be reached, or the
            weights in safetensors are missing; as `train.models.gguf.gguf_folder`.
    """
    if not path_or_id.strip():
        raise InputError(
            "the model's name is empty",
            where="model",
            allowed="a folder ('.' is the working directory), a GGUF file, or a hub id such as "
            "'EleutherAI/pythia-160m'",
        )
    if is_gguf(path_or_id):
        return ModelFolder(gguf_folder(path_or_id), None)
    local = Path(path_or_id).expanduser()
    if local.is_dir():
        if adapter := find_adapter(local, path_or_id):
            return _base_of(adapter, path_or_id, trust_remote_code)
        _check_folder(local, path_or_id)
        return ModelFolder(local, None)
    if local.exists() or _looks_like_path(path_or_id):
        raise _missing_folder(local, path_or_id)
    return _from_hub(path_or_id, revision, trust_remote_code)


def model_identity(
    path_or_id: str, *, revision: str | None = None, trust_remote_code: bool = False
) -> dict[str, Any]:
    """Return the identity that determines a model's numbers: its hub commit, or file digests.

    With `trust_remote_code` it includes the commit of code from other repositories.

    Raises:
        InputError: as `find_model`, and `inject.hub.snapshot.foreign_code`.
    """
    try:
        if is_gguf(path_or_id):
            if revision is not None:
                raise InputError(
                    f"the revision {revision!r} does not apply to a GGUF file",
                    where=path_or_id,
                    allowed="hf://OWNER/NAME@REVISION/FILE.gguf",
                )
            return gguf_identity(path_or_id)
        folder = find_model(path_or_id, revision=revision)
    except Unreachable as error:
        return {"hub": path_or_id, "commit": mark_unresolved(f"model {path_or_id}", error)}
    identity: dict[str, Any]
    if folder.adapter is not None:
        base = folder.adapter
        return {
            "adapter": adapter_identity(base),
            "base": model_identity(
                base.base, revision=base.revision, trust_remote_code=trust_remote_code
            ),
        }
    if folder.commit is not None:
        identity = {"hub": path_or_id, "commit": folder.commit}
    else:
        identity = {"files": model_files(folder.path)}
    if trust_remote_code:
        code = foreign_code(folder.path, name=path_or_id, commit=folder.commit)
        identity |= {"code": code} if code else {}
    return identity


def load_causal_model(
    path_or_id: str,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    dtype: str = "float32",
    device_map: str | Mapping[str, Any] | None = None,
) -> "PreTrainedModel":
    """Return a causal language model, every weight from its file; on the CPU by default.

    Args:
        path_or_id: as `find_model`.
        revision: as `find_model`.
        trust_remote_code: run the model's own code.
        dtype: number format such as `float32`; `auto` for that of the saved weights; `8bit` and
            `4bit` quantise (`train.models.pretrained`).
        device_map: devices of its layers, in accelerate's format.

    Raises:
        InputError: as `find_model`; for a configuration that is not a causal language model's;
            for weights that are damaged, not finite, or do not fill the model.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    from train.process_state import isolated_randomness, plain_transformers

    folder = find_model(path_or_id, revision=revision, trust_remote_code=trust_remote_code)
    trusted = code_options(folder, path_or_id, trust_remote_code=trust_remote_code)
    check_causal(folder.path, path_or_id, trusted)
    options: dict[str, Any] = {"dtype": dtype}
    if dtype in QUANTISED:
        options = {"quantization_config": quantisation_config(dtype, path_or_id)}
    if device_map is not None:
        options["device_map"] = device_map
    try:
        # Weights absent from the file would be drawn at random, hence the isolation and the check.
        with isolated_randomness(), plain_transformers():
            model, loading = AutoModelForCausalLM.from_pretrained(
                folder.path,
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
                **options,
                **trusted,
            )
    except SafetensorError as error:
        raise InputError(f"its weights are damaged ({error})", where=path_or_id) from error
    except (OSError, ValueError, RuntimeError) as error:
        hint = None
        if "trust_remote_code" in str(error):
            hint = "Set trust_remote_code of the model if you trust its authors."
        raise InputError(
            f"not loadable as a causal language model ({first_line(error)})",
            where=path_or_id,
            hint=hint,
        ) from error
    missing = sorted(loading["missing_keys"])
    if missing:
        raise InputError(
            f"its files lack {len(missing)} of the model's weights, the first is {missing[0]}",
            where=path_or_id,
            hint="It may be an adapter, an encoder, or an incomplete copy.",
        )
    if folder.adapter is not None:
        with isolated_randomness(), plain_transformers():
            model = with_adapter(model, folder.adapter, path_or_id, merge=dtype not in QUANTISED)
    check_finite(model, path_or_id)
    return model


def code_options(folder: ModelFolder, name: str, *, trust_remote_code: bool) -> dict[str, Any]:
    """Return the options of transformers' loaders for the code of a model that may be run.

    Raises:
        InputError: as `inject.hub.snapshot.trusted_code`.
    """
    if not trust_remote_code:
        return {}
    return trusted_code(folder.path, name=name, commit=folder.commit)


def _base_of(adapter: Adapter, name: str, trust_remote_code: bool) -> ModelFolder:
    """Return the folder of an adapter's base, with the adapter."""
    try:
        base = find_model(
            adapter.base, revision=adapter.revision, trust_remote_code=trust_remote_code
        )
    except Unreachable:
        raise
    except InputError as error:
        raise InputError(
            f"the adapter's base cannot be used: {error}",
            where=name,
            hint="Correct base_model_name_or_path in its adapter_config.json.",
        ) from error
    if base.adapter is not None:
        raise InputError("the adapter's base is an adapter itself", where=name)
    return base._replace(adapter=adapter)


def _check_folder(folder: Path, name: str) -> None:
    if not (folder / "config.json").is_file():
        raise InputError(
            "the folder has no config.json, so it is not a saved model",
            where=name,
            hint="Give the folder that save_pretrained wrote, or a GGUF file by its own path.",
        )
    require_own_files(folder)
    if any(folder.glob("*.safetensors")):
        return
    pickled = [file.name for pattern in PICKLED for file in sorted(folder.glob(pattern))]
    raise _no_weights(name, pickled)


def _no_weights(name: str, pickled: list[str]) -> InputError:
    if pickled:
        return InputError(
            f"its weights are pickled ({pickled[0]}), and reading a pickle can run any code",
            where=name,
            allowed="safetensors",
            hint="Load it once where you trust it and save it with save_pretrained, "
            "which writes safetensors.",
        )
    return InputError("the folder has no weights", where=name, allowed="safetensors")


def _looks_like_path(name: str) -> bool:
    return (
        name.startswith((".", "/", "~"))
        or name.count("/") > 1
        or (os.sep != "/" and os.sep in name)
        or ("/" in name and Path(name).parent.is_dir())
    )


def _missing_folder(folder: Path, name: str) -> InputError:
    if folder.is_file():
        return InputError(
            "this is a file; a model is a folder or a GGUF file",
            where=name,
            hint="Give the folder that contains it.",
        )
    siblings: list[str] = []
    if folder.parent.is_dir():
        siblings = [entry.name for entry in folder.parent.iterdir() if entry.is_dir()]
    return InputError(
        f"there is no such model folder.{did_you_mean(folder.name, siblings)}", where=name
    )


def _from_hub(name: str, revision: str | None, trust_remote_code: bool) -> ModelFolder:
    def require_weights(files: Sequence[str]) -> None:
        if not any(file.endswith(".safetensors") and "/" not in file for file in files):
            raise _no_weights(name, [file for file in files if Path(file).match("*.bin")])

    patterns = (*MODEL_FILES, *CODE_FILES) if trust_remote_code else MODEL_FILES
    folder, commit = fetch_snapshot(name, revision, patterns, check=require_weights)
    _check_folder(folder, name)
    return ModelFolder(folder, commit)
