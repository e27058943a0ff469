"""The digest of the code that decides a number, so that changed code never passes for the old.

From a few roots (the function that builds an artifact, the class of a source, a detector) it
follows every reference to what our packages define, and hashes what it met: functions, classes
and constants one by one, so that a change elsewhere in a module changes nothing. Comments,
docstrings, formatting and the wording of errors do not count (`inject.source_code`).

A module that reads data files of its own folder lists them in the constant `DATA_FILES`; whatever
refers to that constant counts with the files' content.

What no reference leads to must be named as a root: whatever is found by a name in a registry, and
the classes of objects that are handed over without an annotation. A test traces what runs.
Cost: each file is read and parsed once a process; all steps of an experiment take about half a
second.
"""

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from inject.errors import InputError
from inject.source_code import Definition, SourceModule

PACKAGES = ("inject", "train", "detect", "analysis", "spikein")
"""Whose code is followed; libraries count by their versions."""

UNDECIDING: Mapping[str, str] = {
    "inject.errors": "says what is wrong, after which there is no artifact",
    "inject.corpus.background.registry": "finds sources, which are roots of their own",
    "inject.examples.datasets.registry": "finds datasets, which are roots of their own",
    "inject.files": "writes a file whole or not at all",
    "inject.plugins.files": "loads plug-ins, which count by the digests of their sources",
    "inject.plugins.installed": "loads plug-ins, which count by the digests of their sources",
    "inject.plugins.modules": "finds the modules of plug-ins when something is imported",
    "train.transformers_logging": "silences what libraries print",
    "train.loop.trackers": "copies the log to trackers",
    "train.mfu": "what the device could do; stands in the log alone",
    "train.cost": "how many operations a token takes; stands in the log alone",
    "train.execution": "where and how a model is trained, which changes no result by design",
    "inject.helper_processes": "ends a process whose parent is gone",
    "inject.sealed": "tells a whole checkpoint from a damaged one",
    "train.processes.heartbeat": "says where a process is",
    "train.processes.hang_detection": "finds a process that hangs",
    "train.processes.preemption": "ends a run early; what is taken up again is the run never ended",
    "train.launch": "starts processes; what they compute is that of `train.loop.training_loop`",
    "train.loop.errors": "says where to start again after a kill",
    "spikein.pipeline.graph": "hands a step its inputs",
    "spikein.pipeline.steps.background_identity": "names the background: compared, never read",
}
"""Modules that no number depends on, with the reason."""

Reader = Callable[[str], bytes | None]
"""From a dotted name to the source of that module; None where there is no such module."""

DataReader = Callable[[str, str], bytes]
"""From a module's dotted name and a file's name to the content of that file beside the module."""

DATA_FILES = "DATA_FILES"
"""The constant in which a module lists its data files: a tuple of their names."""


def root(thing: Any, name: str | None = None) -> str:
    """Return how a function, a class or a function inside a function is named as a root.

    Args:
        thing: a function or a class; with `name`, a module.
        name: a name in that module, for what knows no name itself.
    """
    if name is not None:
        return f"{thing.__name__}:{name}"
    return f"{thing.__module__}:{thing.__qualname__.replace('.<locals>', '')}"


