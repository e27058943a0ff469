"""GGUF files as ordinary models: dequantised once into float32 safetensors with their tokenizer.

transformers dequantises on every load and refuses to save the result, because the configuration
still names the quantisation. Here the weights, without that entry, become a folder in the user's
cache, named by the digest of the file's content and of the versions of transformers and gguf; its
logits equal those of transformers' own loader exactly. The folder is complete or absent, and is
verified against its manifest once per process. Problems of a file are reported from its header,
before a weight is read.

Cost: some 15 s and 0.5 GB per 100 million parameters, once.
"""

import logging
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from inject.digest import digest
from inject.errors import InputError, first_line
from inject.files import cache_folder, human_bytes
from inject.hub.snapshot import fetch_snapshot
from inject.reading.change_guard import content_digest, unchanged
from inject.step import library_versions
from inject.verified_files import seal, verified_facts

SUFFIX = ".gguf"
_HUB_FORM = "hf://OWNER/NAME[@REVISION]/FILE.gguf"
_HUB_ADDRESS = re.compile(r"hf://([^/@]+/[^/@]+)(?:@([^/]+))?/(.+)")
_LIBRARIES = ("transformers", "gguf")
_log = logging.getLogger(__name__)


def is_gguf(path_or_id: str) -> bool:
    """Return whether a model's name is that of a GGUF file, local or on the hub."""
    return path_or_id.lower().endswith(SUFFIX)


def gguf_identity(name: str) -> dict[str, Any]:
    """Return the content and the libraries that determine the numbers of a GGUF model.

    Raises:
        InputError: as `gguf_file`.
    """
    return {"gguf": content_digest(gguf_file(name)), "versions": library_versions(_LIBRARIES)}


def gguf_folder(name: str) -> Path:
    """Return the model's folder of float32 safetensors; dequantise the file on first use.

    Raises:
        InputError: no such file; not a complete GGUF file of one part with a tokenizer; an
            architecture that transformers cannot read.
    """
    file = gguf_file(name)
    return _convert_once(file.resolve(), name, digest(gguf_identity(name)))


def gguf_file(name: str) -> Path:
    """Return a GGUF file on this machine, fetched from the hub if the name is an address.

    Raises:
        InputError: no such file, or an empty one.
    """
    file = _fetch(name) if name.startswith("hf://") else Path(name).expanduser()
    if not file.is_file():
        raise InputError(
            "there is no such GGUF file", where=name, allowed=f"a file, or {_HUB_FORM}"
        )
    if file.stat().st_size == 0:
        raise _cut_error(name, "it has zero bytes")
    return file


def _fetch(name: str) -> Path:
    parts = _HUB_ADDRESS.fullmatch(name)
    if parts is None or ".." in parts[3].split("/"):
        raise InputError("is not the address of a GGUF file", where=name, allowed=_HUB_FORM)
    hub_id, revision, path = parts.groups()

    def require_listed(files: Any) -> None:
        if path not in files:
            gguf_names = ", ".join(file for file in files if is_gguf(file)) or "none"
            raise InputError(f"the repository has no {path}", where=name, allowed=gguf_names)

    folder, _ = fetch_snapshot(hub_id, revision, (path,), check=require_listed)
    return folder / path


@cache
def _convert_once(file: Path, name: str, identity: str) -> Path:
    folder = cache_folder() / "gguf" / f"{file.stem}-{identity[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        if verified_facts(folder) is None:
            check_header(file, name)
            part = folder.with_name(f".{folder.name}.part")
            for old in (part, folder):
                shutil.rmtree(old, ignore_errors=True)
            size = human_bytes(file.stat().st_size)
            _log.warning("%s (%s) is dequantised once, into %s", name, size, folder)
            with unchanged(name, lambda: digest(gguf_identity(name)), identity):
                _convert(file, part, name)
            seal(part, {})
            part.rename(folder)
    return folder


def _convert(file: Path, out: Path, name: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    from train.process_state import isolated_randomness, plain_transformers

    try:
        with (
            isolated_randomness(),
            plain_transformers(),
            tempfile.TemporaryDirectory() as folder,
        ):
            # The loaders would also read a tokenizer's files next to it, which are not identity.
            (Path(folder) / "model.gguf").symlink_to(file)
            place = {"pretrained_model_name_or_path": folder, "gguf_file": "model.gguf"}
            model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
            tokenizer = AutoTokenizer.from_pretrained(**place)
            # transformers refuses to save a model whose configuration names a quantisation.
            del model.config.quantization_config
            model.hf_quantizer = None
            model.config._name_or_path = ""
            model.save_pretrained(out)
            tokenizer.save_pretrained(out)
    except (OSError, ValueError, RuntimeError, KeyError, NotImplementedError) as error:
        architectures = sorted({*GGUF_SUPPORTED_ARCHITECTURES} - {"general", "tokenizer"})
        raise InputError(
            f"transformers cannot dequantise this GGUF file ({first_line(error)})",
            where=name,
            allowed=f"the architectures {', '.join(architectures)}",
            hint="Give the model's folder of safetensors instead.",
        ) from error


def check_header(file: Path, name: str) -> None:
    """Check the header of a GGUF file.

    Raises:
        InputError: not GGUF, truncated, split into parts, without a tokenizer, or with embeddings
            for more or fewer tokens than the tokenizer has.
    """
    from gguf import GGUFReader

    with file.open("rb") as opened:
        if opened.read(4) != b"GGUF":
            raise InputError("is not a GGUF file: it does not begin with GGUF", where=name)
    try:
        reader = GGUFReader(file)
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise _cut_error(name, f"it ends before its last tensor ({first_line(error)})") from error

    def value(key: str, of: Callable[[Any], Any] = lambda field: field.contents()) -> Any:
        field = reader.get_field(key)
        return None if field is None else of(field)

    if (parts := value("split.count") or 1) > 1:
        raise InputError(
            f"is one of {parts} parts",
            where=name,
            allowed="a GGUF file of one part",
            hint="Merge them: llama-gguf-split --merge FIRST_PART OUT.gguf",
        )
    tokens = value("tokenizer.ggml.tokens", lambda field: len(field.data))
    if not tokens or value("tokenizer.ggml.model") is None:
        raise InputError(
            "has no tokenizer",
            where=name,
            hint="Convert the model again, with its tokenizer files next to its weights.",
        )
    rows = next(
        (int(part.shape[-1]) for part in reader.tensors if part.name == "token_embd.weight"), 0
    )
    if rows != tokens:
        raise InputError(
            f"its embedding has {rows:,} rows and its tokenizer {tokens:,} tokens",
            where=name,
            hint="The file was put together from two models; convert the model again.",
        )


def _cut_error(name: str, problem: str) -> InputError:
    return InputError(
        f"is not a whole GGUF file: {problem}",
        where=name,
        hint="An interrupted download? Remove it and fetch it again.",
    )
