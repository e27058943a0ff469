"""The modules a plug-in is made of: its file and what that imports from the folder beside it.

Imports are read from the source, those inside functions included, and each file is read once: these
bytes are hashed, and these bytes are executed (`inject.plugins.modules`). A module of the folder
goes before an installed one of the same name, as in a script; our own packages are never taken
from there. Folders without `__init__.py` are no packages here.
"""

import ast
import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from inject.bounded_files import open_regular
from inject.digest import digest
from inject.errors import InputError
from inject.source_digest import PACKAGES, module_of


class Source(NamedTuple):
    """One module as it was read."""

    path: Path
    content: bytes
    is_package: bool


def read_sources(
    folder: Path, name: str, path: Path, *, only: Collection[str] | None = None
) -> dict[str, Source]:
    """Read a module, and all that it imports from `folder`, directly or not.

    Args:
        folder: where local modules lie.
        name: dotted name of the module, from `folder`.
        path: its file.
        only: top-level names that count as local; None: all that are found, but our own.

    Returns:
        The sources by dotted name; packages stand before their modules.

    Raises:
        InputError: a file that cannot be read, or that is not Python; names the line.
    """
    sources: dict[str, Source] = {}
    # The packages around it are executed before it.
    waiting = [*_found(folder, name.rpartition(".")[0]), (name, _read(path))]
    while waiting:
        current, source = waiting.pop()
        if current in sources:
            continue
        sources[current] = source
        package = current if source.is_package else current.rpartition(".")[0]
        for wanted in _imported(source, package):
            top = wanted.partition(".")[0]
            if top in PACKAGES if only is None else top not in only:
                continue
            waiting += [one for one in _found(folder, wanted) if one[0] not in sources]
    return dict(sorted(sources.items()))


def sources_digest(sources: Mapping[str, Source]) -> str:
    """Return the SHA-256 (hex) of the modules' names and bytes; folders do not enter."""
    return digest(
        {name: hashlib.sha256(source.content).hexdigest() for name, source in sources.items()}
    )


def own_code(sources: Mapping[str, Source]) -> tuple[str, ...]:
    """Return the modules of our own packages that the modules import."""
    wanted = {
        name
        for module, source in sources.items()
        for name in _imported(source, module if source.is_package else module.rpartition(".")[0])
        if name.partition(".")[0] in PACKAGES
    }
    return tuple(sorted({module for name in wanted if (module := module_of(name))}))


def _read(path: Path) -> Source:
    with open_regular(path, what="plug-in") as file:
        return Source(path, file.read(), path.name == "__init__.py")


def _imported(source: Source, package: str) -> Iterator[str]:
    """Yield the dotted names that a module may import."""
    try:
        tree = ast.parse(source.content)
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        raise InputError(f"{place}{error.msg}", where=str(source.path)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not Python: {error}", where=str(source.path)) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if package else []
            if node.level > len(parts) + 1:
                continue
            base = parts[: len(parts) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # The module itself comes with the name, whether or not that is a module, too.
            yield from (f"{module}.{alias.name}".lstrip(".") for alias in node.names)


def _found(folder: Path, name: str) -> list[tuple[str, Source]]:
    """Return what of a dotted name is a module, packages first: a and a.b of `a.b.function`."""
    found: list[tuple[str, Source]] = []
    parts = name.split(".") if name else []
    for index, part in enumerate(parts, start=1):
        for path in (folder / part / "__init__.py", folder / f"{part}.py"):
            if path.is_file():
                found.append((".".join(parts[:index]), _read(path)))
                break
        else:
            break
        folder /= part
    return found
