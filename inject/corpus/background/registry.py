"""Kinds to sources of the background: built in, installed, or in a file of the user's.

The identity of a source is the content that it reads and, for a plug-in, its source code's digest.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic.functional_serializers import WrapSerializer
from pydantic.functional_validators import WrapValidator
from pydantic_core.core_schema import SerializationInfo

from inject.corpus.background.docstrings import DocstringsSource
from inject.corpus.background.document import Source
from inject.corpus.background.files import FilesSource
from inject.corpus.background.hub import HubSource
from inject.errors import InputError, unknown_name
from inject.plugins import (
    Plugin,
    PluginKind,
    file_reference,
    find_plugin,
    installed_plugins,
    load_installed,
)

BUILT_IN: Mapping[str, type[DocstringsSource | FilesSource | HubSource]] = {
    "docstrings": DocstringsSource,
    "files": FilesSource,
    "hub": HubSource,
}

_GROUP: Final = "spikein.sources"
_EXPECTED = PluginKind(
    noun="source",
    accepts=lambda value: isinstance(value, type) and issubclass(value, Source),
    allowed="a subclass of spikein.Source",
)


def _validate(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Let the class that `kind` names validate a source."""
    if isinstance(value, Source):
        return value
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str):
        return handler(value)
    if kind in BUILT_IN:
        return _of_class(BUILT_IN[kind], value, handler, info)
    try:
        plugin = _plugin(kind)
    except InputError as error:
        raise ValueError(str(error)) from error
    if plugin is None:
        # The handler's message names the kinds that there are.
        return handler(value)
    return _of_class(plugin.value, value, plugin.value.model_validate, info)


def _of_class(
    source: type[BaseModel], value: Any, otherwise: Callable[[Any], Any], info: ValidationInfo
) -> Any:
    """Validate as strictly as the file around it is.

    Values of a JSON text arrive as Python's, for which strict mode rejects a list as a tuple.
    """
    if info.mode == "json":
        return source.model_validate_json(json.dumps(value), strict=True)
    return otherwise(value)


def _serialise(value: Any, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
    return value.model_dump(mode=info.mode) if isinstance(value, Source) else handler(value)


AnySource = Annotated[
    Annotated[DocstringsSource | FilesSource | HubSource, Field(discriminator="kind")],
    WrapValidator(_validate),
    WrapSerializer(_serialise),
]
"""Any source; `kind` names its class."""

SOURCES: TypeAdapter[tuple[AnySource, ...]] = TypeAdapter(tuple[AnySource, ...])
"""Sources from their plain JSON values, and back."""


def source_identity(source: DocstringsSource | FilesSource | HubSource | Source) -> dict[str, Any]:
    """Return the inputs that determine a source's documents: its data and, for a plug-in, its code.

    Raises:
        InputError: missing files, or a plug-in that can no longer be used.
    """
    if not isinstance(source, Source):
        return source.identity()
    plugin = _plugin_of(source)
    return {"plugin": plugin.digest, "content": source.identity()}


def sources_identity(sources: Sequence[AnySource]) -> list[dict[str, Any]]:
    """Return the identity of a background: each source's content and weight.

    Reads the sources' files (or queries the hub), so it is called once per experiment.
    """
    return [{"content": source_identity(source), "weight": source.weight} for source in sources]


def source_code(source: DocstringsSource | FilesSource | HubSource | Source) -> tuple[str, ...]:
    """Return the modules of ours that a source runs, for `Step.code`."""
    return _plugin_of(source).code if isinstance(source, Source) else (type(source).__module__,)


def source_kind(source: DocstringsSource | FilesSource | HubSource | Source) -> str:
    """Return a source's kind for the names of folders: the NAME of `FILE.py:NAME`."""
    reference = file_reference(source.kind)
    return reference.name if reference else source.kind


def source_table() -> tuple[list[tuple[str, str, str]], tuple[str, ...]]:
    """Return kind, summary and origin of every source that has a name, and what is wrong with those
    that cannot be loaded.

    Those of installed packages are imported.
    """
    plugins, warnings = load_installed(
        _GROUP, _EXPECTED, taken=dict.fromkeys(BUILT_IN, "it is built in")
    )
    lines = [(kind, _summary(source), "spikein") for kind, source in BUILT_IN.items()]
    lines += [(kind, _summary(plugin.value), plugin.origin) for kind, plugin in plugins.items()]
    return sorted(lines), warnings


def _plugin(kind: str) -> Plugin | None:
    """Return the plug-in of a kind; None if no installed package offers it."""
    hint = "Give the source's options as keys next to `kind:`."
    plugin = find_plugin(kind, _GROUP, _EXPECTED, hint=hint)
    if plugin is None and (installed := installed_plugins(_GROUP)):
        names = sorted({*BUILT_IN, *installed})
        allowed = f"{', '.join(names)}, or FILE.py:NAME"
        raise unknown_name(f"{kind!r} is not a kind of source", kind, names, allowed=allowed)
    return plugin


def _plugin_of(source: Source) -> Plugin:
    plugin = _plugin(source.kind)
    if plugin is None:
        raise InputError("is no longer installed", where=f"source {source.kind}")
    return plugin


def _summary(source: type[Any]) -> str:
    lines = (source.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""
