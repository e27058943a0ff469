"""The arms of a finished run, and their corpora, found through the artifacts its folder names.

The experiment's sources need not be there any more: only the store is read. The one exception is
an imported corpus, whose token files stay where they are: they are looked for where the run's
experiment says they are, then where they lay at the import; in both places their content decides.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inject.corpus.corpus import Corpus
from inject.corpus.imported_layout import token_files
from inject.errors import InputError, SpikeinError
from inject.settings import plain
from inject.stream.exposures import EXPOSURES
from spikein.config.load import read_experiment
from spikein.runs.folder import linked_artifacts
from spikein.runs.record import EXPERIMENT, checked_record
from spikein.store.artifact import Artifact, open_artifact, require_current, verified
from spikein.store.manifest import SHORT, StoreError
from spikein.store.store import short_digest


@dataclass(frozen=True, kw_only=True)
class RunArm:
    """What an arm's stream is composed of, as folders of the store."""

    label: str
    model: Path
    corpus: Path
    examples: Path
    plan: Path
    audit: Path | None
    """None where the run was made before its streams were audited, or by hand."""


def run_arms(folder: Path, store: Path | None = None) -> list[RunArm]:
    """Return the arms of a run, by label; what their streams are composed of is verified.

    Args:
        folder: the run's folder.
        store: the store's folder; None for the one that the run remembers.

    Raises:
        InputError: an earlier version made the run; or an artifact is missing or damaged: names
            the file, and the command that builds it again.
    """
    checked_record(folder, EXPERIMENT)
    links = {short_digest(path): path for path in linked_artifacts(folder, store)}
    found = []
    for path in links.values():
        if path.parent.name != "model":
            continue
        artifact = _open(path, folder)
        if "plan" in artifact.manifest.inputs:
            found.append(_arm(artifact, links, folder))
    return sorted(found, key=lambda arm: arm.label)


def open_run_corpus(folder: Path, corpus: Path) -> Corpus:
    """Open a corpus that a run was made from.

    Args:
        folder: the run's.
        corpus: the corpus's.

    Raises:
        InputError: as `Corpus.open`.
    """
    try:
        given = read_experiment(folder / "experiment.yaml").experiment.corpus.imported
        outside = token_files(None if given is None else plain(given))
        return Corpus.open(corpus, outside=outside)
    except SpikeinError:
        return Corpus.open(corpus)


def _verify(run_folder: Path, path: Path) -> Artifact:
    """Return an artifact that a run folder links to, verified.

    Raises:
        InputError: it is missing or damaged; names the file, and the command that builds it again.
    """
    artifact = _open(path, run_folder)
    with _with_rebuild_hint(run_folder):
        return verified(artifact)


def _open(path: Path, run_folder: Path) -> Artifact:
    with _with_rebuild_hint(run_folder):
        return open_artifact(path)


@contextmanager
def _with_rebuild_hint(run_folder: Path) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise InputError(
            error.problem,
            where=error.where,
            hint=f"Run it again: spikein run {run_folder / 'experiment.yaml'}",
        ) from None


def _arm(artifact: Artifact, links: dict[str, Path], folder: Path) -> RunArm:
    inputs: dict[str, Artifact] = {}
    given = artifact.manifest.inputs
    for name in ("corpus", "examples", "plan", *(["audit"] if "audit" in given else [])):
        short = given[name][:SHORT]
        if short not in links:
            raise InputError(f"the run does not rest on its {name} {short}", where=str(folder))
        inputs[name] = _verify(folder, links[short])
    # By digest: the input `examples` of a retrained model is a twin membership, not the pool.
    known = {one.digest: one.manifest for one in inputs.values()}
    with _with_rebuild_hint(folder):
        verified(artifact, EXPOSURES.files)
        for one in (*inputs.values(), artifact):
            named = one.manifest.inputs.items()
            require_current(one, {name: known[key] for name, key in named if key in known})
    return RunArm(
        label=artifact.manifest.label,
        model=artifact.path,
        corpus=inputs["corpus"].path,
        examples=inputs["examples"].path,
        plan=inputs["plan"].path,
        audit=inputs["audit"].path if "audit" in inputs else None,
    )
