"""The digest of the code that decides a number, so that changed code never passes for the old.

The code of a step is the module of its function and all of our modules that this one imports,
directly or not, imports inside functions included. Each counts whole, without comments, docstrings
and the wording of errors (`inject.source_code`). So what a step's function needs not import stays
out by lying in another module. What is found by a name (a dataset, a detector) is not imported by
who finds it: its module is named beside the function's.

A module that reads data files of its own folder lists them in the constant `DATA_FILES`; they count
with it. A test traces what runs. Cost: each file is read and parsed once a process, 4 ms a file.
"""

import hashlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from inject.errors import InputError
from inject.source_code import SourceModule, parse_module

PACKAGES = ("inject", "train", "detect", "analysis", "spikein")
"""Whose code is followed; libraries count by their versions."""

Reader = Callable[[str], bytes | None]
"""From a dotted name to the source of that module; None where there is no such module."""

DataReader = Callable[[str, str], bytes]
"""From a module's dotted name and a file's name to the content of that file beside the module."""


def root(thing: Any) -> str:
    """Return where the code of a function or a class begins: `module:name`."""
    return f"{thing.__module__}:{thing.__qualname__}"


@dataclass(kw_only=True, eq=False)
class Sources:
    """The sources of our packages."""

    read: Reader
    read_data: DataReader = field(default_factory=lambda: read_data_file)
    _modules: dict[str, SourceModule | None] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _imported: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _not_imported: dict[str, bytes] = field(default_factory=dict)
    """Sources of modules that Python had not imported when they were read here."""

    def edited(self, roots: Iterable[str]) -> list[str]:
        """Return the modules of the roots that may run as they were not hashed.

        Those are modules that were edited since and that Python had not imported before.
        """
        reached = self.reached(roots)
        return [
            name
            for name, text in self._not_imported.items()
            if name in reached and self.read(name) != text
        ]

    def digest(self, roots: Iterable[str]) -> str:
        """Return the SHA-256 (hex) of all modules that the roots lead to.

        Args:
            roots: `module` or `module:name` each.

        Raises:
            LookupError: a root, or a module of ours that is imported, does not exist.
        """
        state = hashlib.sha256()
        for module in sorted(self.reached(roots)):
            state.update(f"{module} {self._digest(module)}\n".encode())
        return state.hexdigest()

    def reached(self, roots: Iterable[str]) -> frozenset[str]:
        """Return the modules that the roots lead to, packages around them included."""
        waiting = [one.partition(":")[0] for one in roots]
        found: set[str] = set()
        while waiting:
            module = waiting.pop()
            if module not in found:
                found.add(module)
                waiting.extend(self._imports(module))
        return frozenset(found)

    def module_of(self, dotted: str) -> str | None:
        """Return the module of ours that a dotted name lies in or is; None in a library.

        A name that its module brings along when it is first used (`spikein`) leads to its own.

        Raises:
            LookupError: there is no such module.
        """
        if dotted.partition(".")[0] not in PACKAGES:
            return None
        if self._module(dotted) is not None:
            return dotted
        module, _, name = dotted.rpartition(".")
        source = self._module(module) if module else None
        if source is None:
            raise LookupError(f"no module {dotted}")
        return self.module_of(source.lazy[name]) if name in source.lazy else module

    def _imports(self, module: str) -> tuple[str, ...]:
        if module not in self._imported:
            source = self._module(module)
            if source is None:
                raise LookupError(f"no module {module}")
            found = {one for dotted in source.imports if (one := self.module_of(dotted))}
            # The packages around a module are executed before it.
            package = module.rpartition(".")[0]
            self._imported[module] = tuple(sorted({*found, *([package] if package else [])}))
        return self._imported[module]

    def _digest(self, module: str) -> str:
        if module not in self._digests:
            source = self._module(module)
            if source is None:
                raise LookupError(f"no module {module}")
            state = hashlib.sha256(source.text.encode())
            for file in source.data_files:
                content = hashlib.sha256(self.read_data(module, file)).hexdigest()
                state.update(f"{file} {content}\n".encode())
            self._digests[module] = state.hexdigest()
        return self._digests[module]

    def _module(self, name: str) -> SourceModule | None:
        if name not in self._modules:
            text = self.read(name)
            if text is not None and name not in sys.modules:
                self._not_imported[name] = text
            self._modules[name] = None if text is None else parse_module(name, text)
        return self._modules[name]


def read_source(name: str) -> bytes | None:
    """Return the source of a module, or None where there is no such module.

    One that is not ours holds the function of a step, as those of tests do.
    """
    if name.partition(".")[0] not in PACKAGES:
        spec = find_spec(name)
        return None if spec is None or not spec.origin else Path(spec.origin).read_bytes()
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
        raise LookupError(f"{module} lists {name} in DATA_FILES, and there is no such file")
    return path.read_bytes()


_sources = Sources(read=read_source)


@lru_cache(maxsize=4096)
def source_digest(roots: tuple[str, ...]) -> str:
    """Return the digest of the code that the roots lead to (see `Sources.digest`).

    The sources are read once a process.
    """
    return _sources.digest(roots)


def module_of(dotted: str) -> str | None:
    """Return the module that an import of a dotted name leads to (see `Sources.module_of`)."""
    return _sources.module_of(dotted)


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
