"""An experiment file as plain values, with the place of every key (see `yaml_reader`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inject.errors import InputError
from spikein.config.key_path import KeyPath
from spikein.config.yaml_reader import read_yaml

_MOST_BYTES = 8 << 20


@dataclass(frozen=True, kw_only=True)
class Document:
    """Plain values, and where each of them was written."""

    values: Mapping[str, Any]
    """The mapping at the file's top."""
    places: Mapping[KeyPath, str]
    """`file:line` (or the command line's own words) of each key path."""
    name: str
    """What to call the file in messages."""

    def place(self, path: KeyPath) -> str:
        """Return the place of `path`, or of the nearest key around it."""
        for stop in range(len(path), 0, -1):
            if found := self.places.get(path[:stop]):
                return found
        return self.name


def read_document(path: Path) -> Document:
    """Read a YAML file whose top is a mapping.

    Raises:
        InputError: when the file is missing, unreadable, not UTF-8, not YAML or not a mapping.
        InputErrors: when keys are given twice or are no text; all of them at once.
    """
    name = str(path)
    try:
        if path.exists() and not path.is_file():
            raise InputError("cannot be read: not a file", where=name, allowed="a YAML file")
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InputError(
                "too long for an experiment file",
                where=name,
                allowed=f"at most {_MOST_BYTES >> 20} MiB",
                hint="Long lists, such as rows, belong into files that the experiment names.",
            )
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such file", where=name) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start})", where=name) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=name) from None
    return parse_document(text, name=name)


def parse_document(text: str, *, name: str) -> Document:
    """Like `read_document`, from a text; `name` stands for the file in messages."""
    content = read_yaml(text, name)
    if content.value is None:
        raise InputError("the file is empty", where=name, allowed="a mapping with `name:` …")
    if not isinstance(content.value, dict):
        kind = "a list" if isinstance(content.value, list) else "a single value"
        raise InputError(f"the file's top is {kind}", where=name, allowed="a mapping of keys")
    return Document(values=content.value, places=content.places, name=name)


def parse_value(text: str, *, where: str) -> Any:
    """Return the value of one YAML text from the command line, such as `1e-3` or `{fixed: 4}`.

    Raises:
        InputError: when it is not YAML.
    """
    return read_yaml(text, where).value
