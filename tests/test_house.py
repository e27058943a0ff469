"""Automatically checked code rules: order of folders, imports, lengths, names, safety."""

import ast
import re
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
ORDER = ["inject", "train", "detect", "analysis", "spikein"]
FILES = [path for package in ORDER for path in sorted((REPOSITORY / package).rglob("*.py"))]
MODULES = {
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path
    for path in FILES
}

ROOMS = {
    "inject": [
        "reading",
        "hub",
        "server",
        "corpus",
        "examples",
        "overlap",
        "variants",
        "stream",
        "plan",
    ],
    "train": ["settings", "models", "loop", "job", "worker"],
    "detect": ["engine", "evidence", "user_rows", "task_accuracy"],
    "analysis": ["metrics", "intervals", "trajectory", "page"],
    "spikein": ["store", "config", "pipeline", "executors", "scoring", "runs", "cli"],
}
"""The order in `docs/architecture.md`: later entries may import earlier ones."""

CATALOGUES = {
    "inject/examples/datasets", "detect/detectors", "spikein/cli/commands",
    "detect/evidence",
}  # fmt: skip
"""Folders with one item per file, however many there are; in evidence, each need of more than
a few lines."""

PRIVATE_WORDS = {
    "adapter", "adopting", "assembly", "building", "cast", "cells", "chunks", "collecting",
    "contained", "deal", "dealing", "described", "dose", "exchange", "facets",
    "faults", "feeding", "fit", "forecast", "gains", "ground", "kept", "ledger", "looked",
    "marks", "near", "nearly", "outlook", "outside", "parents", "problems", "published",
    "publishing", "quiet", "reach", "reduction", "rewriting", "sides", "silence",
    "soundness", "stopping", "swapping", "telling", "told", "verifying",
}  # fmt: skip
"""Names of modules that once needed an explanation, and similar ones."""

MOST_LINES = 400
MOST_MODULES = 15
MOST_PARAMETERS = 8


@cache
def parse_file(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(path: Path) -> set[str]:
    """Return our modules that a file imports anywhere, even inside functions."""
    names = set()
    for node in ast.walk(parse_file(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                names.add(inner if inner in MODULES else node.module)
    return {name for name in names if name.split(".")[0] in ORDER}


@cache
def imports_by_module() -> dict[str, set[str]]:
    return {name: imported_modules(path) for name, path in MODULES.items()}


def imports_between_entries() -> dict[str, dict[str, dict[str, str]]]:
    """Return, for each folder, the imports between its entries, with one import as an example."""
    imports: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for name, targets in imports_by_module().items():
        for target in targets:
            importing, imported = name.split("."), target.split(".")
            common = 0
            while (
                common < min(len(importing), len(imported))
                and importing[common] == imported[common]
            ):
                common += 1
            if 0 < common < len(importing) and common < len(imported):
                folder = ".".join(importing[:common])
                imports[folder][importing[common]][imported[common]] = f"{name} imports {target}"
    return imports


def circle(graph: dict[str, dict[str, str]]) -> list[str]:
    """Return the imports of one cycle, or [] if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [graph[importer][imported] for imported, importer in pairwise(error.args[1])]
    return []


def test_imports_run_downward_between_packages():
    for name, targets in imports_by_module().items():
        allowed = ORDER[: ORDER.index(name.split(".")[0]) + 1]
        assert {target.split(".")[0] for target in targets} <= {*allowed}, name


def test_imports_run_downward_between_the_entries_of_every_folder():
    for folder, graph in imports_between_entries().items():
        assert circle(graph) == [], folder


@pytest.mark.parametrize("package", ORDER)
def test_rooms_follow_the_documented_order(package):
    order, graph = ROOMS[package], imports_between_entries()[package]
    for lower, room in enumerate(order):
        assert f"{package}.{room}" in MODULES
        for upper in order[lower + 1 :]:
            assert upper not in graph.get(room, {}), graph[room][upper]


def test_cycle_check_detects_a_cycle():
    graph = {"a": {"b": "a imports b"}, "b": {"c": "b imports c"}, "c": {"b": "c imports b"}}
    assert sorted(circle(graph)) == ["b imports c", "c imports b"]


def test_modules_have_a_docstring_and_are_short():
    for path in FILES:
        assert ast.get_docstring(parse_file(path)), path
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, path


def test_folders_have_a_limited_number_of_modules():
    folders = {path.parent for path in FILES}
    for folder in folders:
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        name = folder.relative_to(REPOSITORY).as_posix()
        assert name in CATALOGUES or len(modules) <= MOST_MODULES, name


def test_modules_have_public_names():
    for name in MODULES:
        assert name.rsplit(".", 1)[-1] not in PRIVATE_WORDS, name


def test_functions_have_a_limited_number_of_parameters():
    for path in FILES:
        if path.parent.name == "commands":
            continue  # a command's parameters are its options
        for node in ast.walk(parse_file(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [
                    argument.arg
                    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    if argument.arg not in ("self", "cls")
                ]
                assert len(names) <= MOST_PARAMETERS, f"{path}: {node.name}{names}"


def test_unsafe_loading_is_never_used():
    forbidden = re.compile(
        r"pickle\.load|yaml\.load\(|torch\.load\(|trust_remote_code=True|eval\(|seed=None"
    )
    for path in FILES:
        unsafe = [
            match
            for match in forbidden.finditer(path.read_text(encoding="utf-8"))
            # `model.eval()` switches dropout off, `ast.literal_eval` runs no code.
            if not (match.group() == "eval(" and path.read_text()[match.start() - 1] in "._")
        ]
        assert not unsafe, path
