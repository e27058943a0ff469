"""Over seeds of the pool, a classifier without a model must stay at chance (issue: 17 of 20)."""

import pytest


@pytest.mark.slow
def test_at_least_17_of_20_blind_intervals_contain_one_half():
    from analysis.auc_table import auc_table
    from detect.detector_settings import parse_detectors
    from detect.evidence import Evidence
    from detect.scoring import score_rows
    from inject.examples.contaminant import Contaminant
    from inject.examples.load import load_examples
    from tests.inject.examples.drawing import drawn_membership

    contaminant = Contaminant(dataset="fictional", members=150, nonmembers=280)
    inside = 0
    for seed in range(20):
        rows = drawn_membership(
            load_examples(contaminant, seed=seed).examples, 150, 280, seed=seed
        ).examples
        members = [row.side == "member" for row in rows]
        groups = [row.group for row in rows]
        evidence = Evidence(
            texts=[row.text for row in rows], statistics={}, members=members, groups=groups
        )
        scores = score_rows(
            [row.example_id for row in rows], evidence, parse_detectors("blind")
        ).table
        (found,) = auc_table(scores, members, groups)
        inside += found.auc.low <= 0.5 <= found.auc.high
    assert inside >= 17
