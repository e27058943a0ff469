"""Pack ground truth into a folder for others, and evaluate new detectors on it.

`bundle` packs a run; `load_bundle` opens such a folder; `validate` takes a run or a bundle, and
needs neither a model nor a network. A bundle on the hub is given by its address. The manifests of
a run's scores list the scored rows and the evidence: neither the experiment's sources nor the code
that built the artifacts are needed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from analysis.arm import arm_label, find_arm
from analysis.validate.candidate import TIME_LIMIT
from analysis.validate.validation import Progress, Validation, validate_detectors
from detect.detector import Detector
from detect.evidence import ExampleEvidence
from detect.ground_truth.benchmark import withhold_labels
from detect.ground_truth.bundle import is_bundle, read_bundle
from detect.ground_truth.ground_truth import (
    CONTAMINATED,
    Description,
    GroundTruth,
    ModelTables,
    Provenance,
    read_ground_truth,
)
from detect.ground_truth.hub_bundle import fetch_bundle, is_address, write_card
from detect.ground_truth.packing import BundleFacts, part_sizes, write_bundle
from detect.token_statistics import TokenStatistics
from inject.errors import InputError
from inject.plugins import file_reference
from inject.stream.exposures import EXPOSURES
from spikein.runs.folder import RunArtifacts, artifact_name, find_run, finish_time
from spikein.runs.record import EXPERIMENT, checked_record
from spikein.store.artifact import Artifact
from spikein.store.environment import CODE
from spikein.store.filesystem import AnyPath, runs_folder

AnyDetector = (
    str
    | Detector
    | Callable[[TokenStatistics], float | str]
    | Callable[[ExampleEvidence], float | str]
)
"""A user's detector: `FILE.py:NAME`, a `Detector`, or a function."""


def bundle(
    run: AnyPath,
    out: AnyPath,
    *,
    arm: str | None = None,
    parts: Collection[str] = (),
    hold_out: int | None = None,
    labels_out: AnyPath | None = None,
    runs: AnyPath | None = None,
    store: AnyPath | None = None,
) -> BundleFacts:
    """Pack the ground truth of a run into a folder, without the texts of protected datasets.

    A bundle contains what evaluating a new detector requires: sides, copies, the stored scores, and
    the token tables of the plain text. `parts` adds more.

    Args:
        run: the run's folder, or its name.
        out: a new folder.
        arm: the label of one arm; None packs all.
        parts: further evidence, such as `lowercase` or `shadows`; `all` for everything.
        hold_out: a seed whose models stay without labels: a benchmark, with a card. The seed must
            be random and secret, since the members can be drawn again from it.
        labels_out: a new folder for the bundle of these models with their labels.
        runs: the folder of runs that a name is looked up in; `$SPIKEIN_RUNS`, else `runs`.
        store: the run's store, if it was moved.

    Returns:
        The digest that names the content, and counts.

    Raises:
        InputError: for an unknown run, arm or part, a missing or damaged artifact, or a folder that
            exists already or cannot be written.

    Example:
        ```python
        import spikein

        facts = spikein.bundle("quickstart", "quickstart.bundle")
        print(facts.content, facts.rows)
        ```
    """
    if (hold_out is None) != (labels_out is None):
        raise InputError(
            "a seed is held out together with a folder for its labels",
            where="--hold-out, --labels-out",
            allowed="both or neither",
        )
    described, root = _open_run(run, arm, runs, store)
    if hold_out is None or labels_out is None:
        return write_bundle(Path(out), described, root, parts=parts)
    public, organiser, unlabelled = withhold_labels(described, hold_out)
    write_bundle(Path(labels_out), organiser, root, parts=parts)
    facts = write_bundle(Path(out), public, root, parts=parts, unlabelled=unlabelled)
    write_card(Path(out))
    return facts


def bundle_sizes(
    run: AnyPath,
    *,
    arm: str | None = None,
    runs: AnyPath | None = None,
    store: AnyPath | None = None,
) -> dict[str, int]:
    """Return the approximate bytes of a run's bundle (under ``) and of each additional part.

    Args:
        run: as for `bundle`; `arm`, `runs` and `store` alike.
        arm: the label of one arm.
        runs: the folder of runs.
        store: the store.

    Raises:
        InputError: as `bundle`.
    """
    return part_sizes(*_open_run(run, arm, runs, store))


def load_bundle(path: AnyPath) -> GroundTruth:
    """Open a bundle; every byte is checked against its checksum first.

    Args:
        path: the folder, or an address on the hub: `hf://datasets/OWNER/NAME[@REVISION]`.

    Returns:
        The models with their evidence on every row, the exposures and all stored scores.

    Raises:
        InputError: naming the file, for a folder that is not a bundle, is damaged, or has another
            version.

    Example:
        ```python
        import spikein

        truth = spikein.load_bundle("quickstart.bundle")
        model = truth.models[0]
        print(model.axes, len(model.rows), model.evidence.statistics["text"][0].log_probability)
        ```
    """
    return read_bundle(fetch_bundle(path)[0] if _is_hub_address(path) else Path(path))


