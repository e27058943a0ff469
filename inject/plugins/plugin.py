"""A loaded plug-in, the modules it is made of, and those that installed packages offer.

A plug-in of a file consists of that file and its imports from the same folder. Imports are
read from the source. A module of the folder goes before an installed one of the same name, as in a
script; our own packages are never taken from there. Folders without `__init__.py` are not packages
here.

Installed packages offer plug-ins by entry point. Naming them reads the metadata of the packages and
imports none. The digest of one is that of its module, of what that imports of its own package, and
of the package's version.
"""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, NamedTuple

from inject.bounded_files import open_regular
from inject.digest import digest, file_digest
from inject.errors import InputError, first_line
from inject.source_digest import PACKAGES, module_of


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """An object that a file or an installed package offers."""

    name: str
    """NAME of `FILE.py:NAME`, or the entry point's name."""
    value: Any
    origin: str
    """Its origin: `FILE.py:NAME` as given, or a distribution and its version."""
    digest: str
    """SHA-256 (hex) of the source that was executed, and of which object in it; a part of the
    identity of everything that the plug-in decides. Folders do not enter."""
    code: tuple[str, ...] = ()
    """Modules of our own packages that the source imports, for `Step.code`."""


@dataclass(frozen=True, kw_only=True)
class PluginKind:
    """The kind of object that a plug-in must be."""

    noun: str
    """For messages: `detector`."""
    accepts: Callable[[Any], bool]
    """Whether an object is of the kind."""
    allowed: str
    """For messages: `a spikein.Detector, or a function from ExampleEvidence to a float`."""

    def check(self, value: Any, *, label: str) -> None:
        """Refuse an object of another kind.

        Raises:
            InputError: with its type, and the allowed one.
        """
        if not self.accepts(value):
            kind = (
                f"the class {value.__name__}"
                if isinstance(value, type)
                else f"an object of type {type(value).__name__}"
            )
            raise InputError(
                f"is {kind}, not {with_article(self.noun)}", where=label, allowed=self.allowed
            )


def with_article(noun: str) -> str:
    """Return a noun with its article: `a detector`, `an executor`."""
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def require_same_source(digest: str | None, named: str | None, *, label: str) -> None:
    """Check that a plug-in loaded again has the source of the step's identity, on any machine.

    Args:
        digest: of the plug-in; None if the object is not a plug-in.
        named: the same when the step was named, from its settings.
        label: the plug-in, as the user named it.

    Raises:
        InputError: a source that was edited since.
    """
    if digest != named:
        raise InputError(
            "the source was edited since this run was named",
            where=label,
            hint="Run the same command again: the edited source makes the artifacts that depend on "
            "it, and the rest is kept.",
        )


class ModuleSource(NamedTuple):
    """One module as it was read."""

    path: Path
    content: bytes
    is_package: bool


def read_sources(
    folder: Path, name: str, path: Path, *, only: Collection[str] | None = None
) -> dict[str, ModuleSource]:
    """Read a module, and all that it imports from `folder`, directly or not.

    Args:
        folder: of local modules.
        name: dotted name of the module, from `folder`.
        path: its file.
        only: top-level names that count as local; None: all that are found, but our own.

    Returns:
        The sources by dotted name; packages precede their modules.

    Raises:
        InputError: a file that cannot be read, or that is not Python; names the line.
    """
    sources: dict[str, ModuleSource] = {}
    # The packages around it are executed before it.
    waiting = [*_modules_of(folder, name.rpartition(".")[0]), (name, _read(path))]
    while waiting:
        current, source = waiting.pop()
        if current in sources:
            continue
        sources[current] = source
        for line, dotted, late in _find_imports(current, source):
            top = dotted.partition(".")[0]
            if top in PACKAGES if only is None else top not in only:
                continue
            local = _modules_of(folder, dotted)
            if local and late and only is None:
                raise InputError(
                    f"line {line}: imports {dotted} inside a function",
                    where=str(source.path),
                    hint="Import modules of a plug-in's own folder at the top of the file.",
                )
            waiting += local
    return dict(sorted(sources.items()))


def sources_digest(sources: Mapping[str, ModuleSource]) -> str:
    """Return the SHA-256 (hex) of the modules' names and bytes; folders do not enter."""
    return digest(
        {name: hashlib.sha256(source.content).hexdigest() for name, source in sources.items()}
    )


def own_code(sources: Mapping[str, ModuleSource]) -> tuple[str, ...]:
    """Return the modules of our own packages that the modules import."""
    dotted_names = {
        dotted
        for name, source in sources.items()
        for _, dotted, _ in _find_imports(name, source)
        if dotted.partition(".")[0] in PACKAGES
    }
    return tuple(sorted({module for name in dotted_names if (module := module_of(name))}))


def _read(path: Path) -> ModuleSource:
    with open_regular(path, purpose="plug-in") as file:
        return ModuleSource(path, file.read(), path.name == "__init__.py")


