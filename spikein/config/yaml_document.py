"""A YAML file as plain values, with the line of every key.

The values are those of YAML's core schema 1.2 (null, true/false, numbers, text), so `no`, `on`,
`1:30` and `2024-05-01` stay text. `1e-3` is a number, and `1e6` is the whole number 1000000.
Nothing but mappings, lists and scalars is ever constructed: the loader is `yaml.SafeLoader`
with fewer types. Keys given twice are refused, since one of the two would silently win.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from inject.errors import InputError, InputErrors

KeyPath = tuple[str | int, ...]

_LARGEST_WHOLE = 2.0**63
_DEEPEST = 50
_MOST_VALUES = 100_000
_MOST_BYTES = 8 << 20
_LONGEST_WHOLE = 100


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


def dotted(path: KeyPath) -> str:
    """Return a key path as a user writes it: `contaminants.0.members`."""
    return ".".join(str(part) for part in path)


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
        raise InputError(
            "no such file", where=name, hint="Ready-made experiments lie in configs/."
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start})", where=name) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=name) from None
    return parse_document(text, name=name)


def parse_document(text: str, *, name: str) -> Document:
    """Like `read_document`, from a text; `name` stands for the file in messages."""
    root = _compose(text, name)
    if root is None:
        raise InputError("the file is empty", where=name, allowed="a mapping with `name:` …")
    if not isinstance(root, yaml.MappingNode):
        kind = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
        raise InputError(f"the file's top is {kind}", where=name, allowed="a mapping of keys")
    reader = _Reader(name)
    values = reader.read(root, (), ())
    if reader.problems:
        raise InputErrors(reader.problems, title=f"{name} cannot be read:")
    return Document(values=values, places=reader.places, name=name)


def parse_value(text: str, *, where: str) -> Any:
    """Return the value of one YAML text from the command line, such as `1e-3` or `{fixed: 4}`.

    Raises:
        InputError: when it is not YAML.
    """
    root = _compose(text, where)
    if root is None:
        return None
    reader = _Reader(where)
    value = reader.read(root, (), ())
    if reader.problems:
        raise InputErrors(reader.problems, title=f"{where} cannot be read:")
    return value


def parse_scalar(text: str) -> Any:
    """Return None, a bool, an int, a float or the text itself (YAML 1.2 core schema)."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _FRACTION.fullmatch(text):
        value = float(text)
        # A float field takes a whole number too, but an integer field takes no float.
        if "." not in text and "-" not in text[1:] and abs(value) < _LARGEST_WHOLE:
            return int(value)
        return value
    return text


_WORDS = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}
# What PyYAML takes an untagged scalar for; its opinion is not asked further.
_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
}
_WHOLE = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
_FRACTION = re.compile(
    r"[-+]?([0-9]+(_[0-9]+)*(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", flags=re.ASCII
)


def _compose(text: str, name: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        said = " ".join(part for part in (error.context, error.problem) if part)
        lines = text.splitlines()
        bare = mark is not None and mark.line < len(lines) and "${" in lines[mark.line]
        hint = "Inside [ ] and { }, put texts with ${…} in quotes." if bare else None
        raise InputError(f"not valid YAML: {said}", where=where, hint=hint) from None
    except yaml.YAMLError as error:
        raise InputError(f"not valid YAML: {error}", where=name) from None
    except RecursionError:
        raise InputError(
            "the file's values are nested too deeply",
            where=name,
            allowed=f"at most {_DEEPEST} levels",
        ) from None


class _Reader:
    """Turns nodes into values; remembers lines and gathers problems.

    Aliases (`*name`) are written out, so a short file can stand for a huge one: reading stops at
    a number of values that no experiment has.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.places: dict[KeyPath, str] = {}
        self.problems: list[InputError] = []
        self._values = 0

    def read(self, node: yaml.Node, path: KeyPath, parents: tuple[int, ...]) -> Any:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise InputError(
                f"more than {_MOST_VALUES:,} values, aliases written out",
                where=self._line(node),
                hint="Use fewer aliases; long lists belong into files that the experiment names.",
            )
        if path:
            self.places.setdefault(path, self._line(node))
        if id(node) in parents or len(path) > _DEEPEST:
            self._problem(node, path, "the value contains itself or is nested too deeply")
            return None
        parents = (*parents, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, parents)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.read(item, (*path, index), parents) for index, item in enumerate(node.value)
            ]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, parents: tuple[int, ...]) -> Any:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(key_node, path, "a key must be a single word")
                continue
            key = key_node.value
            here = (*path, key)
            if key_node.style is None and key == "<<":
                self._problem(
                    key_node, here, "merge keys are not supported; write the keys out", dots=path
                )
            elif key in values:
                first = self.places[here].rpartition(":")[2]
                self._problem(key_node, here, f"the key is given twice (first in line {first})")
            else:
                self.places[here] = self._line(key_node)
                values[key] = self.read(value_node, here, parents)
        return values

    def _scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        text = str(node.value)
        if node.tag not in _TAGS:
            self._problem(node, path, f"the tag {node.tag} is not supported")
            return None
        if getattr(node, "style", None) is not None:
            return text
        if len(text) > _LONGEST_WHOLE and _WHOLE.fullmatch(text):
            self._problem(node, path, f"a whole number of {len(text):,} digits is too large")
            return None
        value = parse_scalar(text)
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            self._problem(node, path, f"{text} is too large for a number")
            return None
        return value

    def _line(self, node: yaml.Node) -> str:
        return f"{self.name}:{node.start_mark.line + 1}"

    def _problem(
        self, node: yaml.Node, path: KeyPath, text: str, *, dots: KeyPath | None = None
    ) -> None:
        key = dotted(path if dots is None else dots)
        self.problems.append(InputError(f"{key}: {text}" if key else text, where=self._line(node)))
