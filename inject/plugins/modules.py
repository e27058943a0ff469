"""Executes the sources of a plug-in file as modules of their own, from the bytes that were read.

Each plug-in's modules live under a private package, so that two files may both have a `helper.py`
beside them, and no folder of the user's is put on Python's path. Import statements in these modules
are answered from the sources first. What was not read cannot be imported from the folder, so
nothing runs that was not hashed.
"""

import builtins
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from inject.plugins.sources import Source


class _PluginModules(MetaPathFinder, InspectLoader):
    """Finds and loads the modules of all plug-in files of this process."""

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}
        """By the whole name, the private package included."""
        self.importers: dict[str, Callable[..., Any]] = {}
        """The `__import__` of each private package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        source = self.sources.get(fullname)
        if source is None:
            return None
        spec = ModuleSpec(fullname, self, origin=str(source.path), is_package=source.is_package)
        spec.has_location = True
        return spec

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self.sources[fullname].content)

    def get_code(self, fullname: str) -> CodeType:
        source = self.sources[fullname]
        return self.source_to_code(source.content, str(source.path))

    def is_package(self, fullname: str) -> bool:
        return self.sources[fullname].is_package

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.partition(".")[0]
        module.__dict__["__builtins__"] = {
            **vars(builtins),
            "__import__": self.importers[package],
        }
        super().exec_module(module)


_modules = _PluginModules()
_lock = threading.RLock()


def execute(package: str, name: str, sources: Mapping[str, Source], folder: Path) -> ModuleType:
    """Return a module of the sources, executed once a process.

    Args:
        package: the private package's name; the same for the same sources in the same folder.
        name: the module's dotted name.
        sources: of `read_sources`.
        folder: where they lie.

    Raises:
        BaseException: whatever the module raises; then none of it stays imported.
    """
    with _lock:
        if package not in _modules.importers:
            _modules.sources[package] = Source(folder, b"", True)
            for one, source in sources.items():
                _modules.sources[f"{package}.{one}"] = source
            _modules.importers[package] = _importer(package, frozenset(sources))
        if _modules not in sys.meta_path:
            sys.meta_path.insert(0, _modules)
        try:
            return importlib.import_module(f"{package}.{name}")
        except BaseException:
            for one in [*sys.modules]:
                if one.partition(".")[0] == package:
                    del sys.modules[one]
            raise


def _importer(package: str, local: frozenset[str]) -> Callable[..., Any]:
    """Return `__import__` for modules of a private package: local modules first."""
    tops = {name.partition(".")[0] for name in local}

    def import_local_first(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        top = name.partition(".")[0]
        if level or top not in tops:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = importlib.import_module(f"{package}.{name}")
        if not fromlist:
            return sys.modules[f"{package}.{top}"]
        for item in fromlist:
            if f"{name}.{item}" in local and not hasattr(module, item):
                importlib.import_module(f"{package}.{name}.{item}")
        return module

    return import_local_first
