"""Audit verdicts on constructed losses and generated texts."""

from collections.abc import Mapping

import numpy as np
import pytest

from analysis.intervals.estimate import Estimate
from analysis.unlearning_audit.audit import headline
from analysis.unlearning_audit.checks import (
    MEANINGS,
    QUESTIONS,
    Judgement,
    Weights,
    judge,
)
from analysis.unlearning_audit.rule import AuditShares
from analysis.unlearning_audit.shares import Clusters, ControlOverlap, Written
from tests.analysis.unlearning_audit.made import chunks

CHUNKS = 40
CLUSTERS = Clusters(tuple(map(str, range(CHUNKS))))
MADE = Weights(False, 0.9, "")


def losses_of(seed: int, **means: float) -> dict[str, np.ndarray]:
    """Return losses of each model with a shared difficulty of the texts."""
    draw = np.random.default_rng(seed)
    shared = draw.normal(0, 0.3, CHUNKS)
    return {name: mean + shared + draw.normal(0, 0.05, CHUNKS) for name, mean in means.items()}


def judged(
    audited: Mapping[str, float],
    control: Mapping[str, float],
    retained: Mapping[str, float] | None = None,
    *,
    written: int = 0,
) -> tuple[AuditShares, Judgement]:
    """Return the judgement on models with these mean losses that write `written` texts."""
    level = ControlOverlap(3.0, CHUNKS, "the control")
    remembered = [at < written for at in range(CHUNKS)]
    share = Estimate(written / CHUNKS, 0.0, 1.0)
    shares = AuditShares(
        shares={"remembered_unlearned": share, "remembered_original": Estimate(0.9, 0.8, 1.0)},
        control="",
        written={"unlearned": Written(np.array(remembered), np.ones(CHUNKS), 0, level, CLUSTERS)},
        longest={},
    )
    parts = {
        part: chunks(CHUNKS, losses=losses_of(seed, **means))
        for seed, (part, means) in enumerate(
            {"audited": audited, "holdout": control, "retained": retained or {}}.items(), 1
        )
    }
    return shares, judge(parts, MADE, shares, guessing=6.0)


def test_weights_of_common_origin_are_not_credited_to_the_original():
    """Separate training from the same initial weights gives as high a cosine."""
    _, judgement = judged({"original": 1.0, "unlearned": 3.0}, {"original": 3.0, "unlearned": 3.0})
    assert judgement.checks["weights"].answer == "yes"
    assert QUESTIONS["weights"].endswith("or from the same initial weights")
    assert "nor from the same initial weights" in MEANINGS["another model"]


def test_texts_written_by_chance_are_not_reported_as_unwritten():
    means = {"original": 1.0, "unlearned": 3.0, "retrained": 3.0}
    shares, judgement = judged(means, {"original": 3.0, "unlearned": 3.0}, written=1)
    assert judgement.verdict == "forgotten as far as can be seen"
    text = headline(shares, judgement)
    assert "still writes 2.5 %" in text
    assert "not written" not in text
    assert "written no more than chance explains" in text


FORGOT = {"original": 0.1, "unlearned": 3.0, "retrained": 3.0}
LIKE_BEFORE = dict.fromkeys(FORGOT, 3.0)
KEPT = dict.fromkeys(FORGOT, 0.4)
OVERFIT = {"original": 5.5, "unlearned": 5.5}


def test_honest_model_passes_the_audit():
    for retained in (None, KEPT):
        _, judgement = judged(FORGOT, LIKE_BEFORE, retained)
        assert judgement.verdict == "forgotten as far as can be seen"
        assert {check.answer for check in judgement.checks.values()} == {"yes"}


@pytest.mark.parametrize(
    ("audited", "control", "retained", "verdict"),
    [
        # The original overfits, and the ruined model is equally bad on unseen texts.
        ({}, {**OVERFIT, "retrained": 3.0}, None, "not a working language model"),
        ({"unlearned": 6.5}, {"original": 6.5, "unlearned": 6.5}, None, "not a working"),
        ({}, {"original": 5.95, "unlearned": 5.95}, None, "cannot be judged"),
        ({}, LIKE_BEFORE, {**KEPT, "unlearned": 3.64}, "retained texts lost"),
        # There is no control at all.
        ({}, {}, None, "cannot be judged"),
    ],
)
def test_ruined_model_fails_the_audit(audited, control, retained, verdict):
    _, judgement = judged({**FORGOT, **audited}, control, retained)
    assert judgement.verdict.startswith(verdict)


def test_model_trained_on_the_control_is_not_over_forgotten():
    two = {"original": 0.1, "unlearned": 3.0}
    _, judgement = judged(two, {"original": 3.0, "unlearned": 0.1})
    assert judgement.verdict == "cannot be judged"
    assert "the control is contaminated" in judgement.meaning
    # A smaller gain may have other causes, so it is only a warning.
    _, judgement = judged({**two, "unlearned": 3.5}, {"original": 3.0, "unlearned": 2.7})
    assert judgement.verdict == "over-forgotten"
    assert "may be contaminated" in judgement.checks["working"].measure.caution
