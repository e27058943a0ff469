"""`key=value` from the command line, and `${name}` inside the file, before anything is checked.

Overrides are put into the plain values, so that the check of the whole experiment treats them like
the file's own keys; only their place in messages differs. A first key that is not a key of an
experiment is a variable: `data=../files` means `variables.data=../files`. A value that is only
`${name}` keeps the variable's type; inside a longer text it becomes text. `$${` is a literal `${`.
"""

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from inject.errors import InputError, InputErrors, unknown_name
from inject.secrets import masked
from spikein.config.former_keys import current_override
from spikein.config.validation_errors import validation_errors
from spikein.config.yaml_document import (
    KeyPath,
    YamlDocument,
    dotted,
    parse_path,
    parse_value,
    read_document,
)

Model = TypeVar("Model", bound=BaseModel)

_REFERENCE = re.compile(r"\$(\$\{|\{([^{}]*)\})")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def _parse_override(text: str, place: str) -> tuple[KeyPath, Any]:
    """Return the path and the value of one `key=value`."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key or any(not part for part in key.split(".")):
        raise InputError(
            "not an override", where=repr(masked(text)), allowed="key=value, such as train.lr=1e-3"
        )
    return parse_path(key), parse_value(value, place=place)


def apply_overrides(
    document: YamlDocument, overrides: Sequence[str], *, keys: Iterable[str]
) -> tuple[YamlDocument, list[InputError]]:
    """Return the document with the overrides in place, and every problem they have.

    Args:
        document: the content of the file.
        overrides: `key=value` each; a later one wins over an earlier one.
        keys: the top-level keys of an experiment.
    """
    known_keys = tuple(keys)
    values: dict[str, Any] = copy.deepcopy(dict(document.values))
    places = dict(document.places)
    problems: list[InputError] = []
    assigned: dict[KeyPath, str] = {}
    for text in overrides:
        place = f"override {masked(text)}"
        try:
            key_path, value = current_override(*_parse_override(text, place), place)
            path = _resolve_variable(key_path, place, values, known_keys)
            if path[0] == "arms":
                _check_arm(values, path, value, place)
            set_value(values, path, value, place=place)
        except InputError as error:
            problems.append(error)
            continue
        if path[0] == "arms" and len(path) == 2 and value is None:
            del values["arms"][path[1]]
        for old in [old for old in places if old[: len(path)] == path]:
            del places[old]
        places[path] = place
        assigned[path] = place
    # After the last override, as a later one may end the sweep.
    for path, place in assigned.items():
        if axis := _find_swept_axis(values, path):
            problem = f"{dotted(path)} is swept, so that its value would be replaced by the sweep's"
            hint = f"Give sweep.{axis}=[…], or sweep.{axis}=null to stop sweeping it."
            problems.append(InputError(problem, where=place, hint=hint))
        elif axis := _find_set_by_all(values, path):
            problem = f"{dotted(path)} is set by every arm, so that its value would be replaced"
            hint = f"Give arms.NAME.{axis}=… for an arm, or arms=null to remove all arms."
            problems.append(InputError(problem, where=place, hint=hint))
    return YamlDocument(values=values, places=places, name=document.name), problems


def set_value(values: dict[str, Any], path: KeyPath, value: Any, *, place: str) -> None:
    """Set `value` at `path` in nested dicts and lists, in place; create missing mappings.

    Raises:
        InputError: when the path leads through a single value or past a list's end.
    """
    node: Any = values
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        prefix = dotted(path[:depth])
        if isinstance(node, list):
            if not isinstance(part, int) or part >= len(node):
                raise InputError(
                    f"{prefix} is a list of {len(node)}, it has no item {part}",
                    where=place,
                    allowed=f"{prefix}.0 to {prefix}.{len(node) - 1}" if node else "none",
                )
        elif isinstance(node, dict):
            part = str(part)
            if not last and node.get(part) is None:
                node[part] = {}
        else:
            raise InputError(f"{prefix} is a single value, it has no key {part}", where=place)
        if last:
            node[part] = copy.deepcopy(value)
        else:
            node = node[part]


def interpolate(document: YamlDocument) -> tuple[YamlDocument, list[InputError]]:
    """Return the document with every `${name}` replaced, and the problems with unknown names."""
    declared = document.values.get("variables")
    variables = dict(declared) if isinstance(declared, Mapping) else {}
    problems: list[InputError] = []
    for name, value in variables.items():
        place = document.place(("variables", name))
        if not _VARIABLE.fullmatch(name):
            problems.append(InputError(f"variables: {name!r} is not a variable name", where=place))
        if isinstance(value, str) and _references(value):
            problems.append(
                InputError(f"variables.{name}: a variable cannot name a variable", where=place)
            )

    def replaced(text: str, path: KeyPath) -> Any:
        if "${" not in text:
            return text
        for name in _references(text):
            if name not in variables:
                problems.append(
                    unknown_name(
                        f"{dotted(path)}: ${{{name}}} is not a variable",
                        name,
                        sorted(variables),
                        where=document.place(path),
                        none="none are declared",
                        hint=f"Give {name}=… on the command line, or $${{ for a literal ${{.",
                    )
                )
                return text
        whole = _REFERENCE.fullmatch(text)
        if whole and whole.group(2) is not None:
            return variables[whole.group(2)]
        return _REFERENCE.sub(
            lambda match: "${" if match.group(2) is None else _to_text(variables[match.group(2)]),
            text,
        )

    return document.with_texts(replaced), problems


def read_settings(
    model: type[Model], path: Path | None, overrides: Sequence[str], options: dict[str, Any]
) -> Model:
    """Return the settings of a file, of overrides, and of the options of a command.

    Args:
        model: the class of the settings.
        path: a YAML file, or None.
        overrides: `KEY=VALUE` each, dotted keys or names of variables.
        options: keys of the command line; they win.

    Raises:
        InputErrors: with all problems, and suggestions for unknown keys.
    """
    document = (
        YamlDocument(values={}, places={}, name="the command line")
        if path is None
        else read_document(path)
    )
    document, problems = apply_overrides(document, overrides, keys=model.model_fields)
    values = {**document.values, **options}
    places = {key: place for key, place in document.places.items() if key[0] not in options}
    places |= {(key,): "the command line" for key in options}
    document, unknown = interpolate(YamlDocument(values=values, places=places, name=document.name))
    problems += unknown
    try:
        settings = model.model_validate(document.values)
    except ValidationError as error:
        problems += validation_errors(error, model, document)
    if problems:
        raise InputErrors(problems, title="these settings cannot be used:")
    return settings


def escape(value: Any) -> Any:
    """Return plain values with every `${` written as `$${`: the reverse of `interpolate`."""
    if isinstance(value, Mapping):
        return {key: escape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [escape(item) for item in value]
    return value.replace("${", "$${") if isinstance(value, str) else value


def _references(text: str) -> list[str]:
    return [match.group(2) for match in _REFERENCE.finditer(text) if match.group(2) is not None]


def _to_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _resolve_variable(
    path: KeyPath, place: str, values: Mapping[str, Any], keys: Sequence[str]
) -> KeyPath:
    """Return the path of an override: an unknown first key is a variable."""
    first = str(path[0])
    if (first in keys and first != "variables") or path == ("variables",):
        return path
    if first == "extends":
        raise InputError("set extends in the experiment file, not on the command line", where=place)
    declared = values.get("variables") or {}
    name = first if first != "variables" else str(path[1])
    used = _all_references(values)
    extra = len(path) > (2 if first == "variables" else 1)
    if extra or (name not in declared and name not in used):
        candidates = [*keys, *declared, *used]
        # The settings of a command have no variables.
        noun = "key and no variable" if "variables" in keys else "setting"
        problem = f"there is no {noun} {dotted(path)!r}"
        raise unknown_name(problem, name, dict.fromkeys(candidates), where=place)
    return ("variables", name)


def _all_references(node: Any) -> list[str]:
    if isinstance(node, Mapping):
        return [name for item in node.values() for name in _all_references(item)]
    if isinstance(node, list):
        return [name for item in node for name in _all_references(item)]
    return _references(node) if isinstance(node, str) else []


def _check_arm(values: Mapping[str, Any], path: KeyPath, value: Any, place: str) -> None:
    """Refuse an override of a part of an arm, or its removal, if the experiment lacks that arm."""
    arms = values.get("arms")
    names = list(arms) if isinstance(arms, Mapping) else []
    created = len(path) < 3 and isinstance(value, Mapping)
    if len(path) > 1 and not created and path[1] not in names:
        raise unknown_name(
            f"the experiment has no arm {path[1]!r}",
            str(path[1]),
            names,
            where=place,
            none="none; the experiment has no arms",
            hint=f"arms.{path[1]}={{KEY: VALUE}} adds an arm.",
        )


def _find_swept_axis(values: Mapping[str, Any], path: KeyPath) -> str | None:
    sweep = values.get("sweep")
    if path[0] == "sweep" or not isinstance(sweep, Mapping):
        return None
    return _find_around(sweep, path)


def _find_set_by_all(values: Mapping[str, Any], path: KeyPath) -> str | None:
    """Return the key around `path` that every arm sets; None without one."""
    arms = values.get("arms")
    if path[0] == "arms" or not isinstance(arms, Mapping):
        return None
    keys = [_find_around(arm, path) for arm in arms.values() if isinstance(arm, Mapping)]
    return keys[0] if keys and len(keys) == len(arms) and all(keys) else None


def _find_around(axes: Iterable[str], path: KeyPath) -> str | None:
    """Return the axis that is `path` or around it; None without one."""
    written = parse_path(dotted(path))
    for axis in axes:
        swept = parse_path(axis)
        if swept == written[: len(swept)]:
            return str(axis)
    return None
