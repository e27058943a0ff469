"""Readings of `which-detector`, on made-up scores with known differences."""

import numpy as np
import pandas as pd
import pytest

from scripts.studies.which_detector import (
    GAINS,
    ArmScores,
    arm_lines,
    classes,
    gain_verdict,
    gap_rows,
    may_be_best,
)

SHIFTS = {"loss": 0.8, "min_k": 0.8, "wbc": 1.8, "reference": 1.7, "lira": 3.0, "blind": 0.0}
"""Of members' scores, in standard deviations."""


@pytest.fixture(scope="module")
def scored() -> ArmScores:
    draws = np.random.default_rng(4)
    sides = [(member, copies) for copies in (0, 1, 2, 4, 8, 16) for member in (True,)] * 4
    sides += [(False, 0)] * 60
    frame = pd.DataFrame(
        {
            "seed": seed,
            "dataset": dataset,
            "group": f"{dataset}-{row}",
            "member": member,
            "copies": copies,
            "length": draws.integers(20, 200) + 1000 * (dataset == "long"),
        }
        for seed in range(5)
        for dataset in ("short", "long")
        for row, (member, copies) in enumerate(sides)
    )
    common = draws.normal(size=len(frame))
    scores = {
        name: common
        + 0.3 * draws.normal(size=len(frame))
        + shift * (frame["copies"] > 0).to_numpy()
        for name, shift in SHIFTS.items()
    }
    return ArmScores(frame=frame, scores=scores, left_out={"surp": 0.1})


def test_classes_hold_the_copies_and_the_third_of_each_dataset(scored):
    frame = scored.frame
    by_name = classes(frame)
    for name, copies in (("1 to 2 copies", {1, 2}), ("4 to 8 copies", {4, 8})):
        members, compared = by_name[name]
        assert set(frame["copies"][members]) == copies
        assert compared.all()
    for dataset, rows in frame.groupby("dataset"):
        ends = [rows["length"][by_name[f"{name} third"][1][rows.index]] for name in
                ("shortest", "middle", "longest")]  # fmt: skip
        assert sum(map(len, ends)) == len(rows), dataset
        assert all(abs(len(own) - len(rows) / 3) < 12 for own in ends)
        assert ends[0].max() <= ends[1].min()
        assert ends[1].max() <= ends[2].min()
    assert not any(frame["copies"][members].eq(0).any() for members, _ in by_name.values())


def test_differences_and_best_detectors_are_those_that_were_built_in(scored):
    aucs = scored.aucs(*classes(scored.frame)["all"])
    gaps = gap_rows(aucs, "loss")
    assert gaps["min_k"]["low"] < 0 < gaps["min_k"]["high"]
    assert gaps["wbc"]["low"] > 0 > gaps["blind"]["high"]
    # `lira` knows more than any contestant.
    assert may_be_best(aucs)[0] == "wbc"
    assert not {"loss", "min_k", "lira", "blind"} & {*may_be_best(aucs)}


def test_a_published_gain_is_refuted_below_its_half(scored):
    readings = [*arm_lines("1M", scored)]
    assert readings[0] == ("Left out: share of rows scored", "1M", "surp", 0.1, "", "")
    lines = [line for line in readings if line[0] == "Published gain"]
    gains = {line[2].split(":")[0]: line for line in lines}
    # `surp`, `dc_pdd` and others are not scored.
    assert list(gains) == ["min_k − loss", "wbc − reference"]
    for name, published in (("min_k − loss", 0.05), ("wbc − reference", 0.085)):
        line = gains[name]
        assert line[2].endswith("does not hold here") == (line[5] < published / 2)
    gain = GAINS[0]
    assert gain_verdict(gain, gain.published * 0.51) == "not refuted"
    assert gain_verdict(gain, gain.published * 0.49) == "does not hold here"