def _find_imports(name: str, source: ModuleSource) -> Iterator[tuple[int, str, bool]]:
    """Yield a module's possible imports: line, dotted name, and whether it is inside a function."""
    try:
        tree = ast.parse(source.content)
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        raise InputError(f"{place}{error.msg}", where=str(source.path)) from None
    except ValueError as error:
        raise InputError(f"is not Python: {error}", where=str(source.path)) from None
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    late = {
        node
        for function in ast.walk(tree)
        if isinstance(function, functions)
        for node in ast.walk(function)
    }
    package = name if source.is_package else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, node in late
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if package else []
            if node.level > len(parts) + 1:
                continue
            base = parts[: len(parts) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # The module itself comes with the name, whether or not the name is also a module.
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}".lstrip("."), node in late


def _modules_of(folder: Path, name: str) -> list[tuple[str, ModuleSource]]:
    """Return the modules in a dotted name, packages first: a and a.b of `a.b.function`."""
    modules: list[tuple[str, ModuleSource]] = []
    parts = name.split(".") if name else []
    for index, part in enumerate(parts, start=1):
        for path in (folder / part / "__init__.py", folder / f"{part}.py"):
            if path.is_file():
                modules.append((".".join(parts[:index]), _read(path)))
                break
        else:
            break
        folder /= part
    return modules


Group = Literal[
    "spikein.detectors",
    "spikein.datasets",
    "spikein.sources",
    "spikein.executors",
    "spikein.unlearning",
]


@dataclass(frozen=True, kw_only=True)
class InstalledPlugin:
    """A name that entry points offer; `load` imports its package."""

    name: str
    offers: tuple[EntryPoint, ...]
    """One, unless several packages offer the name."""

    @property
    def origin(self) -> str:
        """The distribution and its version."""
        return " and ".join(map(_origin, self.offers))

    def load(self, expected: PluginKind) -> Plugin:
        """Import the object.

        Raises:
            InputError: several packages offer the name, the object cannot be imported, or it is of
                another kind; names the package.
        """
        label = f"{expected.noun} {self.name} ({self.origin})"
        if len(self.offers) > 1:
            raise InputError(
                "several installed packages offer this name", where=label, hint="Uninstall one."
            )
        (entry,) = self.offers
        try:
            value = entry.load()
        except KeyboardInterrupt:
            raise
        # An import that exits must not end the command in silence.
        except BaseException as error:
            raise InputError(
                f"its {entry.value} cannot be imported: {first_line(error)}", where=label
            ) from error
        expected.check(value, label=f"{label}: {entry.value}")
        source, code = _source(entry.value.partition(":")[0].strip())
        return Plugin(
            name=self.name,
            value=value,
            origin=self.origin,
            digest=digest({"object": entry.value, "package": self.origin, "source": source}),
            code=code,
        )


def installed_plugins(group: Group) -> dict[str, InstalledPlugin]:
    """Return the entry points of a group by name, sorted; imports none of them."""
    offers: dict[str, dict[tuple[str, str], EntryPoint]] = {}
    for entry in entry_points(group=group):
        # A package that is found twice on Python's path is still one.
        offers.setdefault(entry.name, {}).setdefault((entry.value, _origin(entry)), entry)
    return {
        name: InstalledPlugin(
            name=name, offers=tuple(sorted(offers_by_origin.values(), key=_origin))
        )
        for name, offers_by_origin in sorted(offers.items())
    }


def load_installed(
    group: Group, expected: PluginKind, *, taken: Mapping[str, str]
) -> tuple[dict[str, Plugin], tuple[str, ...]]:
    """Load every entry point of a group; return them, and warnings of those that cannot be used.

    Args:
        group: which one.
        expected: the kind of its objects.
        taken: names in use, each with its origin; they take precedence.
    """
    plugins: dict[str, Plugin] = {}
    warnings = []
    for name, entry in installed_plugins(group).items():
        if name in taken:
            warnings.append(
                f"left out: {expected.noun} {name} ({entry.origin}): the name is taken, "
                f"{taken[name]}"
            )
            continue
        try:
            plugins[name] = entry.load(expected)
        except InputError as error:
            warnings.append(f"left out: {error}")
    return plugins, tuple(warnings)


def _origin(entry: EntryPoint) -> str:
    if entry.dist is None:
        return "an unknown package"
    return f"{entry.dist.name} {entry.dist.version}"


@lru_cache(maxsize=256)
def _source(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the digest of an imported module, and the modules of ours that it imports.

    Read once a process, as it ran.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin or not spec.has_location:
        raise InputError("has no source file, so its results could not be named", where=name)
    path = Path(spec.origin)
    top = name.partition(".")[0]
    around = getattr(sys.modules.get(top), "__file__", None)
    if path.suffix != ".py" or around is None:
        # A compiled module is one file; parts of a namespace share no folder.
        return file_digest(path), ()
    folder = Path(around).parent
    if Path(around).name == "__init__.py":
        folder = folder.parent
    sources = read_sources(folder, name, path, only=(top,))
    return sources_digest(sources), own_code(sources)
