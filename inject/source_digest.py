"""The digest of the code that decides a number, so that changed code never passes for the old.

The code of a step is the module of its function and all of our modules that this one imports,
directly or not, imports inside functions included. Each counts whole, without comments, docstrings
and the wording of errors. So code that a step's function need not import stays out by being in
another module. An object found by a name (a dataset, a detector) is not imported by its user: its
module is named along with the function's.

A module that reads data files of its own folder lists them in the constant `DATA_FILES`; they count
with it. A test traces the code that runs. Cost: each file is read and parsed once per process, 4 ms
per file.
"""

import ast
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from inject.errors import InputError

_SKIPPED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})

PACKAGES = ("inject", "train", "detect", "analysis", "spikein")
"""Packages whose code is followed; libraries count by their versions."""

Reader = Callable[[str], bytes | None]
"""From a dotted name to the source of that module; None if there is no such module."""

DataReader = Callable[[str, str], bytes]
"""From a module's dotted name and a file's name to the file's content, in the module's folder."""


class SourceModule(NamedTuple):
    """One parsed module."""

    text: str
    """The same for any formatting, comments, docstrings and wording of errors."""
    imports: tuple[str, ...]
    """Dotted names: `inject.keyed` for a module, `inject.keyed.words` for a name taken from one;
    the source does not distinguish the two."""
    lazy: Mapping[str, str]
    """Names that are only imported for type checkers, to the dotted name of each: if the module has
    a `__getattr__`, others can import these from it."""
    data_files: tuple[str, ...]
    """The names in the constant `DATA_FILES`."""


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
        waiting = [root.partition(":")[0] for root in roots]
        modules: set[str] = set()
        while waiting:
            module = waiting.pop()
            if module not in modules:
                modules.add(module)
                waiting.extend(self._imports(module))
        return frozenset(modules)

    def module_of(self, dotted: str) -> str | None:
        """Return the module of ours that a dotted name is or belongs to; None in a library.

        A name that its module brings along when it is first used (`spikein`) leads to its own.

        Raises:
            LookupError: no such module.
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
            imports = self._known_module(module).imports
            modules = {name for dotted in imports if (name := self.module_of(dotted))}
            # The packages around a module are executed before it.
            package = module.rpartition(".")[0]
            self._imported[module] = tuple(sorted({*modules, *([package] if package else [])}))
        return self._imported[module]

    def _digest(self, module: str) -> str:
        if module not in self._digests:
            source = self._known_module(module)
            state = hashlib.sha256(source.text.encode())
            for file in source.data_files:
                content = hashlib.sha256(self.read_data(module, file)).hexdigest()
                state.update(f"{file} {content}\n".encode())
            self._digests[module] = state.hexdigest()
        return self._digests[module]

    def _known_module(self, name: str) -> SourceModule:
        source = self._module(name)
        if source is None:
            raise LookupError(f"no module {name}")
        return source

    def _module(self, name: str) -> SourceModule | None:
        if name not in self._modules:
            text = self.read(name)
            if text is not None and name not in sys.modules:
                self._not_imported[name] = text
            self._modules[name] = None if text is None else parse_module(name, text)
        return self._modules[name]


def read_source(name: str) -> bytes | None:
    """Return the source of a module, or None if there is no such module.

    A module that is not ours has the function of a step, as in tests.
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
    """Return the content of a file in the folder of one of our modules.

    Raises:
        LookupError: the module lists a file that is not there.
    """
    path = Path(__file__).parents[1].joinpath(*module.split(".")[:-1], name)
    if not path.is_file():
        raise LookupError(f"{module} lists {name} in DATA_FILES, but there is no such file")
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
    """Check, before the code runs, that Python will import the hashed source.

    Raises:
        InputError: a module was edited since; names it.
    """
    if edited := _sources.edited(roots):
        raise InputError(
            "the source was edited since this run began, and was not imported before",
            where=", ".join(sorted(edited)),
            hint="Run again: finished artifacts are kept; the new source builds the others.",
        )


def parse_module(name: str, source: bytes) -> SourceModule:
    """Parse a module.

    Raises:
        ValueError: a relative import, or `DATA_FILES` is not a tuple of texts.
    """
    tree = ast.parse(source)
    reader = _Reader()
    reader.write_all(tree.body)
    unread: list[ast.AST] = []
    imports = sorted(set(_imports(tree.body, name, unread)))
    lazy = {dotted.rpartition(".")[2]: dotted for dotted in _imports(unread, name, [])}
    return SourceModule("".join(reader.text), tuple(imports), lazy, _data_files(tree, name))


def _imports(body: Iterable[ast.AST], module: str, unread: list[ast.AST]) -> Iterator[str]:
    """Yield the imported names; statements only for type checkers are added to `unread`."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{module}, line {node.lineno}: relative imports are not followed")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            unread.extend(node.body)
            waiting.extend(node.orelse)
        elif not isinstance(node, ast.expr):
            waiting.extend(ast.iter_child_nodes(node))


def _is_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _data_files(tree: ast.Module, module: str) -> tuple[str, ...]:
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        if any(
            isinstance(target, ast.Name) and target.id == "DATA_FILES"
            for target in statement.targets
        ):
            items = statement.value.elts if isinstance(statement.value, ast.Tuple) else []
            names = [getattr(item, "value", None) for item in items]
            if not names or not all(isinstance(name, str) for name in names):
                raise ValueError(f"{module}.DATA_FILES is not a tuple of texts")
            return tuple(map(str, names))
    return ()


def _is_text(node: ast.AST) -> bool:
    """Return whether it is a docstring, or the sentence under a field."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


class _Reader:
    """Writes the canonical text of statements."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self._worded = True

    def write_all(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if not _is_text(node):
                self._write(node)

    def _write(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant):
            wording = isinstance(node.value, str) and not self._worded
            self.text.append("wording," if wording else f"{node.value!r},")
        elif isinstance(node, ast.Name):
            self.text.append(f"{node.id},")
        elif isinstance(node, ast.Raise) and self._worded:
            # The text of an error has no effect on identities, since it makes no artifact.
            self._worded = False
            self._write_fields(node)
            self._worded = True
        else:
            self._write_fields(node)

    def _write_fields(self, node: ast.AST) -> None:
        text = self.text
        text.append(f"{type(node).__name__}(")
        for name in node._fields:
            value = getattr(node, name, None)
            # Later versions of Python add fields, which are empty in code that does not use them.
            if value is None or value == [] or name in _SKIPPED:
                continue
            text.append(f"{name}=")
            if isinstance(value, ast.AST):
                self._write(value)
            elif isinstance(value, list):
                for item in value:
                    if not isinstance(item, ast.AST):
                        text.append(f"{item!r},")
                    elif not _is_text(item):
                        self._write(item)
                text.append(";")
            else:
                text.append(f"{value!r},")
        text.append(")")
