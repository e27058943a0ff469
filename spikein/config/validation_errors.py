"""Translate pydantic's errors into the terms of an experiment file.

Each problem names its key path and its place, the given value, the allowed values and, for an
unknown key, a suggestion. Errors of the branches of a union become one.
"""

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from inject.errors import InputError, did_you_mean, unknown_name
from spikein.config.yaml_document import KeyPath, YamlDocument, dotted

_KINDS = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
    "model_attributes": "a mapping",
    "dataclass": "a mapping",
    "none_required": "null",
}


def validation_errors(
    error: ValidationError, model: type[BaseModel], document: YamlDocument
) -> list[InputError]:
    """Return one `InputError` per problem of `document`, in its order of keys.

    Args:
        error: the exception from validating `document.values` against `model`.
        model: the schema, which determines the allowed keys.
        document: the values, with their places.
    """
    details_by_path: dict[KeyPath, list[ErrorDetails]] = {}
    for details in error.errors():
        details_by_path.setdefault(_path(details, document.values), []).append(details)
    problems = []
    for path, group in details_by_path.items():
        value = _value(document.values, path)
        deeper = any(other != path and other[: len(path)] == path for other in details_by_path)
        if deeper and isinstance(value, Mapping | list):
            # Another branch of the union accepts the value's kind; its own error is more specific.
            group = [details for details in group if _expected_values(details) is None]
        if group:
            problems.append(_problem(path, group, value, model, document))
    return problems


def allowed_keys(model: type[BaseModel], values: Any, path: KeyPath) -> list[str]:
    """Return the keys that the models at `path` have, or an empty list if any key is allowed."""
    models, value = _models_at(model, values, path), _value(values, path)
    tagged = [schema for schema in models if _tag_fits(schema, value)] or models
    return list(dict.fromkeys(name for schema in tagged for name in schema.model_fields))


def plain_type(value: Any) -> str:
    """Return a description of a value of at most 60 characters: `the text 'x'`, `a list of 3`."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return str(value).lower()
        case str():
            return f"the text {_shorten(repr(value))}"
        case int() | float():
            return f"the number {value}"
        case list():
            return f"a list of {len(value)}"
        case Mapping():
            return f"a mapping of {_shorten(', '.join(value))}" if value else "an empty mapping"
        case _:
            return _shorten(repr(value))


def _problem(
    path: KeyPath,
    group: Sequence[ErrorDetails],
    value: Any,
    model: type[BaseModel],
    document: YamlDocument,
) -> InputError:
    key = dotted(path) or "the file"
    place = document.place(path)
    first = group[0]
    kind = first["type"]
    context = first.get("ctx") or {}
    if kind == "extra_forbidden":
        known_keys = allowed_keys(model, document.values, path[:-1])
        known_keys += ["extends"] if len(path) == 1 else []
        return unknown_name(f"{key}: no such key", str(path[-1]), known_keys, where=place)
    if kind == "missing":
        return InputError(f"{key}: is missing", where=document.place(path[:-1]))
    tag = str(context.get("discriminator", "kind")).strip("'")
    if kind == "union_tag_not_found":
        known_keys = _tags(model, document.values, path)
        return InputError(
            f"{key}: {tag} is missing", where=place, allowed=", ".join(known_keys) or None
        )
    if kind == "union_tag_invalid":
        known_keys = [part.strip().strip("'") for part in str(context["expected_tags"]).split(",")]
        wrong = str(context.get("tag"))
        problem = f"{key}.{tag}: {wrong!r} is not an allowed value"
        return unknown_name(problem, wrong, known_keys, where=document.place((*path, tag)))
    if kind in ("value_error", "assertion_error"):
        reason = first["msg"].partition(", ")[2]
        return InputError(f"{key}: {reason}", where=place, hint=_origins(value, path, document))
    expected = list(dict.fromkeys(text for details in group if (text := _expected_values(details))))
    if not expected:
        return InputError(f"{key}: {first['msg']} (given: {plain_type(value)})", where=place)
    close = ""
    if isinstance(value, str):
        literals = [
            word
            for details in group
            if details["type"] == "literal_error"
            for word in _words(details)
        ]
        close = did_you_mean(value, literals)
    return InputError(
        f"{key}: is {plain_type(value)}.{close}", where=place, allowed=" or ".join(expected)
    )


def _origins(mapping: Any, path: KeyPath, document: YamlDocument) -> str | None:
    """Return the places of a mapping's keys, if they come from several files or overrides."""
    if not isinstance(mapping, Mapping):
        return None
    places = {
        key: document.place((*path, key)) for key, value in mapping.items() if value is not None
    }
    if len({place.rpartition(":")[0] for place in places.values()}) < 2:
        return None
    listed = ", ".join(f"{key} at {place}" for key, place in places.items())
    return f"The keys come from several places: {listed}. Setting a key to null removes it."


