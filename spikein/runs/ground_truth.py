"""The ground truth of a finished run, described from its artifacts (`detect.ground_truth`).

What was scored, and with which evidence, is taken from the manifests of the scores: neither the
experiment's sources nor the code that made the artifacts are asked.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.arm import arm_label, find_arm
from detect.ground_truth.ground_truth import (
    CONTAMINATED,
    Description,
    ModelTables,
    Provenance,
)
from inject.errors import InputError
from inject.stream.exposures import EXPOSURES
from spikein.runs.folder import RunArtifacts, artifact_name, finish_time
from spikein.runs.record import EXPERIMENT, checked_record
from spikein.store.artifact import Artifact
from spikein.store.environment import CODE


def stored_truth(
    folder: Path, *, store: Path | None = None, arm: str | None = None
) -> tuple[Description, Path]:
    """Describe the ground truth of a run, and name the store that holds it; all is verified.

    Args:
        folder: the run's folder.
        store: the store's folder; None for the one that the run remembers.
        arm: the label of one arm, such as `lr 0.001`; None for all.

    Raises:
        InputError: an earlier version made the run; it has no such arm; or an artifact is missing
            or damaged: names it, and the command that builds it again.
    """
    record = checked_record(folder, EXPERIMENT)
    artifacts = RunArtifacts(folder, store)
    of_run = artifacts.of_kind("results")
    if len(of_run) != 1:
        raise InputError(f"the run rests on {len(of_run)} results", where=str(folder))
    results = artifacts.get(of_run[0].digest, "results")
    settings = results.manifest.identity["settings"]
    models = [
        _described(number, settings["arms"][number], results, artifacts)
        for number in _chosen(settings["arms"], arm, folder)
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


def _chosen(arms: Sequence[Mapping[str, Any]], label: str | None, folder: Path) -> list[int]:
    """Return the numbers of an arm's models, base and twins included; all without a label."""
    if label is None:
        return list(range(len(arms)))
    labels = {
        arm_label(one["axes"]) or CONTAMINATED: dict(one["axes"])
        for one in arms
        if one["model"] == CONTAMINATED
    }
    axes = labels[find_arm(label, labels, where=str(folder))]
    return [
        number
        for number, one in enumerate(arms)
        if all(axes.get(key) == value for key, value in one["axes"])
    ]


def _described(
    number: int, arm: Mapping[str, Any], results: Artifact, artifacts: RunArtifacts
) -> ModelTables:
    digests = results.manifest.inputs
    start = f"{number:04d}-"
    scores = artifacts.get(digests[f"{start}scores"], "scores")
    trained = digests.get(f"{start}model")

    def name(digest: str, what: str, files: Sequence[str] = ("*",)) -> str:
        return artifact_name(artifacts.get(digest, what, files).path)

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
        inputs={what: name(digest, what) for what, digest in scores.manifest.inputs.items()},
    )
