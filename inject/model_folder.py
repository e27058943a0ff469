"""The folder of a saved model or tokenizer: which of its files count; none may be elsewhere.

`from_pretrained` finds files by many names, more with each release, so every file counts but those
that certainly do not (`UNREAD`, each with its reason). A file that names others (an index of
weights, a tokenizer's configuration) may only name files of the same folder: files outside are in
no identity. Links are followed, and their targets count: the owner of the folder makes them, not a
file in it. Cost: one reading of the files per process.
"""

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from inject.errors import InputError
from inject.reading.change_guard import content_digest

LOG_FILE = "log.parquet"
"""The log of a training of ours, which `train.loop.log` writes and reads."""

UNREAD: Mapping[str, str] = {
    ".*": "hidden: version control, caches of downloads",
    "*.md": "text for people",
    "LICENSE*": "text for people",
    "*.png": "a picture",
    "*.jpg": "a picture",
    "step-*": "folders of models along the way, each a model of its own",
    "checkpoint-*": "folders of models along the way, each a model of its own",
    LOG_FILE: "how a training of ours went, times included",
    "manifest.json": "of our store: times and labels",
    "trainer_state.json": "how a training went",
}
"""Files and folders that no loader reads."""

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
OTHER_WEIGHTS: Mapping[str, str] = {
    **dict.fromkeys(PICKLED, "pickled, and so never opened"),
    "*.h5": "weights of another library",
    "*.msgpack": "weights of another library",
    "*.ot": "weights of another library",
    "*.onnx": "weights of another library",
    "*.gguf": "weights of another library",
}
"""Weights that are not read, unless Python files of the folder do so."""

NOT_A_TOKENIZERS: Mapping[str, str] = {
    "*.safetensors": "weights",
    "*.index.json": "names the files of weights",
    "config.json": "of the model; keys that determine the tokenizer's class are counted separately",
    "generation_config.json": "how a model answers",
    "adapter_config.json": "of an adapter to weights",
    "*.jinja": "chat templates, which change no id of a plain text",
    "chat_template.json": "chat templates, which change no id of a plain text",
}
"""Files of a model's folder that no tokenizer's ids depend on."""

_CLASS_KEYS = ("model_type", "tokenizer_class", "auto_map")


def model_files(folder: Path) -> dict[str, str]:
    """Return the relative name and the SHA-256 of every file that decides a model's numbers."""
    unread = dict(UNREAD)
    if not any(folder.rglob("*.py")):
        unread |= OTHER_WEIGHTS
    return {name: content_digest(folder / name) for name in _names(folder, unread)}


def tokenizer_files(folder: Path) -> dict[str, str]:
    """Return the relative name and the SHA-256 of every file that decides a tokenizer's ids."""
    unread = {**UNREAD, **OTHER_WEIGHTS, **NOT_A_TOKENIZERS}
    # SentencePiece models and others may bear any name, but a pickled file is none of them.
    return {
        name: content_digest(folder / name) for name in _names(folder, unread) if "/" not in name
    }


def tokenizer_class(folder: Path) -> dict[str, Any]:
    """Return the model configuration's keys for the class of its tokenizer."""
    config = json_object(folder / "config.json")
    return {key: config[key] for key in _CLASS_KEYS if key in config}


def require_own_files(folder: Path) -> None:
    """Check that no file of the folder refers a loader to files outside it.

    Raises:
        InputError: naming the file and its reference.
    """
    for index in sorted(folder.glob("*.index.json")):
        named = json_object(index).get("weight_map")
        for name in sorted(set(map(str, named.values()))) if isinstance(named, dict) else ():
            resolve_inside(folder, name, source=str(index))
    for config, keys in (
        ("config.json", ("transformers_weights",)),
        ("tokenizer_config.json", None),
    ):
        for key, value in json_object(folder / config).items():
            names_files = key.endswith(("_file", "_files")) if keys is None else key in keys
            for name in _texts(value) if names_files else ():
                resolve_inside(folder, name, source=f"{folder / config}: {key}")


def resolve_inside(folder: Path, name: str, *, source: str) -> Path:
    """Return the path of a file that data names, which must be in the folder of the data.

    Raises:
        InputError: an absolute path, or one that goes up.
    """
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or parts[0] == "/" or ".." in parts or PureWindowsPath(name).drive:
        raise InputError(
            f"names {name!r}, which is outside its folder",
            where=source,
            allowed="files of the same folder and below it",
            hint="Put the file there, and name it without a path.",
        )
    return folder / name


def checkpoint_folder(step: int) -> str:
    """Return the name of a checkpoint's folder inside the model's."""
    return f"step-{step}"


def _names(folder: Path, unread: Mapping[str, str]) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if any(fnmatchcase(path.name, pattern) for pattern in unread):
            continue
        if path.is_dir():
            yield from (f"{path.name}/{name}" for name in _names(path, unread))
        elif path.is_file():
            yield path.name


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))


def json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; {} if there is none, which its own reader reports."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
