"""YAML to plain values, with the line of every key, and back, by ruamel.yaml's safe reader.

The values are those of YAML's core schema 1.2 (null, true/false, numbers, text), so `no`, `on`,
`1:30` and `2024-05-01` stay text. `1e-3` is a number, and `1e6` is the whole number 1000000.
Only mappings, lists and scalars are ever constructed. Duplicate keys are refused, since one of the
two would silently win. Every reader of YAML 1.1 or 1.2 reads the written files as the same values.
Cost: about 25 ms for a file of a hundred lines.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import ReusedAnchorWarning
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import SafeRepresenter

from inject.errors import InputError, InputErrors
from inject.reading.row_parsers import check_text

KeyPath = tuple[str | int, ...]
"""The path of a value in an experiment file: keys and list indexes."""

_MOST_BYTES = 8 << 20
_LARGEST_WHOLE = 2.0**63
_DEEPEST = 50
_MOST_VALUES = 100_000
_LONGEST_WHOLE = 100


def dotted(path: KeyPath) -> str:
    """Return a key path as a user writes it: `contaminants.0.members`."""
    return ".".join(str(part) for part in path)


def parse_path(key: str) -> KeyPath:
    """Return the path of a dotted key; a part of only digits is a list index.

    Everything after `sweep.` or `arms.NAME.` is one key with its dots, because these are dotted.
    """
    if key.startswith("sweep."):
        return ("sweep", key.removeprefix("sweep."))
    if key.startswith("arms."):
        return tuple(key.split(".", 2))
    return tuple(int(part) if part.isdecimal() else part for part in key.split("."))


@dataclass(frozen=True, kw_only=True)
class YamlDocument:
    """Plain values, and the place of each."""

    values: Mapping[str, Any]
    """The top-level mapping of the file."""
    places: Mapping[KeyPath, str]
    """`file:line` (or the command line's own words) of each key path."""
    name: str
    """The file's name in messages."""

    def place(self, path: KeyPath) -> str:
        """Return the place of `path`, or of the nearest key around it."""
        for stop in range(len(path), 0, -1):
            if location := self.places.get(path[:stop]):
                return location
        return self.name

    def with_texts(self, replaced: Callable[[str, KeyPath], Any]) -> "YamlDocument":
        """Return the document with every text replaced except those of `variables`."""

        def walk(node: Any, path: KeyPath) -> Any:
            if isinstance(node, Mapping):
                return {key: walk(item, (*path, key)) for key, item in node.items()}
            if isinstance(node, list):
                return [walk(item, (*path, index)) for index, item in enumerate(node)]
            return replaced(node, path) if isinstance(node, str) else node

        values = {
            key: node if key == "variables" else walk(node, (key,))
            for key, node in self.values.items()
        }
        return YamlDocument(values=values, places=self.places, name=self.name)


def read_document(path: Path) -> YamlDocument:
    """Read a YAML file whose top is a mapping.

    Raises:
        InputError: when the file is missing, unreadable, not UTF-8, not YAML or not a mapping.
        InputErrors: for keys that are given twice or are not text; all of them at once.
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
                hint="Put long lists, such as rows, into files that the experiment names.",
            )
        check_text(data, name, "experiment file")
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("the file does not exist", where=name) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 (byte {error.start})",
            where=name,
            hint="Convert the file, for instance with `iconv -f cp1252 -t utf-8`.",
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=name) from None
    return parse_document(text, name=name)


def parse_document(text: str, *, name: str) -> YamlDocument:
    """Like `read_document`, from a text; messages call it `name`."""
    values, places = read_yaml(text, name)
    if values is None:
        raise InputError("the file is empty", where=name, allowed="a mapping with `name:` …")
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "a single value"
        raise InputError(f"the file's top is {kind}", where=name, allowed="a mapping of keys")
    return YamlDocument(values=values, places=places, name=name)


def parse_value(text: str, *, place: str) -> Any:
    """Return the value of one YAML text from the command line, such as `1e-3` or `{fixed: 4}`.

    Raises:
        InputError: when it is not YAML.
    """
    return read_yaml(text, place)[0]


def parse_scalar(text: str) -> Any:
    """Return None, a bool, an int, a float or the text itself (YAML 1.2 core schema)."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _FRACTION.fullmatch(text):
        value = float(text)
        # A float field accepts a whole number, but an integer field accepts no float.
        if "." not in text and "-" not in text[1:] and abs(value) < _LARGEST_WHOLE:
            return int(value)
        return value
    return text


_WORDS = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}
_WHOLE = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
_FRACTION = re.compile(
    r"[-+]?([0-9]+(_[0-9]+)*(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", flags=re.ASCII
)


