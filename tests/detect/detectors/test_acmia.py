import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.detector_settings import parse_detectors
from detect.evidence.views import InverseTemperature, View
from detect.registry import get_detector
from detect.scoring import score_rows
from detect.token_statistics import TemperedStatistics
from inject.errors import InputError
from tests.detect.evidence_samples import evidence_of, random_statistics


def with_temperatures(count: int, seed: int, betas):
    rows = random_statistics(count, seed=seed)
    more = {}
    for beta in betas:
        tempered = random_statistics(count, seed=seed + int(100 * beta))
        more[beta] = TemperedStatistics(
            log_probability=tempered.log_probability,
            mean_log_prob=tempered.mean_log_prob,
            std_log_prob=tempered.std_log_prob,
        )
    return replace(rows, tempered=more)


def score(rows, **parameters):
    detector = get_detector("acmia").detector
    setting = detector.parameters.model_validate(parameters)
    (column,) = detector.score(evidence_of(rows), [setting])
    return column.scores[0]


def naive(rows, form: str, beta: float) -> float:
    source = rows if beta == 1 else rows.tempered[beta]
    seen, terms = set(), []
    for position, token in enumerate(rows.ids.tolist()):
        if token in seen:
            continue
        seen.add(token)
        own = float(rows.log_probability[position])
        other = float(source.log_probability[position])
        if form == "contrast":
            terms.append(own - other if beta < 1 else other - own)
        else:
            centred = other - float(source.mean_log_prob[position])
            scale = math.sqrt(max(float(source.std_log_prob[position]) ** 2, 1e-6))
            terms.append(centred / scale if form == "norm" else centred)
    return math.fsum(terms) / len(terms)


@given(
    st.integers(0, 2**31),
    st.integers(1, 60),
    st.sampled_from(
        [("norm", 1.0), ("derivative", 1.0)]
        + [(form, beta) for form in ("norm", "derivative", "contrast") for beta in (0.5, 2.0)]
    ),
)
def test_forms_follow_the_definition_over_first_occurrences(seed, count, case):
    form, beta = case
    rows = with_temperatures(count, seed, (0.5, 2.0))
    result = score(rows, form=form, beta=beta)
    assert result.value == pytest.approx(naive(rows, form, beta), rel=1e-6, abs=1e-9)


def test_uncomputed_temperature_is_rejected_before_scoring():
    plain, tempered = parse_detectors("acmia,acmia:beta=2")
    assert plain.needs == (View("text"),)
    assert tempered.needs == (View("text"), InverseTemperature(2.0))
    result = score(random_statistics(5), beta=2.0)
    assert math.isnan(result.value)
    assert "detect.inverse_temperatures" in result.reason
    with pytest.raises(InputError, match=r"acmia needs inverse temperature 2\.0"):
        score_rows(["a"], evidence_of(random_statistics(4)), [tempered])
    with pytest.raises(InputError, match="give a beta"):
        parse_detectors("acmia:form=contrast")
