"""Our own modules as top-level definitions: their text without what decides nothing, and what
each refers to.

Formatting, comments, docstrings and the wording of errors leave a definition as it is; everything
else changes its text. References are found in the source, and nothing is imported. Imports inside
functions and names in annotations count; attributes of objects are not followed, since nobody can
tell from the source whose they are. Cost: about 4 ms a file to parse, 10 µs a line to write.
"""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

_SKIPPED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OWN_SCOPE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Definitions = dict[str, list[ast.stmt]]


class Definition(NamedTuple):
    """One top-level name of a module, or what a nested function is made of."""

    text: str
    """The same for any formatting, comments, docstrings and wording of errors."""
    references: frozenset[str]
    """Dotted names that it uses: `inject.keyed.words`, or `inject.keyed` for a whole module."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceModule:
    """One parsed module."""

    name: str
    """Dotted."""
    tree: ast.Module

    @classmethod
    def parse(cls, name: str, source: bytes) -> "SourceModule":
        """Parse a module."""
        return cls(name=name, tree=ast.parse(source))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names it defines itself, sorted."""
        return tuple(sorted(self._parts.definitions))

    @cached_property
    def imported(self) -> Mapping[str, str]:
        """Each imported name with what it stands for, as a dotted name."""
        return self._parts.imported

    @cached_property
    def effects(self) -> Definition | None:
        """Statements that define nothing, such as registrations; they run with any import."""
        return self._definition(self._parts.effects) if self._parts.effects else None

    def definition(self, name: str) -> Definition:
        """Return a definition: `name`, or `outer.inner` for a function inside a function.

        Of the outer function only that counts which the inner one uses: the statements that make
        the names it reads, not the rest and not the parameters.

        Raises:
            KeyError: there is no such definition.
        """
        outer, *inner = name.split(".")
        statements = self._parts.definitions[outer]
        for part in inner:
            statements = _sliced(statements[-1], part)
        return self._definition(statements)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts in a constant that is a tuple of them.

        Raises:
            ValueError: the constant is anything else.
        """
        [statement] = self._parts.definitions[name]
        value = getattr(statement, "value", None)
        items = value.elts if isinstance(value, ast.Tuple) else []
        texts = tuple(
            item.value
            for item in items
            if isinstance(item, ast.Constant) and isinstance(item.value, str)
        )
        if not texts or len(texts) < len(items):
            raise ValueError(f"{self.name}.{name} is not a tuple of texts")
        return texts

    def _definition(self, statements: Iterable[ast.stmt]) -> Definition:
        read = _Read(statements)
        imported = {**self.imported, **read.imported}
        own = self._parts.definitions
        found = set(read.imported.values())
        for name in read.names:
            first, _, rest = name.partition(".")
            if first in imported:
                found.add(f"{imported[first]}.{rest}" if rest else imported[first])
            elif first in own:
                found.add(f"{self.name}.{first}")
        return Definition("".join(read.text), frozenset(found))

    @cached_property
    def _parts(self) -> "_Parts":
        parts = _Parts()
        _collect(self.tree.body, parts)
        return parts


@dataclass(kw_only=True)
class _Parts:
    definitions: _Definitions = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)


def _collect(body: Iterable[ast.stmt], parts: _Parts) -> None:
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            parts.imported |= _bindings(statement)
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            _collect(statement.body, parts)
        elif names := _bound(statement):
            for name in names:
                parts.definitions.setdefault(name, []).append(statement)
        elif not _is_text(statement):
            parts.effects.append(statement)


def _is_text(node: ast.AST) -> bool:
    """Return whether it is a docstring, or the sentence under a field."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement gives a value to, in its own scope."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {statement.name}
    found = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= _bindings(node).keys()
        elif not isinstance(node, _OWN_SCOPE):
            waiting.extend(ast.iter_child_nodes(node))
    return found


class _Read:
    """Reads statements once: their canonical text, the names they use, what they import."""

    def __init__(self, statements: Iterable[ast.stmt]) -> None:
        self.text: list[str] = []
        self.names: set[str] = set()
        """Names that are read, with the attributes behind them: `a`, `a.b.c`."""
        self.imported: dict[str, str] = {}
        """Names that imports bind, with what they stand for."""
        self._worded = True
        for statement in statements:
            self._node(statement)

    def _node(self, node: ast.AST) -> None:
        kind = type(node)
        if kind is ast.Name or kind is ast.Attribute:
            if name := _dotted(node):
                self.names.add(name)
                self.text.append(f"{name},")
                return
        elif kind is ast.Constant:
            value = getattr(node, "value", None)
            wording = isinstance(value, str) and not self._worded
            self.text.append("wording," if wording else f"{value!r},")
            return
        elif kind is ast.Import or kind is ast.ImportFrom:
            self.imported |= _bindings(node)
        elif kind is ast.Raise and self._worded:
            # What an error says decides nothing, since no artifact comes of it.
            self._worded = False
            self._fields(node)
            self._worded = True
            return
        elif annotation := _annotation(node):
            self.names |= _spelled_out(annotation)
        self._fields(node)

    def _fields(self, node: ast.AST) -> None:
        text = self.text
        text.append(f"{type(node).__name__}(")
        for name in node._fields:
            value = getattr(node, name, None)
            # Later versions of Python add fields, which are empty in code that does not use them.
            if value is None or value == [] or name in _SKIPPED:
                continue
            text.append(f"{name}=")
            if isinstance(value, ast.AST):
                self._node(value)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        if not _is_text(item):
                            self._node(item)
                    else:
                        text.append(f"{item!r},")
                text.append(";")
            else:
                text.append(f"{value!r},")
        text.append(")")


def _bindings(node: ast.AST) -> dict[str, str]:
    """Return the names that an import binds, with what they stand for."""
    found = {}
    if isinstance(node, ast.Import):
        for alias in node.names:
            # `import a.b` binds `a`; the attributes show what is used of it.
            target = alias.name if alias.asname else alias.name.partition(".")[0]
            found[alias.asname or target] = target
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            raise ValueError(f"line {node.lineno}: relative imports are not followed")
        for alias in node.names:
            found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _dotted(node: ast.AST) -> str:
    """Return `a.b.c` for such an expression, else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def _annotation(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.returns
    return node.annotation if isinstance(node, ast.arg | ast.AnnAssign) else None


def _spelled_out(annotation: ast.expr) -> set[str]:
    """Return the names in an annotation, or in a part of it, that is written as a text."""
    found: set[str] = set()
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inner = ast.parse(node.value)
            except SyntaxError:
                continue
            found |= _Read(inner.body).names
    return found


def _sliced(outer: ast.stmt, inner: str) -> list[ast.stmt]:
    """Return a function inside a function, with the statements that make what it reads."""
    around = _around(getattr(outer, "body", []), inner)
    if around is None:
        raise KeyError(inner)
    kept: set[ast.stmt] = {
        one for one in around if isinstance(one, _FUNCTIONS) and one.name == inner
    }
    while True:
        used = {name.partition(".")[0] for name in _Read(kept).names}
        more = {one for one in around if _bound(one) & used} - kept
        if not more:
            return [one for one in around if one in kept]
        kept |= more


def _around(body: list[ast.stmt], inner: str) -> list[ast.stmt] | None:
    """Return the statements around a function, those of the blocks around its block included."""
    if any(isinstance(one, _FUNCTIONS) and one.name == inner for one in body):
        return body
    for one in body:
        for block in ("body", "orelse"):
            within = None if isinstance(one, _FUNCTIONS) else getattr(one, block, None)
            if within and (found := _around(within, inner)) is not None:
                return [other for other in body if other is not one] + found
    return None
