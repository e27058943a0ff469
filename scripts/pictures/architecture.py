"""Draws `docs/images/architecture.svg`: the five packages and their folders, from the code itself.

Run as `python -m scripts.pictures.architecture`. Folders are ordered from the lowest to the
highest by their imports. No module is imported, and a test compares, so the picture cannot drift.
"""

import ast
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

REPOSITORY = Path(__file__).resolve().parents[2]
PICTURE = REPOSITORY / "docs" / "images" / "architecture.svg"
PACKAGES = ("inject", "train", "detect", "analysis", "spikein")
"""Each may import those before it."""
PASSED_ON = {
    "inject": "corpus, examples, plan",
    "train": "models, exposures",
    "detect": "token statistics, scores",
    "analysis": "metrics, figures, the page",
}
"""The artifacts that the next package reads."""
_ABREAST = 6
"""Folders side by side in the picture."""
_SHORT = 14
"""Letters of a folder's name that fit in full size."""


def folders(package: str, repository: Path = REPOSITORY) -> list[str]:
    """Return the names of a package's folders, from the lowest to the highest."""
    entries = [
        path
        for path in sorted((repository / package).iterdir())
        if (path / "__init__.py").is_file() or (path.suffix == ".py" and path.stem != "__init__")
    ]
    names = {path.stem for path in entries}
    uses = {path.stem: _neighbours(path, package) & names - {path.stem} for path in entries}
    inside = [path.stem for path in entries if path.is_dir()]
    return sorted(inside, key=lambda name: (_height(name, uses), name))


def picture(repository: Path = REPOSITORY) -> str:
    """Return the five packages and their folders as an SVG, each package on those that it reads."""
    width, gap, left = 920, 26, 150
    colours = ("#66a182", "#edae49", "#d1495b", "#5c7ea8", "#7a6a9e")
    inside = {package: folders(package, repository) for package in PACKAGES}
    lanes = [14 + 36 * max(-(-len(names) // _ABREAST), 1) for names in inside.values()]
    height = sum(lanes) + (len(PACKAGES) - 1) * gap + 20
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="14">',
        "<title>Five packages: inject, train, detect, analysis, spikein. Each reads the artifacts "
        "of those before it.</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    top = 10
    for package, colour, lane in zip(PACKAGES, colours, lanes, strict=True):
        shapes += [
            f'<rect x="10" y="{top}" width="{width - 20}" height="{lane}" rx="8" '
            f'fill="{colour}" fill-opacity="0.16" stroke="{colour}"/>',
            _text(24, top + lane / 2 + 6, f"{package}/", size=18, weight=700),
        ]
        for at, name in enumerate(inside[package]):
            across = (width - left - 24) / _ABREAST
            x, y = left + (at % _ABREAST) * across, top + 9 + (at // _ABREAST) * 36
            shapes += [
                f'<rect x="{x:g}" y="{y:g}" width="{across - 8:g}" height="30" rx="5" '
                f'fill="#ffffff" stroke="{colour}"/>',
                _text(
                    x + (across - 8) / 2,
                    y + 20,
                    name,
                    size=14 if len(name) <= _SHORT else 12,
                    anchor="middle",
                ),
            ]
        if package in PASSED_ON:
            middle, bottom = left + 30, top + lane
            shapes += [
                f'<path d="M{middle} {bottom + 2} v{gap - 12} m-5 -2 l5 8 l5 -8" fill="none" '
                'stroke="#444444" stroke-width="1.5"/>',
                _text(middle + 14, bottom + 18, PASSED_ON[package], size=13),
            ]
        top += lane + gap
    return "\n".join([*shapes, "</svg>"]) + "\n"


def _text(
    x: float, y: float, words: str, *, size: int = 14, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="#222222">{escape(words)}</text>'
    )


def _neighbours(path: Path, package: str) -> set[str]:
    """Return the entries of the package that a module, or any module of a folder, imports."""
    names: set[str] = set()
    for module in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            names |= {
                name.split(".")[1] for name in _imported(node) if name.startswith(f"{package}.")
            }
    return names


def _imported(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _height(name: str, uses: dict[str, set[str]], above: frozenset[str] = frozenset()) -> int:
    """Return the number of floors below an entry; a circle (a test forbids it) ends the count."""
    below = uses[name] - above
    return 1 + max((_height(entry, uses, above | {name}) for entry in below), default=-1)


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"written: {PICTURE}")


if __name__ == "__main__":
    main()