@dataclass(kw_only=True, eq=False)
class Sources:
    """The sources of our packages."""

    read: Reader
    read_data: DataReader = field(default_factory=lambda: read_data_file)
    undeciding: Mapping[str, str] = field(default_factory=lambda: UNDECIDING)
    _modules: dict[str, SourceModule | None] = field(default_factory=dict)
    _definitions: dict[tuple[str, str], "_Hashed"] = field(default_factory=dict)
    _not_imported: dict[str, bytes] = field(default_factory=dict)
    """Sources of modules that Python had not imported when they were read here."""

    def edited(self, roots: tuple[str, ...]) -> list[str]:
        """Return the modules that the roots lead to and that may run as they were not hashed.

        Those are modules that were edited since and that Python had not imported before.
        """
        reached = {module for module, _ in self.reached(roots)}
        return [
            name
            for name, text in self._not_imported.items()
            if name in reached and self.read(name) != text
        ]

    def digest(self, roots: tuple[str, ...]) -> str:
        """Return the SHA-256 (hex) of all that the roots lead to.

        Args:
            roots: `module:name` each; `module:outer.inner` for a function inside a function.

        Raises:
            LookupError: a root, or a name that is imported from our packages, does not exist.
        """
        state = hashlib.sha256()
        for (module, name), found in sorted(self.reached(roots).items()):
            state.update(f"{module}:{name} {found}\n".encode())
        return state.hexdigest()

    def reached(self, roots: tuple[str, ...]) -> dict[tuple[str, str], str]:
        """Return each definition that the roots lead to, with the SHA-256 of its text.

        The name is empty for what a module does when it is imported.
        """
        waiting: list[tuple[str, str]] = []
        for one in roots:
            module, _, name = one.partition(":")
            waiting.append((module, name))
        found: dict[tuple[str, str], str] = {}
        while waiting:
            place = waiting.pop()
            if place in found or place[0] in self.undeciding:
                continue
            hashed = self._hashed(*place)
            found[place] = hashed.digest
            waiting.extend(hashed.leads_to)
            waiting.append((place[0], ""))
        return found

    def roots_of(self, dotted: str) -> tuple[str, ...]:
        """Return the roots that an import of a dotted name of our packages leads to.

        A name that its module makes while it runs (`__getattr__`) leads to the module alone.
        """
        try:
            places = self._places(dotted)
        except LookupError:
            places = [(dotted.rpartition(".")[0] or dotted, "")]
        return tuple(f"{module}:{name}" for module, name in places)

    def _hashed(self, module: str, name: str) -> "_Hashed":
        known = self._definitions.get((module, name))
        if known is None:
            known = self._definitions[module, name] = self._look_up(module, name)
        return known

    def _look_up(self, module: str, name: str) -> "_Hashed":
        source = self._module(module)
        if source is None:
            raise LookupError(f"no module {module}")
        if not name:
            definition = source.effects or Definition("", frozenset())
        else:
            try:
                definition = source.definition(name)
            except KeyError:
                raise LookupError(f"{module} defines no {name}") from None
        places = {place for one in definition.references for place in self._places(one)}
        state = hashlib.sha256(definition.text.encode())
        if name == DATA_FILES:
            for file in source.texts(name):
                content = hashlib.sha256(self.read_data(module, file)).hexdigest()
                state.update(f"{file} {content}\n".encode())
        digest = state.hexdigest()
        return _Hashed(digest=digest, leads_to=tuple(sorted(places)))

    def _places(self, dotted: str) -> list[tuple[str, str]]:
        """Return where the thing is defined that a dotted name stands for; [] in a library."""
        module, _, rest = dotted.partition(".")
        if module not in PACKAGES:
            return []
        while rest:
            name, _, behind = rest.partition(".")
            if self._module(f"{module}.{name}") is None:
                return self._defined(module, name)
            module, rest = f"{module}.{name}", behind
        found = self._module(module)
        # The module itself is handed on, and anybody may take anything out of it.
        return [(module, name) for name in found.names] if found else []

    def _defined(self, module: str, name: str) -> list[tuple[str, str]]:
        if module in self.undeciding or name.startswith("__"):
            return []
        source = self._module(module)
        if source is None:
            raise LookupError(f"no module {module}")
        if name in source.names:
            return [(module, name)]
        if name in source.imported:
            return self._places(source.imported[name])
        raise LookupError(f"{module} defines no {name}")

    def _module(self, name: str) -> SourceModule | None:
        if name not in self._modules:
            text = self.read(name)
            if text is not None and name not in sys.modules:
                self._not_imported[name] = text
            self._modules[name] = None if text is None else SourceModule.parse(name, text)
        return self._modules[name]


@dataclass(frozen=True, kw_only=True)
class _Hashed:
    digest: str
    leads_to: tuple[tuple[str, str], ...]


def read_source(name: str) -> bytes | None:
    """Return the source of one of our modules, or None where there is no such module."""
    path = Path(__file__).parents[1].joinpath(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file.read_bytes()
    return None


def read_data_file(module: str, name: str) -> bytes:
    """Return the content of a file beside one of our modules.

    Raises:
        LookupError: the module lists a file that is not there.
    """
    path = Path(__file__).parents[1].joinpath(*module.split(".")[:-1], name)
    if not path.is_file():
        raise LookupError(f"{module} lists {name} in {DATA_FILES}, and there is no such file")
    return path.read_bytes()


_sources = Sources(read=read_source)


@lru_cache(maxsize=4096)
def source_digest(roots: tuple[str, ...]) -> str:
    """Return the digest of the code that the roots lead to (see `Sources.digest`).

    The sources are read once a process.
    """
    return _sources.digest(roots)


def roots_of(dotted: str) -> tuple[str, ...]:
    """Return the roots that an import of a dotted name leads to (see `Sources.roots_of`)."""
    return _sources.roots_of(dotted)


def require_unedited(roots: tuple[str, ...]) -> None:
    """Check, before the code runs, that Python will import what was hashed.

    Raises:
        InputError: a module was edited since; names it.
    """
    if edited := _sources.edited(roots):
        raise InputError(
            "the source was edited since this run began, and was not imported before",
            where=", ".join(sorted(edited)),
            hint="Run again: what is finished is kept, and the rest is made by the new source.",
        )
