"""One ground truth and the wrong detectors that it evaluates."""

from pathlib import Path

import pytest

from analysis.validate.validation import CandidateResult, Validation, validate_detectors
from detect.ground_truth.ground_truth import GroundTruth
from tests.analysis.validate.judging import JUDGED, REFUSED
from tests.detect.ground_truths import make_truth
from tests.detect.wrong_detectors import SOURCE


@pytest.fixture(scope="package")
def truth() -> GroundTruth:
    return make_truth()


@pytest.fixture(scope="package")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("wrong") / "wrong.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="package")
def judge(truth, file):
    def run(*names: str, on: GroundTruth | None = None, **options) -> Validation:
        candidates = [f"{file}:{name}" if isinstance(name, str) else name for name in names]
        return validate_detectors(candidates, on or truth, source="here", **options)

    return run


@pytest.fixture(scope="package")
def validation(judge) -> Validation:
    """The validation of all wrong detectors together."""
    return judge(*JUDGED, *REFUSED)


@pytest.fixture(scope="package")
def judged(validation) -> dict[str, CandidateResult]:
    return {result.name.removeprefix("wrong."): result for result in validation.judged}
