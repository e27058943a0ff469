"""Wrong detectors, and what is said of one that was judged."""

from pathlib import Path

from analysis.validate.checks import Finding
from analysis.validate.validation import Judged, Validation
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


def finding(one: Judged, check: str) -> Finding:
    return next(finding for finding in one.findings if finding.check == check)


def severity(one: Judged, check: str) -> str:
    return finding(one, check).severity


def wrong_checks(one: Judged) -> set[str]:
    return {finding.check for finding in one.findings if finding.severity == "wrong"}


def only_judged(found: Validation) -> Judged:
    assert not found.refused, found.refused
    (one,) = found.judged
    return one
