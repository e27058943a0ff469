"""Decisions about the rows of a file: any calibration controls the rate."""

import numpy as np
import pyarrow as pa
import pytest

from analysis.decisions.flagged import Calibration, decide_rows

LEVEL = 0.1


def table(values, detector="loss") -> pa.Table:
    return pa.table(
        {
            "row": pa.array(range(len(values)), pa.int64()),
            "detector": [detector] * len(values),
            "setting": ["-"] * len(values),
            "score": pa.array(values, pa.float64()),
        }
    )


@pytest.mark.parametrize("by_held_out", [True, False])
@pytest.mark.parametrize("like", [0.0, 1.0])
def test_false_discovery_rate_is_controlled(by_held_out, like):
    """The truth is known: groups of three, half of them members."""
    draw = np.random.default_rng([int(by_held_out), int(like)])
    shares, hits = [], []
    for _ in range(200):

        def scores(groups):
            shared = np.repeat(draw.standard_normal(groups), 3)
            return np.sqrt(like) * shared + np.sqrt(1 - like) * draw.standard_normal(3 * groups)

        member = np.repeat(np.arange(160) < 80, 3)
        names = [f"g{number}" for number in np.repeat(np.arange(160), 3)]
        values = scores(160) + 3.0 * member
        calibration = None
        if by_held_out:
            apart = [f"h{number}" for number in np.repeat(np.arange(60), 3)]
            calibration = Calibration(table(scores(60)), tuple(apart))
        (decision,) = decide_rows(
            table(values), labels=member.tolist(), groups=names, calibration=calibration
        )
        assert decision.nonmembers == sum(not member[row] for row in decision.flagged)
        assert decision.decided == (480 if by_held_out else 360)
        shares.append(decision.nonmembers / max(1, len(decision.flagged)))
        hits.append(len(decision.flagged) - decision.nonmembers)
    assert np.mean(shares) <= LEVEL + 3 * np.std(shares) / np.sqrt(len(shares))
    assert np.mean(hits) > 30


def test_without_labels_and_held_out_rows_there_are_no_decisions():
    assert decide_rows(table([1.0, 2.0]), labels=None, groups=None, calibration=None) == []


def test_without_labels_wrong_decisions_are_unknown():
    calibration = Calibration(table(np.arange(30.0)), tuple(f"h{number}" for number in range(30)))
    (decision,) = decide_rows(
        table([50.0, 60.0, float("nan"), 70.0]), labels=None, groups=None, calibration=calibration
    )
    assert decision.flagged == (0, 1, 3)
    assert (decision.nonmembers, decision.share, decision.decided) == (None, None, 3)
    assert decision.smallest_p == 1 / 31


def test_a_detector_without_held_out_scores_is_omitted():
    calibration = Calibration(table(np.arange(30.0)), tuple("abc" * 10))
    both = pa.concat_tables([table([50.0]), table([50.0], "recall")])
    decisions = decide_rows(both, labels=None, groups=None, calibration=calibration)
    assert [decision.detector for decision in decisions] == ["loss"]
    assert (decisions[0].calibration_rows, decisions[0].calibration_groups) == (30, 3)
