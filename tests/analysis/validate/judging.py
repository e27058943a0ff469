"""Names of wrong detectors, and access to their findings."""

from pathlib import Path

from analysis.validate.checks import CheckFinding
from analysis.validate.validation import CandidateResult, Validation
from detect.ground_truth.bundle import read_bundle
from detect.ground_truth.ground_truth import GroundTruth
from detect.ground_truth.packing import write_bundle
from tests.detect.ground_truths import store_truth

JUDGED = (
    *("right", "turned", "length", "PICKY", "BATCH", "loss_again", "TRANSDUCTIVE", "POSITION"),
    *("counter", "LEAK", "constant", "coarse", "infinite", "either", "whole", "text_length"),
)
REFUSED = ("fails", "shape", "nothing", "neither")


def bundled(truth: GroundTruth, folder: Path) -> GroundTruth:
    write_bundle(folder / "made-up.bundle", store_truth(truth, folder), folder)
    return read_bundle(folder / "made-up.bundle")


def finding(result: CandidateResult, check: str) -> CheckFinding:
    return next(finding for finding in result.findings if finding.check == check)


def severity(result: CandidateResult, check: str) -> str:
    return finding(result, check).severity


def wrong_checks(result: CandidateResult) -> set[str]:
    return {finding.check for finding in result.findings if finding.severity == "wrong"}


def only_judged(validation: Validation) -> CandidateResult:
    assert not validation.refused, validation.refused
    (result,) = validation.judged
    return result
