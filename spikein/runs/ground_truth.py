"""The ground truth of a finished run, read from its artifacts (`detect.ground_truth`).

What was scored, and with which evidence, is taken from the manifests of the scores: neither the
experiment's sources nor the code that made the artifacts are asked.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis.arm import arm_label, find_arm
from detect.detector_settings import needs_of, parse_detectors
from detect.evidence import Evidence
from detect.evidence.frequency import Frequency
from detect.evidence.membership import Shadows, Sides
from detect.evidence.needs import Need, Work
from detect.evidence.reference import Reference
from detect.evidence.views import View
from detect.ground_truth.ground_truth import CONTAMINATED, GroundTruth, Provenance, ScoredModel
from detect.ground_truth.parts import REPEATED
from detect.guarded_call import read_only
from detect.scores.table import read_scores
from detect.token_frequency import load_frequency
from detect.token_statistics import TokenStatistics
from inject.errors import InputError
from inject.examples.example import Example, read_examples
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts, seen_variants
from spikein.runs.folder import artifact_name, finish_time, linked_artifacts
from spikein.runs.record import EXPERIMENT, checked_record
from spikein.store.artifact import Artifact, open_artifact, verified
from spikein.store.environment import CODE
from spikein.store.manifest import SHORT, StoreError
from spikein.store.store import short_digest

_VIEW = "view-"


def run_ground_truth(
    folder: Path, *, store: Path | None = None, arm: str | None = None
) -> GroundTruth:
    """Read the ground truth of a run.

    Args:
        folder: the run's folder.
        store: the store's folder; None for the one that the run remembers.
        arm: the label of one arm, such as `lr 0.001`; None for all.

    Raises:
        InputError: an earlier version made the run; it has no such arm; or an artifact is missing
            or damaged: names it, and the command that builds it again.
    """
    record = checked_record(folder, EXPERIMENT)
    artifacts = _Artifacts(folder, store)
    results = artifacts.one_of("results")
    settings = results.manifest.identity["settings"]
    chosen = _chosen(settings["arms"], arm, folder)
    models = [_model(number, settings["arms"][number], results, artifacts) for number in chosen]
    return GroundTruth(
        name=record.name,
        models=tuple(models),
        analysis=settings["analysis"],
        experiment=(folder / EXPERIMENT).read_text(encoding="utf-8"),
        provenance=Provenance(
            version=record.version,
            run=record.id,
            finished=f"{finish_time(folder):%Y-%m-%dT%H:%M:%SZ}",
            code=str(results.manifest.environment.get(CODE, "")),
            artifacts=tuple(sorted(artifacts.read)),
        ),
    )


StatisticsKey = tuple[Path, tuple[str, ...]]
"""Token statistics by the folder of their artifact and the ids of the rows."""


@dataclass(kw_only=True)
class _CachedWork(Work):
    """Inputs while they become evidence; what several models share is read once."""

    cache: dict[StatisticsKey, tuple[TokenStatistics, ...]] = field(default_factory=dict)

    def statistics(self, name: str, rows: Sequence[Example] | None = None) -> Any:
        asked = self.rows if rows is None else rows
        key = (self.inputs[name], tuple(row.example_id for row in asked))
        if key not in self.cache:
            self.cache[key] = read_only(tuple(super().statistics(name, rows)))
        return self.cache[key]


class _Artifacts:
    """The artifacts of a run by digest; each is verified when it is first read."""

    def __init__(self, folder: Path, store: Path | None) -> None:
        self._folder = folder
        self._paths = {short_digest(path): path for path in linked_artifacts(folder, store)}
        self._rows: dict[str, tuple[Example, ...]] = {}
        self._frequencies: dict[Path, Any] = {}
        self.statistics: dict[StatisticsKey, tuple[TokenStatistics, ...]] = {}
        self.read: set[str] = set()

    def one_of(self, kind: str) -> Artifact:
        """Return the one artifact of a kind."""
        found = [short for short, path in self._paths.items() if path.parent.name == kind]
        if len(found) != 1:
            raise InputError(f"the run rests on {len(found)} {kind}", where=str(self._folder))
        return self.get(found[0], kind)

    def get(self, digest: str, what: str, files: Sequence[str] = ("*",)) -> Artifact:
        """Return an artifact by its digest, verified.

        Raises:
            InputError: it is missing or damaged.
        """
        again = f"Run it again: spikein run {self._folder / EXPERIMENT}"
        path = self._paths.get(digest[:SHORT])
        if path is None:
            raise InputError(
                f"the run does not rest on its {what} {digest[:SHORT]}",
                where=str(self._folder),
                hint=again,
            )
        try:
            artifact = verified(open_artifact(path), files)
        except StoreError as error:
            raise InputError(error.problem, where=error.where, hint=again) from None
        self.read.add(artifact_name(path))
        return artifact

    def rows(self, digest: str) -> tuple[Example, ...]:
        """Return the examples of an artifact."""
        if digest not in self._rows:
            self._rows[digest] = tuple(read_examples(self.get(digest, "examples").path))
        return self._rows[digest]

    def frequency(self, folder: Path) -> Any:
        """Return the token frequencies of an artifact."""
        if folder not in self._frequencies:
            self._frequencies[folder] = load_frequency(folder)
        return self._frequencies[folder]


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


def _model(
    number: int, arm: Mapping[str, Any], results: Artifact, artifacts: _Artifacts
) -> ScoredModel:
    digests = results.manifest.inputs
    start = f"{number:04d}-"
    scores = artifacts.get(digests[f"{start}scores"], "scores")
    rows = artifacts.rows(digests[f"{start}examples"])
    exposures = None
    if f"{start}model" in digests:
        trained = artifacts.get(digests[f"{start}model"], "model", EXPOSURES.files)
        exposures = read_exposures(trained.path)
    return ScoredModel(
        axes=dict(arm["axes"]),
        seed=arm["seed"],
        model=arm["model"],
        rows=rows,
        evidence=read_only(_evidence(scores, rows, artifacts)),
        withheld=np.zeros(len(rows), dtype=np.bool_),
        characters=np.array([len(row.text) for row in rows], dtype=np.int64),
        scores=read_scores(scores.path, columns=[*REPEATED, "score", "reason"], repeated=REPEATED),
        defaults=dict(scores.manifest.identity["settings"]["defaults"]),
        copies=None if exposures is None else seen_copy_counts(exposures),
        variants={} if exposures is None else seen_variants(exposures),
        fixed_levels=arm["fixed_levels"],
        exposures=exposures,
    )


def _evidence(scores: Artifact, rows: tuple[Example, ...], artifacts: _Artifacts) -> Evidence:
    """Return all evidence that the stored detectors were given."""
    given = scores.manifest.inputs
    inputs = {name: artifacts.get(digest, name).path for name, digest in given.items()}
    work = _CachedWork(inputs=inputs, rows=rows, cache=artifacts.statistics)
    for kind, asked in _needs(scores).items():
        if kind is Frequency:
            work.fields["frequency"] = artifacts.frequency(inputs["frequency"])
            continue
        # A detector's needs may have changed since, or a plug-in of the run may have had more.
        with suppress(KeyError):
            kind.read(asked, work)
    return work.evidence()


def _needs(scores: Artifact) -> dict[type[Need], list[Need]]:
    """Return what the stored scores were made from, by kind."""
    inputs = scores.manifest.inputs
    found: list[Need] = [View(name[len(_VIEW) :]) for name in inputs if name.startswith(_VIEW)]
    found.append(Sides())
    found += [Reference()] if "reference" in inputs else []
    found += [Frequency()] if "frequency" in inputs else []
    found += [Shadows()] if any(name.endswith("-shadow") for name in inputs) else []
    known = {type(need) for need in found}
    for text in scores.manifest.identity["settings"]["detectors"]:
        name, _, parameters = str(text).partition(":")
        # One of a plug-in, or of another version, is not known by its name.
        with suppress(InputError):
            parsed = parse_detectors(name if parameters == "-" else text)
            found += [need for need in needs_of(parsed) if type(need) not in known]
    by_kind: dict[type[Need], list[Need]] = {}
    for need in dict.fromkeys(found):
        by_kind.setdefault(type(need), []).append(need)
    return by_kind
