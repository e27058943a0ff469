"""The argument of a plain function: by annotation, by name, by trial."""

import numpy as np
import pytest

import spikein
from analysis.validate.candidate import load_candidate
from analysis.validate.stability import compare
from detect.detector import declared_argument
from detect.registry import get_detector
from detect.token_statistics import TokenStatistics
from inject.errors import InputError
from tests.detect.evidence_samples import evidence_of, random_statistics

EVIDENCE = evidence_of(*(random_statistics(9, seed=seed) for seed in range(4)))


def by_class(row: TokenStatistics) -> float:
    return float(len(row))


def by_text(row: "spikein.ExampleEvidence") -> float:
    return float(len(row.text))


def by_name(stats):
    return float(len(stats))


def by_other_name(evidence):
    return float(len(evidence.text))


def unclear(row):
    return float(len(row.ids))


def annotated_otherwise(statistics: list) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (by_class, "statistics"),
        (by_text, "example"),
        (by_name, "statistics"),
        (by_other_name, "example"),
        (unclear, None),
        (annotated_otherwise, None),
        (len, None),
        (lambda statistics: 1.0, "statistics"),
    ],
)
def test_annotation_takes_precedence_over_the_name(function, argument):
    assert declared_argument(function) == argument


def loaded(candidate, *, taken=()):
    return load_candidate(candidate, EVIDENCE, taken=taken)


def test_a_function_of_token_statistics_is_a_valid_detector(tmp_path):
    """`spikein run` and `detect` accept the same functions as validation."""
    path = tmp_path / "mine.py"
    path.write_text("def score(statistics):\n    return float(statistics.log_probability.sum())\n")
    detector = get_detector(f"{path}:score").detector
    (column,) = detector.score(EVIDENCE, [detector.parameters()])
    for score, row in zip(column.scores, EVIDENCE.statistics["text"], strict=True):
        assert score.value == pytest.approx(float(row.log_probability.sum()))


def test_a_candidate_reports_its_input_and_its_source():
    assert loaded(by_class).takes == "a function of token statistics (as it says)"
    assert loaded(unclear).takes == "a function of token statistics (found by trial)"
    assert loaded("loss").takes == "a Detector"
    assert [setting.text for setting in loaded("min_k").settings][:2] == ["k=0.2", "k=0.05"]


def test_invalid_candidates_are_rejected():
    with pytest.raises(InputError, match=r"takes neither.*statistics: AttributeError"):
        loaded(lambda row: row.nothing)
    with pytest.raises(InputError, match="it returns a list"):
        loaded(lambda row: [1.0])
    with pytest.raises(InputError, match="is a int"):
        loaded(3)
    with pytest.raises(InputError, match="several detectors"):
        loaded("loss,zlib")


def test_score_tolerance_is_relative():
    first = np.array([1.0, 1e6, np.nan, np.inf])
    assert compare(first, first.copy()) == (0, 0.0)
    assert compare(first, np.array([1.0, 1e6 + 0.5, np.nan, np.inf]))[0] == 0
    assert compare(first, np.array([1.0 + 1e-5, 1e6, np.nan, np.inf]))[0] == 1
    assert compare(first, np.array([np.nan, 1e6, np.nan, np.inf])) == (1, np.inf)
