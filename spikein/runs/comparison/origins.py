"""The origins of two runs: settings, code, libraries, artifacts.

Settings and the names of artifacts are in the run folders. The origin of an artifact (code,
libraries, the digest of its content) is in the store; if a store is not found, the report notes
that and continues.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from inject.errors import InputError
from spikein.runs.folder import artifact_name, linked_artifacts
from spikein.runs.publication import SettingChange, setting_changes
from spikein.runs.record import EXPERIMENT
from spikein.store.environment import CODE, MACHINE
from spikein.store.manifest import SHORT, Manifest, read_manifest


class KindOverlap(NamedTuple):
    """The artifacts of one kind."""

    kind: str
    shared: int
    first_only: int
    second_only: int


class ArtifactChange(NamedTuple):
    """An artifact of both runs that has one label and two recipes."""

    name: str
    """`kind/label`."""
    differs: tuple[str, ...]
    """Parts of the recipe: `settings train.lr`, `input corpus`, `code`, `library torch`."""
    same_content: bool | None
    """Whether the files agree nevertheless; None if a store is gone."""


class Versions(NamedTuple):
    """Code, libraries and machines of one run's artifacts."""

    code: tuple[str, ...]
    """Versions of spikein."""
    libraries: Mapping[str, tuple[str, ...]]
    """Name to versions."""
    machines: tuple[str, ...]
    missing: int
    """Artifacts whose record is no longer in the store."""


@dataclass(frozen=True, kw_only=True)
class Origins:
    """Differences in the origins of two runs."""

    settings: Sequence[SettingChange]
    kinds: Sequence[KindOverlap]
    changes: Sequence[ArtifactChange]
    versions: tuple[Versions, Versions]
    notes: Sequence[str] = field(default_factory=tuple)


def compare_origins(first: Path, second: Path) -> Origins:
    """Return the differences in the origins of two runs.

    Raises:
        InputError: when a record cannot be read.
    """
    folders = [
        {artifact_name(path): path for path in linked_artifacts(run)} for run in (first, second)
    ]
    manifests = [
        {name: records for name, path in folder.items() if (records := _manifest(path)) is not None}
        for folder in folders
    ]
    versions = [
        _versions(records, len(names)) for records, names in zip(manifests, folders, strict=True)
    ]
    notes = [
        f"{run.name}: the records of {folder.missing} of {len(names)} artifacts are no longer in "
        "the store, so code, libraries and contents are compared without them"
        for run, folder, names in zip((first, second), versions, folders, strict=True)
        if folder.missing
    ]
    return Origins(
        # Two runs differ in their names by nature.
        settings=[
            folder
            for folder in setting_changes(first / EXPERIMENT, second / EXPERIMENT)
            if folder.key != "name"
        ],
        kinds=list(_kinds(*(set(folder) for folder in folders))),
        changes=list(_changes((folders[0], folders[1]), (manifests[0], manifests[1]))),
        versions=(versions[0], versions[1]),
        notes=notes,
    )


def _label(name: str) -> str:
    """Return `kind/label` of `kind/label-digest12`."""
    return name[: -SHORT - 1]


def _manifest(path: Path) -> Manifest | None:
    try:
        return read_manifest(path) if path.is_dir() else None
    except InputError:
        return None


def _versions(manifests: Mapping[str, Manifest], total: int) -> Versions:
    environments = [manifest.environment for manifest in manifests.values()]
    code, machines = (
        tuple(sorted({environment.get(part, "not recorded") for environment in environments}))
        for part in (CODE, MACHINE)
    )
    libraries: dict[str, set[str]] = {}
    for manifest in manifests.values():
        for name, version in manifest.libraries.items():
            libraries.setdefault(name, set()).add(version)
    versions = {name: tuple(sorted(libraries[name])) for name in sorted(libraries)}
    return Versions(code, versions, machines, total - len(manifests))


def _kinds(first: set[str], second: set[str]) -> Iterator[KindOverlap]:
    for kind in sorted({name.partition("/")[0] for name in first | second}):
        left, right = ({n for n in side if n.startswith(f"{kind}/")} for side in (first, second))
        yield KindOverlap(kind, len(left & right), len(left - right), len(right - left))


def _changes(
    folders: tuple[Mapping[str, Path], Mapping[str, Path]],
    manifests: tuple[Mapping[str, Manifest], Mapping[str, Manifest]],
) -> Iterator[ArtifactChange]:
    """Yield the artifacts of one label and two recipes, with the differences of the recipes."""
    alone: list[dict[str, list[str]]] = [{}, {}]
    for side in (0, 1):
        for name in folders[side]:
            if name not in folders[1 - side]:
                alone[side].setdefault(_label(name), []).append(name)
    for label in sorted(alone[0].keys() & alone[1].keys()):
        if len(alone[0][label]) != 1 or len(alone[1][label]) != 1:
            continue
        left = manifests[0].get(alone[0][label][0])
        right = manifests[1].get(alone[1][label][0])
        if left is None or right is None:
            yield ArtifactChange(label, (), None)
        else:
            yield ArtifactChange(label, tuple(_recipe(left, right)), left.content == right.content)


def _recipe(left: Manifest, right: Manifest) -> list[str]:
    """Return the parts of two recipes that differ."""
    parts = []
    for part, word in (("settings", "setting"), ("inputs", "input"), ("libraries", "library")):
        old, new = (_flatten(side.identity.get(part, {})) for side in (left, right))
        names = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        parts += [f"{word} {name}" for name in names]
    parts += [
        key for key in ("code", "version") if left.identity.get(key) != right.identity.get(key)
    ]
    return parts


def _flatten(value: object, prefix: str = "") -> dict[str, object]:
    """Return nested mappings as dotted keys; lists stay values."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    values: dict[str, object] = {}
    for key, below in value.items():
        values |= _flatten(below, f"{prefix}.{key}" if prefix else str(key))
    return values
