"""The arms of a finished run, and their corpora, found through the artifacts its folder names.

The experiment's sources need not be there any more: only the store is read. The one exception is
an imported corpus, whose token files stay where they are: they are looked for where the run's
experiment says they are, then where they lay at the import; in both places their content decides.
"""

from dataclasses import dataclass
from pathlib import Path

from inject.corpus.corpus import Corpus
from inject.corpus.imported_layout import token_files
from inject.errors import SpikeinError
from inject.settings import plain
from inject.stream.exposures import EXPOSURES
from spikein.config.load import read_experiment
from spikein.runs.folder import RunArtifacts
from spikein.runs.record import EXPERIMENT, checked_record
from spikein.store.artifact import Artifact, require_current, verified


@dataclass(frozen=True, kw_only=True)
class RunArm:
    """What an arm's stream is composed of, as folders of the store."""

    label: str
    model: Path
    corpus: Path
    examples: Path
    plan: Path
    audit: Path


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
    artifacts = RunArtifacts(folder, store)
    models = artifacts.of_kind("model")
    arms = [_arm(model, artifacts) for model in models if "plan" in model.manifest.inputs]
    return sorted(arms, key=lambda arm: arm.label)


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


def _arm(artifact: Artifact, artifacts: RunArtifacts) -> RunArm:
    given = artifact.manifest.inputs
    parts = ("corpus", "examples", "plan", "audit")
    inputs = {name: artifacts.get(given[name], name) for name in parts}
    # By digest: the input `examples` of a retrained model is a twin membership, not the pool.
    known = {one.digest: one.manifest for one in inputs.values()}
    with artifacts.rebuild_hint():
        verified(artifact, EXPOSURES.files)
        for one in (*inputs.values(), artifact):
            named = one.manifest.inputs.items()
            require_current(one, {name: known[key] for name, key in named if key in known})
    paths = {name: one.path for name, one in inputs.items()}
    return RunArm(label=artifact.manifest.label, model=artifact.path, **paths)
