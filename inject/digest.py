"""Identity: SHA-256 over canonical JSON, and over the bytes of files.

A value that has no canonical form raises `TypeError`; nothing is turned into a string on
the way, so two different things never share an identity by accident.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inject.bounded_files import open_regular

_BLOCK = 1 << 20


def canonical(value: Any) -> str:
    """Return the one JSON text of a value made of None, bool, int, float, str, list, dict.

    Keys are sorted, tuples count as lists, floats print as their shortest exact form.

    Raises:
        TypeError: for any other type, for keys that are not strings, for NaN and infinities.
    """
    return json.dumps(plain_values(value), sort_keys=True, separators=(",", ":"))


def digest(value: Any) -> str:
    """Return the SHA-256 (hex) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def text_digest(text: str) -> str:
    """Return the SHA-256 (hex) of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file's content, read in blocks of 1 MiB.

    Raises:
        InputError: not a regular file (a pipe would never end), or cannot be read.
    """
    state = hashlib.sha256()
    with open_regular(path) as file:
        while block := file.read(_BLOCK):
            state.update(block)
    return state.hexdigest()


def plain_values(value: Any, place: str = "$") -> Any:
    """Return a value as JSON holds it: tuples become lists, keys keep their order.

    Args:
        value: made of None, bool, int, float, str, lists, tuples, mappings.
        place: what to call the value in messages.

    Raises:
        TypeError: as `canonical` does; names the place inside the value.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if type(value) is int:
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise TypeError(f"{place}: {value} has no canonical form")
        return value
    if isinstance(value, list | tuple):
        return [plain_values(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if type(key) is not str:
                raise TypeError(f"{place}: key {key!r} is not a string")
        return {key: plain_values(item, f"{place}.{key}") for key, item in value.items()}
    raise TypeError(f"{place}: {type(value).__name__} has no canonical form")
