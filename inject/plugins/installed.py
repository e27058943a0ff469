"""Plug-ins by entry point: what installed packages offer under the groups of spikein.

Naming them reads the metadata of the installed packages and imports none. The digest of one is that
of its module, of what that imports of its own package, and of the package's version.
"""

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Literal

from inject.digest import digest, file_digest
from inject.errors import InputError, first_line
from inject.plugins.plugin import Expected, Plugin, own_code, read_sources, sources_digest

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

    def load(self, expected: Expected) -> Plugin:
        """Import the object.

        Raises:
            InputError: several packages offer the name, the object cannot be imported, or it is of
                another kind; names the package.
        """
        where = f"{expected.noun} {self.name} ({self.origin})"
        if len(self.offers) > 1:
            raise InputError(
                "several installed packages offer this name", where=where, hint="Uninstall one."
            )
        (entry,) = self.offers
        try:
            value = entry.load()
        except KeyboardInterrupt:
            raise
        # An import that exits must not end the command in silence.
        except BaseException as error:
            raise InputError(
                f"its {entry.value} cannot be imported: {first_line(error)}", where=where
            ) from error
        expected.check(value, where=f"{where}: {entry.value}")
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
        name: InstalledPlugin(name=name, offers=tuple(sorted(found.values(), key=_origin)))
        for name, found in sorted(offers.items())
    }


def load_installed(
    group: Group, expected: Expected, *, taken: Mapping[str, str]
) -> tuple[dict[str, Plugin], tuple[str, ...]]:
    """Load every entry point of a group; return them, and warnings of those that cannot be used.

    Args:
        group: which one.
        expected: what its objects must be.
        taken: names that are in use, each with where it comes from; they win.
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
