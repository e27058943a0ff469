"""One of our modules as source: its text without what decides nothing, and the modules it imports.

Formatting, comments, docstrings and the wording of errors leave the text as it is; everything else
changes it. Imports inside functions count; those for annotations alone (`TYPE_CHECKING`) do not,
since nothing of them runs. Nothing is imported. Cost: about 4 ms a file.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_SKIPPED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


class SourceModule(NamedTuple):
    """One parsed module."""

    text: str
    """The same for any formatting, comments, docstrings and wording of errors."""
    imports: tuple[str, ...]
    """Dotted names: `inject.keyed` for a module, `inject.keyed.words` for what is taken out of one;
    which of the two a name is, its source does not say."""
    lazy: Mapping[str, str]
    """Names that are imported for type checkers alone, to the dotted name of each: where the module
    has a `__getattr__`, others can import these from it."""
    data_files: tuple[str, ...]
    """What the constant `DATA_FILES` lists."""


def parse_module(name: str, source: bytes) -> SourceModule:
    """Parse a module.

    Raises:
        ValueError: it has a relative import, or `DATA_FILES` is not a tuple of texts.
    """
    tree = ast.parse(source)
    reader = _Reader()
    reader.write_all(tree.body)
    unread: list[ast.AST] = []
    imports = sorted(set(_imports(tree.body, name, unread)))
    lazy = {dotted.rpartition(".")[2]: dotted for dotted in _imports(unread, name, [])}
    return SourceModule("".join(reader.text), tuple(imports), lazy, _data_files(tree, name))


def _imports(body: Iterable[ast.AST], module: str, unread: list[ast.AST]) -> Iterator[str]:
    """Yield what is imported; statements for type checkers alone are added to `unread`."""
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
        if any(isinstance(one, ast.Name) and one.id == "DATA_FILES" for one in statement.targets):
            items = statement.value.elts if isinstance(statement.value, ast.Tuple) else []
            names = [getattr(item, "value", None) for item in items]
            if not names or not all(isinstance(one, str) for one in names):
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
            # What an error says decides nothing, since no artifact comes of it.
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
