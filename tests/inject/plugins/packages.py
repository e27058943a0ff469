"""Makes installed packages with entry points: a folder on Python's path, as pip creates it."""

import importlib
import sys
import textwrap
from pathlib import Path


def install(
    site: Path,
    name: str,
    *,
    modules: dict[str, str],
    entry_points: dict[str, dict[str, str]],
    version: str = "1.0",
) -> None:
    """Write a package and its metadata.

    Args:
        site: a folder on Python's path.
        name: of the distribution.
        modules: file below `site` -> source.
        entry_points: group -> name -> `module:object`.
        version: of the distribution.
    """
    for file, source in modules.items():
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
    metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, entries in entry_points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    importlib.invalidate_caches()


def forget(*names: str) -> None:
    """Remove packages that a test installed from Python's modules."""
    for name in [module for module in sys.modules if module.partition(".")[0] in names]:
        del sys.modules[name]