@dataclass(frozen=True, kw_only=True)
class _InvalidValue:
    """A value that cannot be used."""

    problem: str


_Lines = dict[str | int, int]
"""Lines of the keys or items of one mapping or list."""
_Problems = list[tuple[str | None, int, str]]
"""Problems of a mapping's keys: key (None: the mapping itself), line, problem."""


class _Constructor(SafeConstructor):
    """The safe constructor of ruamel.yaml: scalars by `parse_scalar`, keys as text, and lines."""

    # A separate table: the inherited one also has binary data, sets and dates.
    yaml_constructors: dict[str | None, Any] = {}  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.lines: dict[int, _Lines] = {}
        """By the `id` of the mapping or list."""
        self.problems: dict[int, _Problems] = {}

    def read_mapping(self, node: Node) -> Iterator[Any]:
        """Yield the mapping, then fill it: an alias inside may stand for the mapping itself."""
        if not isinstance(node, MappingNode):
            yield _refused_tag(node)
            return
        values: dict[str, Any] = {}
        yield values
        lines: _Lines = {}
        problems: _Problems = []
        self.lines[id(values)], self.problems[id(values)] = lines, problems
        for key_node, value_node in node.value:
            key, line = key_node.value, _line(key_node)
            if not isinstance(key_node, ScalarNode):
                problems.append((None, line, "a key must be a single word"))
            elif key_node.style is None and key == "<<":
                problem = "merge keys are not supported; write the keys out"
                problems.append((None, line, problem))
            elif key in values:
                problem = f"the key is given twice (first in line {lines[key]})"
                problems.append((key, line, problem))
            else:
                lines[key] = line
                values[key] = self.construct_object(value_node)

    def read_list(self, node: Node) -> Iterator[Any]:
        """Yield the list, then fill it."""
        if not isinstance(node, SequenceNode):
            yield _refused_tag(node)
            return
        values: list[Any] = []
        yield values
        self.lines[id(values)] = dict(enumerate(map(_line, node.value)))
        values.extend(self.construct_object(item) for item in node.value)

    def read_scalar(self, node: Node) -> Any:
        """Return a scalar's value, regardless of the type that ruamel.yaml resolves."""
        if not isinstance(node, ScalarNode):
            return _refused_tag(node)
        text = str(node.value)
        if node.style is not None:
            return text
        if len(text) > _LONGEST_WHOLE and _WHOLE.fullmatch(text):
            return _InvalidValue(problem=f"a whole number of {len(text):,} digits is too large")
        value = parse_scalar(text)
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return _InvalidValue(problem=f"{text} is too large for a number")
        return value


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _refused_tag(node: Node) -> _InvalidValue:
    return _InvalidValue(problem=f"the tag {node.tag} is not supported")


_TAG = "tag:yaml.org,2002:"
_Constructor.add_constructor(f"{_TAG}map", _Constructor.read_mapping)
_Constructor.add_constructor(f"{_TAG}seq", _Constructor.read_list)
for _name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value"):
    _Constructor.add_constructor(f"{_TAG}{_name}", _Constructor.read_scalar)
_Constructor.add_constructor(None, lambda _, node: _refused_tag(node))


