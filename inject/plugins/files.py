"""Plug-ins by file: `FILE.py:NAME`.

The file is read once; its digest is that of the bytes that run, with those of the local modules
that it imports. Loaded again unchanged, it is the same object; edited meanwhile, it is executed
anew and has another digest. What else it reads (data files) does not count, nor do versions of
libraries.
"""

import re
import traceback
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from inject.digest import digest, text_digest
from inject.errors import InputError, did_you_mean
from inject.plugins.modules import execute
from inject.plugins.plugin import Expected, Plugin, with_article
from inject.plugins.sources import Source, own_code, read_sources, sources_digest

_REFERENCE = re.compile(r"(?P<file>.+?\.py):(?P<name>[^:=]*)(?P<rest>:.*)?", re.DOTALL)


class FileReference(NamedTuple):
    """`FILE.py:NAME`, and what stands behind it."""

    file: str
    name: str
    rest: str
    """Parameters, as they were written: `k=0.2:rule=floor`; empty where there are none."""

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


def file_reference(text: str) -> FileReference | None:
    """Return the parts of `FILE.py:NAME` or `FILE.py:NAME:REST`; None for any other text.

    The file's part ends with the first `.py` that a colon follows. A bare `FILE.py` is a reference
    whose name is missing.
    """
    text = text.strip()
    found = _REFERENCE.fullmatch(text)
    if found:
        return FileReference(found["file"], found["name"].strip(), (found["rest"] or "")[1:])
    return FileReference(text, "", "") if text.endswith(".py") else None


def load_file(reference: FileReference, expected: Expected) -> Plugin:
    """Load the object that `FILE.py:NAME` names; a relative path starts at the current folder.

    Raises:
        InputError: the file is missing or no Python, raises when it is executed (names the line),
            has no such name, or the object is of another kind.
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
    module_name = path.stem.replace(".", "-")
    sources = read_sources(path.parent, module_name, path)
    content = sources_digest(sources)
    package = f"spikein_plugin_{text_digest(f'{path} {content}')[:16]}"
    try:
        module = execute(package, module_name, sources, path.parent)
    except KeyboardInterrupt:
        raise
    # A file that exits must not end the command in silence, so not only `Exception` is caught.
    except BaseException as error:
        raise _not_imported(error, reference.file, package, sources) from error
    value = _named(module, reference, expected)
    expected.check(value, where=str(reference))
    return Plugin(
        name=reference.name,
        value=value,
        origin=str(reference),
        digest=digest({"sources": content, "name": reference.name}),
        code=own_code(sources),
    )


def _named(module: ModuleType, reference: FileReference, expected: Expected) -> object:
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
    error: BaseException, file: str, package: str, sources: dict[str, Source]
) -> InputError:
    said = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
    what = what.replace(f"{package}.", "")
    paths = {str(source.path): source.path for source in sources.values()}
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in paths]
    place = ""
    if own:
        frame = own[-1]
        place = f" at {paths[frame.filename].name}:{frame.lineno}"
        place += f" (`{frame.line}`)" if frame.line else ""
    action = "tries to end the program" if isinstance(error, SystemExit) else "cannot be imported"
    hint = None
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.removeprefix(f"{package}.").partition(".")[0]
        folder = next(iter(paths.values())).parent / missing
        if folder.is_dir():
            hint = f"{folder} is a folder: it counts as a package when it holds an __init__.py."
    return InputError(f"{action}{place}: {what}", where=file, hint=hint)
