"""The streams of a finished run's arms: their parts, and the export of one.

The experiment's sources are no longer needed: only the artifacts that the run's folder names are
read. The one exception is an imported corpus, whose token files are not copied: they are searched
at the path in the run's experiment, then at the path of the import; in both places their content
must match.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis.arm import find_arm
from inject.corpus.corpus import Corpus, corpus_tokenizer
from inject.corpus.imported_layout import token_files
from inject.errors import InputError, SpikeinError
from inject.examples.example import read_examples
from inject.files import disk_full, free_bytes, human_bytes
from inject.formats.export import ExportFacts, ExportSettings, export_view
from inject.plan.plan import Plan, read_plan
from inject.settings import plain
from inject.stream.exposures import EXPOSURES
from inject.stream.view import clean_view
from spikein.config.load import read_experiment
from spikein.runs.folder import RunArtifacts
from spikein.runs.record import EXPERIMENT, checked_record
from spikein.store.artifact import Artifact, require_current, verified


@dataclass(frozen=True, kw_only=True)
class RunArm:
    """The parts of an arm's stream, as folders of the store."""

    label: str
    model: Path
    corpus: Path
    examples: Path
    plan: Path
    audit: Path


def run_arms(folder: Path, store: Path | None = None) -> list[RunArm]:
    """Return the arms of a run, by label; the parts of their streams are verified.

    Args:
        folder: the run's folder.
        store: the store's folder; None for the recorded one.

    Raises:
        InputError: for a run of an earlier version, or without an arm; for a missing or damaged
            artifact, with its file and the command that rebuilds it.
    """
    checked_record(folder, EXPERIMENT)
    artifacts = RunArtifacts(folder, store)
    models = artifacts.of_kind("model")
    arms = [_arm(model, artifacts) for model in models if "plan" in model.manifest.inputs]
    if not arms:
        raise InputError("the run has no trained arm", where=str(folder))
    return sorted(arms, key=lambda arm: arm.label)


def open_run_corpus(folder: Path, corpus: Path) -> Corpus:
    """Open the corpus of a run.

    Args:
        folder: the run's.
        corpus: the corpus's.

    Raises:
        InputError: as `Corpus.open`.
    """
    try:
        imported = read_experiment(folder / "experiment.yaml").experiment.corpus.imported
        outside = token_files(None if imported is None else plain(imported))
        return Corpus.open(corpus, outside=outside)
    except SpikeinError:
        return Corpus.open(corpus)


def _arm(artifact: Artifact, artifacts: RunArtifacts) -> RunArm:
    input_digests = artifact.manifest.inputs
    parts = ("corpus", "examples", "plan", "audit")
    inputs = {name: artifacts.get(input_digests[name], name) for name in parts}
    # By digest: the input `examples` of a retrained model is a twin membership, not the pool.
    manifests = {source.digest: source.manifest for source in inputs.values()}
    with artifacts.rebuild_hint():
        verified(artifact, EXPOSURES.files)
        for source in (*inputs.values(), artifact):
            named = source.manifest.inputs.items()
            require_current(
                source, {name: manifests[key] for name, key in named if key in manifests}
            )
    paths = {name: source.path for name, source in inputs.items()}
    return RunArm(label=artifact.manifest.label, model=artifact.path, **paths)


def export_run(
    folder: Path,
    out: Path,
    settings: ExportSettings,
    *,
    arm: str | None = None,
    clean: bool = False,
    store: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ExportFacts:
    """Export the stream that one arm of a run was trained on.

    Args:
        folder: the run's folder.
        out: a new folder.
        settings: of the export.
        arm: the arm's label; optional if all arms share the stream.
        clean: export the clean twin: the same length, without any copy.
        store: the store's folder; None for the recorded one.
        progress: called with the tokens done, and the total.

    Raises:
        InputError: for an unknown arm, or several without a choice; for a missing or damaged
            artifact; as `export_view`.
    """
    chosen = _choose(run_arms(folder, store), arm, folder, key=_clean_stream if clean else _stream)
    corpus = open_run_corpus(folder, chosen.corpus)
    tokenizer = corpus_tokenizer(chosen.corpus)
    plan = read_plan(chosen.plan)
    budget = plan.facts.budget
    if clean:
        view = clean_view(plan.clean_stream(corpus), tokens=budget, context=plan.facts.context)
    else:
        view = plan.view(corpus)
    try:
        return export_view(
            view,
            out,
            settings,
            tokenizer=tokenizer,
            copies=None if clean else plan.copies,
            protected=frozenset() if clean else _protected_ids(chosen.examples, plan),
            progress=None if progress is None else lambda done: progress(done, budget),
        )
    except Exception as error:
        if not disk_full(error):
            raise
        raise InputError(
            f"the disk is full: {human_bytes(free_bytes(out.parent))} left",
            where=str(out),
            hint="Free some space, or give another --out; nothing was left behind.",
        ) from error


def _stream(arm: RunArm) -> tuple[object, ...]:
    return (arm.plan,)


def _clean_stream(arm: RunArm) -> tuple[object, ...]:
    facts = read_plan(arm.plan).facts
    return arm.corpus, facts.budget, facts.context, facts.repeat


def _choose(
    arms: list[RunArm],
    label: str | None,
    folder: Path,
    *,
    key: Callable[[RunArm], tuple[object, ...]],
) -> RunArm:
    """Return the arm of this label; without a label any arm, if `key` is the same for all."""
    labels = [arm.label for arm in arms]
    if label is None:
        if len({key(arm) for arm in arms}) > 1:
            raise InputError(
                f"the run has {len(arms)} arms, which differ in their streams; choose one by --arm",
                where=str(folder),
                allowed=", ".join(map(repr, labels)),
            )
        return arms[0]
    return arms[labels.index(find_arm(label, labels, place=str(folder)))]


def _protected_ids(examples: Path, plan: Plan) -> frozenset[str]:
    """Return the ids of protected examples, if there are copies at all."""
    if not len(plan.copies):
        return frozenset()
    pool = read_examples(examples)
    return frozenset(example.example_id for example in pool if example.protected)
