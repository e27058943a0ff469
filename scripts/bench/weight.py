"""The size of the project: `python -m scripts.bench.weight [FOLDER …]` prints JSON.

Code lines as `cloc` counts them: neither blank, nor comment, nor docstring (nor an attribute's).
Counts the named folders, or else the five packages, tests and docs. Takes 3 s.
"""

import ast
import json
import sys
from pathlib import Path

PACKAGES = ("inject", "train", "detect", "analysis", "spikein")


def strings_alone(tree: ast.Module) -> set[int]:
    """Return the lines of expressions that are only a string: docstrings."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def weight(folder: Path) -> dict[str, int]:
    """Return code lines, modules with code, and classes of all Python files below a folder."""
    lines = modules = classes = 0
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        documented = strings_alone(tree)
        code = sum(
            bool(line.strip()) and not line.lstrip().startswith("#") and number not in documented
            for number, line in enumerate(text.splitlines(), 1)
        )
        lines += code
        modules += code > 0
        classes += sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree))
    return {"code_lines": lines, "modules": modules, "classes": classes}


def words(folder: Path) -> int:
    """Return the words of a folder's Markdown."""
    return sum(len(path.read_text(encoding="utf-8").split()) for path in folder.rglob("*.md"))


def main(folders: list[str]) -> None:
    """Print the weight of the folders that are named, or of the whole project."""
    counts = {name: weight(Path(name)) for name in folders or (*PACKAGES, "tests")}
    result: dict[str, object] = dict(counts)
    if not folders:
        result["packages"] = {
            key: sum(counts[name][key] for name in PACKAGES)
            for key in ("code_lines", "modules", "classes")
        }
        result["words_of_docs"] = words(Path("docs"))
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
