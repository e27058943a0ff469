"""The detectors by name: built in, from installed packages, and from the user's files.

A built-in detector is the `DETECTOR` of a file in `detect/detectors`, which is imported on demand.
Installed packages offer theirs under `spikein.detectors`; `FILE.py:NAME` names one of a file
(`inject.plugins`). Either may be a `Detector`, or a plain function to a float from
`ExampleEvidence`, or from `TokenStatistics` if its annotation or its parameter's name says so. It
needs the `text` view and is named `FILE.NAME` in tables. `all` includes only the built-in ones, so
that an experiment means the same on every machine.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import detect.detectors
from detect.detector import Detector, check_detector, detector_of
from inject.errors import InputError, unknown_name
from inject.plugins import (
    FileReference,
    Group,
    Plugin,
    PluginKind,
    file_reference,
    installed_plugins,
    load_file,
    load_installed,
)

ALL = "all"
BUILT_IN = "built in"
EXPECTED = PluginKind(
    noun="detector",
    accepts=lambda value: (
        isinstance(value, Detector) or (callable(value) and not isinstance(value, type))
    ),
    allowed="a Detector, or a function from TokenStatistics or ExampleEvidence to a float",
)
_GROUP: Group = "spikein.detectors"
_FILE_FORM = "FILE.py:NAME"


@dataclass(frozen=True, kw_only=True)
class KnownDetector:
    """A detector, and its origin."""

    detector: Detector
    origin: str
    """`built in`, `FILE.py:NAME`, or a distribution and its version."""
    code: tuple[str, ...]
    """Modules of this project that it runs, for `Step.code`."""
    reference: str = ""
    """Reference by which `get_detector` finds it again, from any folder; empty if it cannot."""
    digest: str | None = None
    """Digest of a plug-in's source; None for a built-in one."""
    function: Callable[..., Any] | None = None
    """The plain function that it wraps; None for a `Detector`."""


def detector_names() -> tuple[str, ...]:
    """Return the names of the built-in detectors, in the order of tables."""
    return tuple(sorted(_built_in_names(), key=lambda name: (_built_in(name).order, name)))


def get_detector(text: str) -> KnownDetector:
    """Return a detector by its name, an alias (`ppl`, `mink++` …), its title or `FILE.py:NAME`.

    Raises:
        InputError: an unknown name, with suggestions; a plug-in that cannot be loaded, declares an
            unknown need, or has a name already in use.
    """
    reference = file_reference(text)
    if reference is not None:
        return _of_file(reference)
    requested = text.strip()
    plain = _normalise_name(requested)
    name = plain if plain in _built_in_names() else _aliases().get(plain)
    if name is not None:
        return KnownDetector(
            detector=_built_in(name),
            origin=BUILT_IN,
            reference=name,
            code=(f"{detect.detectors.__name__}.{name}",),
        )
    installed = installed_plugins(_GROUP)
    for key in (requested, plain):
        if key in installed:
            return _of_plugin(installed[key].load(EXPECTED), key, reference=key)
    names = [*_built_in_names(), *_aliases(), *installed]
    allowed = ", ".join([ALL, *detector_names(), *installed, _FILE_FORM])
    raise unknown_name(f"unknown detector {requested!r}", plain, names, allowed=allowed)


def detector_title(name: str) -> str:
    """Return a built-in detector's printed title, by its name; for any other, the name."""
    return (_built_in(name).title or name) if name in _built_in_names() else name


def every_detector(files: Sequence[str] = ()) -> tuple[list[KnownDetector], tuple[str, ...]]:
    """Return the built-in detectors, those from installed packages and files, and warnings.

    Args:
        files: `FILE.py:NAME` references.

    Raises:
        InputError: if one of the files cannot be used.
    """
    detectors = [get_detector(name) for name in detector_names()]
    taken = dict.fromkeys([*_built_in_names(), *_aliases()], "by a built-in detector")
    plugins, unusable = load_installed(_GROUP, EXPECTED, taken=taken)
    warnings = [*unusable]
    for name, plugin in plugins.items():
        try:
            detectors.append(_of_plugin(plugin, name, reference=name))
        except InputError as error:
            warnings.append(f"skipped: {error}")
    return [*detectors, *map(get_detector, files)], tuple(warnings)


@cache
def _built_in_names() -> tuple[str, ...]:
    """Return the files of `detect/detectors`, without importing them."""
    return tuple(module.name for module in pkgutil.iter_modules(detect.detectors.__path__))


def _built_in(name: str) -> Detector:
    module = importlib.import_module(f"{detect.detectors.__name__}.{name}")
    return module.DETECTOR


@cache
def _aliases() -> dict[str, str]:
    """Return the names of the built-in detectors by their aliases and titles."""
    return {
        alias: name
        for name in _built_in_names()
        for alias in (_normalise_name(_built_in(name).title), *_built_in(name).aliases)
        if alias != name
    }


def _normalise_name(text: str) -> str:
    """Return a name in the form for look-ups: `Min-K%++` becomes `min_k++`."""
    return re.sub(r"[ -]", "_", text.lower()).replace("%", "")


def _of_file(reference: FileReference) -> KnownDetector:
    plugin = load_file(reference._replace(rest=""), EXPECTED)
    stem = re.sub(r"[^A-Za-z0-9_+-]", "_", Path(reference.file).stem)
    entry = _of_plugin(
        plugin,
        None,
        function_name=f"{stem}.{plugin.name}",
        reference=f"{Path(reference.file).expanduser().resolve()}:{reference.name}",
    )
    name, title = entry.detector.name, entry.detector.title
    built_in = {*_built_in_names(), *_aliases()}
    if name not in built_in and _normalise_name(title) in built_in:
        raise InputError(
            f"the title {title!r} is taken by a built-in detector",
            where=plugin.origin,
            hint="Give the Detector another `title`.",
        )
    taken = "a built-in detector" if name in built_in else ""
    if not taken and (installed := installed_plugins(_GROUP).get(name)):
        taken = f"a detector of {installed.origin}"
    if taken or name.lower() == ALL:
        raise InputError(
            f"the name {name!r} is taken by {taken or 'the word for every detector'}",
            where=plugin.origin,
            hint="Give the Detector another `name`.",
        )
    return entry


def _of_plugin(
    plugin: Plugin, name: str | None, *, reference: str, function_name: str = ""
) -> KnownDetector:
    """Return the detector of a plug-in, under `name` unless it declares one."""
    value: Any = plugin.value
    function = None if isinstance(value, Detector) else value
    if function is not None:
        value = detector_of(value, name or function_name, place=plugin.origin)
    elif name is not None:
        value = replace(value, name=name)
    check_detector(value, place=plugin.origin)
    return KnownDetector(
        detector=value,
        origin=plugin.origin,
        reference=reference,
        code=plugin.code,
        digest=plugin.digest,
        function=function,
    )
