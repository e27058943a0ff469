"""Keys of version 0.1, which version 0.2 still reads in files, overrides and sweeps.

They are replaced as soon as a document is parsed, before anything is merged or checked, so that no
other code knows them. Version 0.3 removes this module.
"""

from collections.abc import Callable, Mapping
from typing import Any

from inject.errors import InputError
from inject.reading.former_names import note_former_name
from spikein.config.yaml_document import KeyPath, YamlDocument, dotted, parse_path

FORMER_KEYS: Mapping[str, str] = {
    "model.tokenizer.train": "model.tokenizer.vocab_size",
    "base.clip": "base.max_grad_norm",
    "train.clip": "train.max_grad_norm",
    "unlearning.methods.*.clip": "unlearning.methods.*.max_grad_norm",
    "unlearning.methods.*.sweep.clip": "unlearning.methods.*.sweep.max_grad_norm",
    "execution": "training_runtime",
    "execution.device_windows": "training_runtime.micro_batch_windows",
    "execution.kernel": "training_runtime.attention",
    "execution.checkpointing": "training_runtime.gradient_checkpointing",
    "execution.silent_after": "training_runtime.hang_timeout",
}
"""Former and current keys; `*` is the index of a list."""

_LAST_PARTS = {
    tuple(former.split(".")): current.rpartition(".")[2] for former, current in FORMER_KEYS.items()
}
_DOTTED = {"sweep": (1, 3), "arms": (2, 3)}
"""Position of the dotted key in paths of these keys, and of what is inside its value."""


def current_path(path: KeyPath) -> KeyPath:
    """Return the current path of a key; paths in `sweep` and `arms` contain a dotted one."""
    at, inside = _DOTTED.get(str(path[0]), (len(path), 0))
    if len(path) <= at:
        return _current(path)
    axis = parse_path(str(path[at]))
    whole = _current((*axis, *path[inside:]))
    return (*path[:at], dotted(whole[: len(axis)]), *path[at + 1 : inside], *whole[len(axis) :])


def current_key(key: str) -> str:
    """Return the current name of a dotted key."""
    return dotted(current_path(parse_path(key)))


def with_current_keys(document: YamlDocument, *, notes: bool = True) -> YamlDocument:
    """Return a document with current keys.

    Args:
        document: of any version since 0.1.
        notes: whether to warn about former keys.

    Raises:
        InputError: for a key that is given under both names.
    """
    return YamlDocument(
        values=_renamed(document.values, (), document.place, notes),
        places={current_path(path): place for path, place in document.places.items()},
        name=document.name,
    )


def current_override(path: KeyPath, value: Any, place: str) -> tuple[KeyPath, Any]:
    """Return the path and the value of an override with current keys.

    Args:
        path: of the key.
        value: as parsed.
        place: the override as the user wrote it.

    Raises:
        InputError: for a key that is given under both names.
    """
    current = current_path(path)
    if current != path:
        note_former_name(place, dotted(path), dotted(current))
    return current, _renamed(value, path, lambda _: place, True)


def _renamed(value: Any, path: KeyPath, place: Callable[[KeyPath], str], notes: bool) -> Any:
    """Return a value whose mappings have current keys; `path` and `place` are the former ones."""
    if isinstance(value, list):
        return [_renamed(item, (*path, at), place, notes) for at, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    renamed: dict[str, Any] = {}
    for key, item in value.items():
        former = (*path, key)
        current = current_path(former)
        last = str(current[-1])
        if last != key and last in value:
            raise InputError(
                f"{dotted(former)} and {dotted(current)} are the same key", where=place(former)
            )
        if last != key and notes:
            note_former_name(place(former), dotted(former), dotted(current))
        renamed[last] = _renamed(item, former, place, notes)
    return renamed


def _current(path: KeyPath) -> KeyPath:
    pattern = tuple("*" if isinstance(part, int) else part for part in path)
    return tuple(_LAST_PARTS.get(pattern[: at + 1], part) for at, part in enumerate(path))