def read_yaml(text: str, name: str) -> tuple[Any, dict[KeyPath, str]]:
    """Return the value of a YAML text, and `file:line` of everything in it.

    Raises:
        InputError: when it is not YAML, or too deep or too large.
        InputErrors: for keys given twice, tags and numbers that are not supported; all at once.
    """
    reader = YAML(typ="safe", pure=True)
    reader.Constructor = _Constructor
    try:
        with warnings.catch_warnings():
            # With two values of one anchor, an alias would silently mean the second.
            warnings.simplefilter("error", ReusedAnchorWarning)
            value = reader.load(text)
    except ReusedAnchorWarning as error:
        raise InputError(f"not valid YAML: {str(error).strip()}", where=name) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{name}:{mark.line + 1}" if mark else name
        reason = " ".join(part for part in (error.context, error.problem) if part)
        lines = text.splitlines()
        bare = mark is not None and mark.line < len(lines) and "${" in lines[mark.line]
        hint = "Inside [ ] and { }, put texts with ${…} in quotes." if bare else None
        raise InputError(f"not valid YAML: {reason}", where=place, hint=hint) from None
    except YAMLError as error:
        raise InputError(f"not valid YAML: {error}", where=name) from None
    except RecursionError:
        raise InputError(
            "the file's values are nested too deeply",
            where=name,
            allowed=f"at most {_DEEPEST} levels",
        ) from None
    places, problems = _survey(value, reader.constructor, name)
    if problems:
        raise InputErrors(problems, title=f"{name} cannot be read:")
    return value, places


def _survey(
    top: Any, constructor: _Constructor, name: str
) -> tuple[dict[KeyPath, str], list[InputError]]:
    """Return the place of every key path in the values, and the problems.

    Aliases (`*name`) count as if they were written out, so a short file can stand for a huge one:
    the survey stops at a number of values that no experiment has.
    """
    places: dict[KeyPath, str] = {}
    problems: list[InputError] = []
    count = 0

    def refuse(path: KeyPath, place: str, problem: str) -> None:
        key = dotted(path)
        problems.append(InputError(f"{key}: {problem}" if key else problem, where=place))

    def visit(value: Any, path: KeyPath, parents: tuple[int, ...], place: str) -> None:
        nonlocal count
        count += 1
        if count > _MOST_VALUES:
            raise InputError(
                f"more than {_MOST_VALUES:,} values, aliases written out",
                where=place,
                hint="Use fewer aliases; put long lists into files that the experiment names.",
            )
        if path:
            places[path] = place
        if isinstance(value, _InvalidValue):
            refuse(path, place, value.problem)
        if not isinstance(value, dict | list):
            return
        if id(value) in parents or len(path) > _DEEPEST:
            refuse(path, place, "the value contains itself or is nested too deeply")
            return
        lines, parents = constructor.lines[id(value)], (*parents, id(value))
        for wrong, line, problem in constructor.problems.get(id(value), ()):
            refuse(path if wrong is None else (*path, wrong), f"{name}:{line}", problem)
        items: Iterable[tuple[str | int, Any]]
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            visit(item, (*path, key), parents, f"{name}:{lines[key]}")

    visit(top, (), (), name)
    return places, problems


# Readers of YAML 1.1 read some of these as true and false.
_NOT_PLAIN = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


def block_text(value: Any) -> str:
    """Return a value with one key per line, in the given order."""
    return _text(value, flow=False, width=100)


def flow_text(value: Any) -> str:
    """Return a value on one line, valid inside `[ ]`: `{fixed: 4}`."""
    return _text(value, flow=True, width=10_000).removesuffix("...\n").strip()


class _Representer(SafeRepresenter):
    """Quotes every text that is not a plain word, and writes floats with a point."""

    # A separate table, so that other users of ruamel.yaml keep theirs.
    yaml_representers = SafeRepresenter.yaml_representers.copy()

    def represent_text(self, text: str) -> ScalarNode:
        """Represent a text."""
        plain = text.isidentifier() and text.lower() not in _NOT_PLAIN
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')

    def represent_number(self, number: float) -> ScalarNode:
        """Represent a float; `1e-05` is a text in YAML 1.1, `1.0e-05` a number in both."""
        text = repr(number)
        if "e" in text and "." not in text:
            text = text.replace("e", ".0e", 1)
        return self.represent_scalar("tag:yaml.org,2002:float", text)


_Representer.add_representer(str, _Representer.represent_text)
_Representer.add_representer(float, _Representer.represent_number)


def _text(value: Any, *, flow: bool, width: int) -> str:
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = flow
    yaml.allow_unicode = True
    yaml.width = width
    yaml.sort_base_mapping_type_on_output = False
    stream = StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()
