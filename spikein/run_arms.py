"""The arms of a finished run, found through the artifacts that its folder names.

The experiment's sources need not be there any more: nothing but the store is read.
"""

from dataclasses import dataclass
from pathlib import Path

from inject.errors import InputError
from spikein.manifest import SHORT
from spikein.runs import linked_artifacts
from spikein.store import Artifact, open_artifact, short_digest


@dataclass(frozen=True, kw_only=True)
class RunArm:
    """What an arm's stream is composed of, as folders of the store."""

    label: str
    corpus: Path
    examples: Path
    plan: Path
    audit: Path | None
    """None where the run was made before its streams were audited, or by hand."""


def run_arms(folder: Path, store: Path | None = None) -> list[RunArm]:
    """Return the arms of a run, by label.

    Args:
        folder: the run's folder.
        store: the store's folder; None for the one that the run remembers.

    Raises:
        InputError: an artifact is gone.
    """
    links = {short_digest(path): path for path in linked_artifacts(folder, store)}
    found = []
    for path in links.values():
        if path.parent.name != "model":
            continue
        artifact = open_artifact(path)
        if "plan" in artifact.manifest.inputs:
            found.append(_arm(artifact, links, folder))
    return sorted(found, key=lambda arm: arm.label)


def _arm(artifact: Artifact, links: dict[str, Path], folder: Path) -> RunArm:
    inputs: dict[str, Path] = {}
    given = artifact.manifest.inputs
    for name in ("corpus", "examples", "plan", *(["audit"] if "audit" in given else [])):
        short = given[name][:SHORT]
        if short not in links:
            raise InputError(f"the run does not rest on its {name} {short}", where=str(folder))
        inputs[name] = open_artifact(links[short]).path
    return RunArm(
        label=artifact.manifest.label,
        corpus=inputs["corpus"],
        examples=inputs["examples"],
        plan=inputs["plan"],
        audit=inputs.get("audit"),
    )