def validate(
    detectors: AnyDetector | Sequence[AnyDetector],
    truth: AnyPath | GroundTruth,
    *,
    arm: str | None = None,
    time_limit: float = TIME_LIMIT,
    runs: AnyPath | None = None,
    store: AnyPath | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Evaluate detectors on ground truth: rank them among all stored ones, and check each.

    Args:
        detectors: one or more: `FILE.py:NAME`, a `Detector`, or a function of one
            `TokenStatistics` or `ExampleEvidence` that returns a number.
        truth: a run's folder or name, a bundle's folder or its address on the hub
            (`hf://datasets/OWNER/NAME[@REVISION]`), or what `load_bundle` returned.
        arm: the arm in which they are ranked; None for the one in which stored detectors do best.
        time_limit: seconds that a detector may take for 1,000 rows.
        runs: the folder of runs that a name is looked up in; `$SPIKEIN_RUNS`, else `runs`.
        store: the run's store, if it was moved.
        progress: called with a description of each stage.

    Returns:
        The ranking, the differences, the findings of each detector, and those that failed.

    Raises:
        InputError: for an unknown run, bundle or arm. A detector that fails is in `refused`.

    Example:
        ```python
        import spikein


        def mean(statistics: spikein.TokenStatistics) -> float:
            return float(statistics.log_probability.mean())


        found = spikein.validate(mean, "quickstart.bundle")
        for row in found.ranking.lines.rows:
            print(row["rank"], row["detector"], row["value"])
        ```
    """
    references = [detectors] if isinstance(detectors, str) or callable(detectors) else detectors
    listed = [references] if isinstance(references, Detector) else list(references)
    source = "the given bundle"
    if not isinstance(truth, GroundTruth):
        source = str(truth)
        if file_reference(source) is not None:
            raise InputError(
                "is a detector, in the place of the run or the bundle",
                where=source,
                hint="The run comes last: spikein validate FILE.py:NAME quickstart.",
            )
        path = Path(truth)
        if _is_hub_address(truth):
            path, source = fetch_bundle(truth)
        elif not is_bundle(path):
            truth = read_ground_truth(*_open_run(truth, None, runs, store))
        if not isinstance(truth, GroundTruth):
            truth = read_bundle(path)
    return validate_detectors(
        listed, truth, source=source, arm=arm, time_limit=time_limit, progress=progress
    )


def _is_hub_address(place: AnyPath) -> TypeGuard[str]:
    return isinstance(place, str) and is_address(place)


def _open_run(
    run: AnyPath, arm: str | None, runs: AnyPath | None, store: AnyPath | None
) -> tuple[Description, Path]:
    folder = find_run(runs_folder(runs), str(run))
    return stored_truth(folder, store=None if store is None else Path(store), arm=arm)


def stored_truth(
    folder: Path, *, store: Path | None = None, arm: str | None = None
) -> tuple[Description, Path]:
    """Describe the ground truth of a run, and name the store that contains it; all is verified.

    Args:
        folder: the run's folder.
        store: the store's folder; None for the one that the run remembers.
        arm: the label of one arm, such as `lr 0.001`; None for all.

    Raises:
        InputError: for a run of an earlier version, an unknown arm, or a missing or damaged
            artifact; names it, and the command that builds it again.
    """
    record = checked_record(folder, EXPERIMENT)
    artifacts = RunArtifacts(folder, store)
    of_run = artifacts.of_kind("results")
    if len(of_run) != 1:
        raise InputError(f"the run has {len(of_run)} artifacts of results", where=str(folder))
    results = artifacts.get(of_run[0].digest, "results")
    settings = results.manifest.identity["settings"]
    models = [
        _describe_model(number, settings["arms"][number], results, artifacts)
        for number in _choose_models(settings["arms"], arm, folder)
    ]
    described = Description(
        name=record.name,
        models=tuple(models),
        analysis=settings["analysis"],
        experiment=(folder / EXPERIMENT).read_text(encoding="utf-8"),
        provenance=Provenance(
            version=record.version,
            run=record.id,
            finished=f"{finish_time(folder):%Y-%m-%dT%H:%M:%SZ}",
            code=str(results.manifest.environment.get(CODE, "")),
            artifacts=tuple(sorted(artifacts.verified)),
        ),
    )
    return described, results.path.parents[1]


def _choose_models(arms: Sequence[Mapping[str, Any]], label: str | None, folder: Path) -> list[int]:
    """Return the numbers of an arm's models, base and twins included; all without a label."""
    if label is None:
        return list(range(len(arms)))
    labels = {
        arm_label(arm_node["axes"]) or CONTAMINATED: dict(arm_node["axes"])
        for arm_node in arms
        if arm_node["model"] == CONTAMINATED
    }
    axes = labels[find_arm(label, labels, place=str(folder))]
    return [
        number
        for number, arm_node in enumerate(arms)
        if all(axes.get(key) == value for key, value in arm_node["axes"])
    ]


def _describe_model(
    number: int, arm: Mapping[str, Any], results: Artifact, artifacts: RunArtifacts
) -> ModelTables:
    digests = results.manifest.inputs
    start = f"{number:04d}-"
    scores = artifacts.get(digests[f"{start}scores"], "scores")
    trained = digests.get(f"{start}model")

    def name(digest: str, role: str, files: Sequence[str] = ("*",)) -> str:
        return artifact_name(artifacts.get(digest, role, files).path)

    return ModelTables(
        axes=dict(arm["axes"]),
        seed=arm["seed"],
        model=arm["model"],
        fixed_levels=arm["fixed_levels"],
        defaults=scores.manifest.identity["settings"]["defaults"],
        detectors=scores.manifest.identity["settings"]["detectors"],
        scores=artifact_name(scores.path),
        examples=name(digests[f"{start}examples"], "examples"),
        trained=trained and name(trained, "model", EXPOSURES.files),
        inputs={role: name(digest, role) for role, digest in scores.manifest.inputs.items()},
    )
