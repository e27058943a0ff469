"""Background that is already on the machine: docstrings of installed packages.

The sources are parsed with `ast` and never imported. Docstrings of modules, classes and
functions are cleaned as `inspect.getdoc` would, exact duplicates and short ones dropped, test
folders skipped; the order is that of packages, paths and lines. The extract is cached
(`inject.verified_files`) under a key of the content of every source file. Cost of the default:
about 10 s once, then under 1 s.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
import inspect
import os
import platform
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from inject.corpus.background.document import Document, Skipped
from inject.digest import digest, text_digest
from inject.errors import InputError, did_you_mean
from inject.files import cache_folder
from inject.reading.rows import content_digest
from inject.settings import PositiveFloat, PositiveInt, Settings
from inject.verified_files import cached_value

STANDARD_LIBRARY = "stdlib"
CHOSEN = (STANDARD_LIBRARY, "numpy", "scipy", "sklearn", "networkx")
_SKIPPED_FOLDERS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}


class DocstringsSource(Settings):
    """Documentation text of installed Python packages; needs no download."""

    kind: Literal["docstrings"]
    """`docstrings`."""
    packages: Annotated[tuple[str, ...], Field(min_length=1)] = CHOSEN
    """Import names (`sklearn`); `stdlib` is the standard library."""
    minimum: PositiveInt = 80
    """Fewest characters of a docstring, after cleaning."""
    weight: PositiveFloat = 1.0
    """Relative share of this source in the bytes of the mixture."""

    finite: ClassVar[bool] = True

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return f"docstrings {', '.join(self.packages)}"

    def identity(self) -> dict[str, Any]:
        """Return the packages with their versions and the digest of the extracted texts."""
        content = hashlib.sha256()
        for document in _extract(self.packages, self.minimum):
            content.update(bytes.fromhex(text_digest(document.text)))
        return {
            "kind": self.kind,
            "minimum": self.minimum,
            "packages": _versions(self.packages),
            "content": content.hexdigest(),
        }

    def documents(self, skipped: Skipped | None = None) -> Iterator[Document]:
        """Yield one document per docstring; none is empty, so `skipped` does not change.

        Raises:
            InputError: a package is not installed or has no Python source; the cache folder
                cannot be written.
        """
        yield from _extract(self.packages, self.minimum)


_File = tuple[Path, str]
"""The path of a source file, and its name from the package's parent on."""


def _extract(packages: tuple[str, ...], minimum: int) -> list[Document]:
    """Return the documents from the cache if it is undamaged, else from the sources."""
    files = [file for package in packages for file in _files(package)]
    key = digest(
        {
            "python": platform.python_version(),
            "versions": _versions(packages),
            "minimum": minimum,
            "files": [[name, content_digest(path)] for path, name in files],
        }
    )
    path = cache_folder() / "docstrings" / f"{key[:32]}.json"
    try:
        texts = cached_value(path, lambda: _distinct_texts(files, minimum))
    except OSError as error:
        raise InputError(
            f"the cache of docstrings cannot be written: {error.strerror}",
            where=str(path.parent),
            hint="Set SPIKEIN_CACHE to a folder that can be written.",
        ) from error
    return [Document(text, place) for text, place in texts]


def _distinct_texts(files: list[_File], minimum: int) -> list[list[str]]:
    """Return [text, place] of each text that is long enough, at its first occurrence."""
    places: dict[str, str] = {}
    for path, name in files:
        for document in _docstrings(path, name):
            if len(document.text) >= minimum:
                places.setdefault(document.text, document.place)
    return [[text, place] for text, place in places.items()]


def _docstrings(path: Path, name: str) -> Iterator[Document]:
    try:
        with warnings.catch_warnings():
            # Invalid escapes in other people's strings are not this reader's business.
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        # Packages ship files for other Python versions and templates; they contain no text for us.
        return
    yield from _walk(tree, name)


def _walk(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, place: str
) -> Iterator[Document]:
    docstring = ast.get_docstring(node, clean=False)
    # Half a surrogate pair can be written in a literal, but not in UTF-8.
    if docstring and not re.search("[\ud800-\udfff]", docstring):
        yield Document(inspect.cleandoc(docstring), place)
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            mark = "." if ":" in place else ":"
            yield from _walk(child, f"{place}{mark}{child.name}")


def _files(package: str) -> list[_File]:
    """Return the Python files of a package, sorted."""
    if package == STANDARD_LIBRARY:
        folder = Path(sysconfig.get_path("stdlib"))
        return _list_files(folder, folder)
    spec = _spec(package)
    roots = sorted(Path(location) for location in spec.submodule_search_locations or ())
    files = [file for root in roots for file in _list_files(root, root.parent)]
    origin = Path(spec.origin or "")
    if not roots and origin.suffix == ".py":
        files = [(origin, origin.name)]
    if not files:
        raise InputError(
            f"package {package!r} has no Python source to read", where="background packages"
        )
    return files


def _list_files(folder: Path, base: Path) -> list[_File]:
    paths = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [
            name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith(".")
        ]
        paths += [Path(parent, name) for name in names if name.endswith(".py")]
    return [(path, path.relative_to(base).as_posix()) for path in sorted(paths)]


def _spec(package: str) -> ModuleSpec:
    """Return the location of a package without executing it."""
    spec = None
    # find_spec would import the parent of a dotted name.
    if package.isidentifier():
        with suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(package)
    if spec is None:
        raise InputError(
            f"package {package!r} is not installed here",
            where="background packages",
            allowed=f"{STANDARD_LIBRARY!r}, or the top-level name of an installed package",
            hint=_suggest_package(package),
        )
    return spec


def _suggest_package(package: str) -> str | None:
    installed = _distributions()
    imported = [name for name, owners in installed.items() if package in owners]
    if imported:
        return f"{package!r} is imported as {' or '.join(repr(name) for name in sorted(imported))}."
    return did_you_mean(package, [STANDARD_LIBRARY, *installed]).strip() or None


def _versions(packages: tuple[str, ...]) -> dict[str, str | None]:
    """Return each package's version: Python's for the standard library, None if unknown."""
    versions: dict[str, str | None] = {}
    for package in packages:
        owners = _distributions().get(package)
        if package == STANDARD_LIBRARY or package in sys.stdlib_module_names:
            versions[package] = platform.python_version()
        else:
            versions[package] = importlib.metadata.version(owners[0]) if owners else None
    return versions


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    """Return import names with the distributions that own them; reading them all takes 0.1 s."""
    return {
        name: sorted(set(owners))
        for name, owners in importlib.metadata.packages_distributions().items()
    }