def _expected_values(details: ErrorDetails) -> str | None:
    """Return the accepted values for errors about a value; None for the others."""
    kind = details["type"]
    context = details.get("ctx") or {}
    if kind in ("literal_error", "enum"):
        return ", ".join(_words(details))
    bounds = {
        "greater_than": ("gt", "more than {}"),
        "greater_than_equal": ("ge", "{} or more"),
        "less_than": ("lt", "less than {}"),
        "less_than_equal": ("le", "{} or less"),
        "multiple_of": ("multiple_of", "a multiple of {}"),
        "string_too_short": ("min_length", "text of at least {} characters"),
        "string_too_long": ("max_length", "text of at most {} characters"),
        "too_short": ("min_length", "at least {} of them"),
        "too_long": ("max_length", "at most {} of them"),
        "string_pattern_mismatch": ("pattern", "text of the form {}"),
    }
    if kind in bounds:
        name, form = bounds[kind]
        return form.format(context[name])
    if kind == "finite_number":
        return "a finite number"
    if kind in ("int_from_float", "int_parsing"):
        return "a whole number"
    return _KINDS.get(kind.removesuffix("_type").removesuffix("_parsing"))


def _words(details: ErrorDetails) -> list[str]:
    expected = str((details.get("ctx") or {}).get("expected", ""))
    return [part.strip().strip("'") for part in expected.replace(" or ", ", ").split(",") if part]


def _path(details: ErrorDetails, values: Any) -> KeyPath:
    """Return an error's place in the values, without names of union branches."""
    path: list[str | int] = []
    node = values
    for index, part in enumerate(details["loc"]):
        last = index == len(details["loc"]) - 1
        if isinstance(node, Mapping) and part in node:
            node = node[str(part)]
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        elif not (last and details["type"] == "missing"):
            continue
        path.append(part)
    return tuple(path)


def _value(values: Any, path: KeyPath) -> Any:
    node = values
    for part in path:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return None
    return node


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) is Annotated:
        return _models(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [model for branch in get_args(annotation) for model in _models(branch)]
    return []


def _items(annotation: Any) -> Iterable[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _items(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [item for branch in get_args(annotation) for item in _items(branch)]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return get_args(annotation)[:1]
    return []


def _models_at(model: type[BaseModel], values: Any, path: KeyPath) -> list[type[BaseModel]]:
    """Return the models allowed at `path`, below those whose `kind` is the given one."""
    annotations: list[Any] = [model]
    for depth, part in enumerate(path):
        value = _value(values, path[:depth])
        if isinstance(part, int):
            annotations = [item for schema in annotations for item in _items(schema)]
            continue
        annotations = [
            schema.model_fields[part].annotation
            for annotation in annotations
            for schema in _models(annotation)
            if part in schema.model_fields and _tag_fits(schema, value)
        ]
    return [schema for annotation in annotations for schema in _models(annotation)]


def _tags(model: type[BaseModel], values: Any, path: KeyPath) -> list[str]:
    """Return the values of `kind` of the models at `path`."""
    models = [candidate for candidate in _models_at(model, values, path) if _has_kind(candidate)]
    return [
        str(tag)
        for candidate in models
        for tag in get_args(candidate.model_fields["kind"].annotation)
    ]


def _has_kind(model: type[BaseModel]) -> bool:
    return "kind" in model.model_fields


def _tag_fits(model: type[BaseModel], values: Any) -> bool:
    if not _has_kind(model) or not isinstance(values, Mapping) or "kind" not in values:
        return True
    tags = get_args(model.model_fields["kind"].annotation)
    return not tags or values["kind"] in tags


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"
