"""Submissions to a benchmark, and its leaderboard."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from analysis.findings import Findings
from analysis.leaderboard.standings import standings
from analysis.leaderboard.submission import read_submissions, write_submission
from analysis.settings import AnalysisSettings
from analysis.validate.validation import Validation
from detect.ground_truth.bundle import read_bundle, read_header
from detect.ground_truth.ground_truth import GroundTruth
from inject.errors import InputError
from spikein import __version__
from spikein.api.ground_truth import AnyDetector, load_bundle, validate
from spikein.store.filesystem import AnyPath

BENCHMARK = Path("bench.bundle")
"""The bundle of a benchmark unless another is given."""


def submit(
    detectors: Sequence[AnyDetector],
    bundle: AnyPath = BENCHMARK,
    *,
    folder: AnyPath = ".",
    arm: str | None = None,
    time_limit: float = 60.0,
) -> tuple[Validation, list[Path]]:
    """Validate detectors on a benchmark, and write a submission of each one's scores.

    Args:
        detectors: as for `validate`.
        bundle: the benchmark's folder, or its address on the hub.
        folder: in which the folders `submission-NAME` are written.
        arm: as for `validate`.
        time_limit: seconds that a detector may take for 1,000 rows.

    Raises:
        InputError: a missing or damaged benchmark, a detector that cannot score all models, or a
            folder with another submission.
    """
    if Path(bundle) == BENCHMARK and not BENCHMARK.exists():
        raise InputError(
            "no such folder",
            where=str(bundle),
            hint="Build the benchmark (make bench-bundle), or name its folder or address: "
            "spikein validate FILE.py:NAME hf://datasets/OWNER/NAME --bench.",
        )
    truth = load_bundle(bundle)
    validation = validate(detectors, truth, arm=arm, time_limit=time_limit)
    written = [
        write_submission(Path(folder), result, truth, version=__version__)
        for result in validation.judged
    ]
    return replace(validation, source=str(bundle)), written


def leaderboard(
    folder: AnyPath, bundle: AnyPath, *, labels: AnyPath | None = None
) -> tuple[Findings, GroundTruth]:
    """Rank the submissions below a folder; return the findings and the benchmark.

    Args:
        folder: of the submissions.
        bundle: the benchmark.
        labels: the organiser's bundle; None ranks by the public models.

    Raises:
        InputErrors: submissions for another version of the benchmark.
        InputError: a damaged bundle, or labels of another benchmark.
    """
    submissions = read_submissions(Path(folder), benchmark=read_header(Path(bundle))["content"])
    truth = read_bundle(Path(bundle))
    own = None if labels is None else read_bundle(Path(labels))
    confidence = AnalysisSettings.model_validate(dict(truth.analysis)).confidence
    return standings(submissions, truth, own, confidence=confidence), truth
