"""Plug-ins by file: `FILE.py:NAME`.

Its digest covers the file and the modules of its folder that it imports. Loaded again unchanged, it
is the same object; edited meanwhile, it is executed again and has another digest. Other inputs
(data files) do not count, nor do versions of libraries. Modules of its folder precede installed
ones, as in a script, while the file is executed; afterwards they are removed from `sys.modules`, so
that two plug-ins may each have a `helper.py`.
"""

import importlib
import importlib.util
import re
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from inject.digest import digest, text_digest
from inject.errors import InputError, did_you_mean, first_line
from inject.plugins.plugin import (
    Group,
    ModuleSource,
    Plugin,
    PluginKind,
    installed_plugins,
    own_code,
    read_sources,
    sources_digest,
    with_article,
)
from inject.source_digest import PACKAGES

_lock = threading.RLock()
_REFERENCE = re.compile(r"(?P<file>.+?\.py):(?P<name>[^:=]*)(?P<rest>:.*)?", re.DOTALL)


class FileReference(NamedTuple):
    """`FILE.py:NAME`, and any text after it."""

    file: str
    name: str
    rest: str
    """Parameters, as they were written: `k=0.2:rule=floor`; empty if there are none."""

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


def file_reference(text: str) -> FileReference | None:
    """Return the parts of `FILE.py:NAME` or `FILE.py:NAME:REST`; None for any other text.

    The file's part ends with the first `.py` that a colon follows. A bare `FILE.py` is a reference
    whose name is missing.
    """
    text = text.strip()
    match = _REFERENCE.fullmatch(text)
    if match:
        return FileReference(match["file"], match["name"].strip(), (match["rest"] or "")[1:])
    return FileReference(text, "", "") if text.endswith(".py") else None


def find_plugin(
    name: str, group: Group, expected: PluginKind, *, hint: str | None = None
) -> Plugin | None:
    """Load the plug-in that `FILE.py:NAME` or an installed package's name means; None if unknown.

    Args:
        name: as the user wrote it.
        group: the entry points to look in.
        expected: the kind of object.
        hint: where the options of the plug-in are given.

    Raises:
        InputError: as `load_file`; or the plug-in cannot be loaded; or something follows `NAME`.
    """
    if reference := file_reference(name):
        if reference.rest:
            raise InputError(
                f"{reference.rest!r} follows the name of {with_article(expected.noun)}",
                where=name,
                allowed="FILE.py:NAME",
                hint=hint,
            )
        return load_file(reference, expected)
    installed = installed_plugins(group).get(name)
    return None if installed is None else installed.load(expected)


def load_file(reference: FileReference, expected: PluginKind) -> Plugin:
    """Load the object that `FILE.py:NAME` names; a relative path starts at the current folder.

    Raises:
        InputError: a file that is missing, is not Python, raises when it is executed (names the
            line) or has no such name, or an object of another kind.
    """
    path = Path(reference.file).expanduser()
    if not path.is_file():
        raise InputError(
            "there is no such file",
            where=reference.file,
            allowed=f"FILE.py:NAME for {with_article(expected.noun)}",
            hint=""
            if path.is_absolute()
            else f"Relative paths start at the current folder, {Path.cwd()}.",
        )
    path = path.resolve()
    # A dot would make a package of it.
    stem = path.stem.replace(".", "-")
    sources = read_sources(path.parent, stem, path)
    content = sources_digest(sources)
    try:
        module = _execute(
            f"spikein_plugin_{text_digest(f'{path} {content}')[:16]}_{stem}", path, sources
        )
    except KeyboardInterrupt:
        raise
    # A file that exits must not end the command in silence, so not only `Exception` is caught.
    except BaseException as error:
        raise _not_imported(error, reference.file, sources) from error
    value = _find_object(module, reference, expected)
    expected.check(value, label=str(reference))
    return Plugin(
        name=reference.name,
        value=value,
        origin=str(reference),
        digest=digest({"sources": content, "name": reference.name}),
        code=own_code(sources),
    )


def _execute(name: str, path: Path, sources: Mapping[str, ModuleSource]) -> ModuleType:
    """Return the module of a file, executed once a process; none stays if it raises."""
    with _lock:
        if name in sys.modules:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        try:
            with _modules_beside(path.parent, sources):
                spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


@contextmanager
def _modules_beside(folder: Path, sources: Mapping[str, ModuleSource]) -> Iterator[None]:
    """Let modules of a folder be imported inside, and no longer afterwards."""
    local = {source.partition(".")[0] for source in sources}
    hidden = {name: sys.modules[name] for name in sys.modules if name.partition(".")[0] in local}
    cached, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    for package in PACKAGES:
        # A folder `train` next to the file does not replace ours.
        importlib.import_module(package)
    for name in hidden:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] in local]:
            del sys.modules[name]
        sys.modules.update(hidden)
        sys.dont_write_bytecode = cached


def _find_object(module: ModuleType, reference: FileReference, expected: PluginKind) -> object:
    values = vars(module)
    offered = [
        name
        for name, value in values.items()
        if not name.startswith("_")
        and getattr(value, "__module__", module.__name__) == module.__name__
        and expected.accepts(value)
    ]
    hint = f"It offers: {', '.join(offered)}." if offered else f"It offers no {expected.noun}."
    if not reference.name:
        raise InputError(
            f"the name of the {expected.noun} is missing",
            where=reference.file,
            allowed="FILE.py:NAME",
            hint=hint,
        )
    if reference.name not in values:
        close = did_you_mean(reference.name, offered or (name for name in values if name[0] != "_"))
        raise InputError(
            f"the file has no {reference.name!r}.{close}", where=str(reference), hint=hint
        )
    return values[reference.name]


def _not_imported(
    error: BaseException, file: str, sources: Mapping[str, ModuleSource]
) -> InputError:
    paths = {str(source.path): source.path for source in sources.values()}
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in paths]
    place = ""
    if own:
        frame = own[-1]
        place = f" at {paths[frame.filename].name}:{frame.lineno}"
        place += f" (`{frame.line}`)" if frame.line else ""
    action = "tries to end the program" if isinstance(error, SystemExit) else "cannot be imported"
    return InputError(f"{action}{place}: {first_line(error)}", where=file)
