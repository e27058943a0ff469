from analysis.page.cost import detector_cost_listing, detector_costs
from analysis.page.inputs import DetectorWork, EvidenceStep

TEXT = EvidenceStep(key="text", seconds=4.0, tokens_in=1000)
LOWER = EvidenceStep(key="lower", seconds=5.0, tokens_in=1100)
WRITTEN = EvidenceStep(key="written", seconds=60.0, tokens_in=300, tokens_out=700)
TRAINED = EvidenceStep(key="trained", seconds=100.0)


def work(detector: str, *steps: EvidenceStep, scoring: float | None = 0.5) -> DetectorWork:
    return DetectorWork(detector=detector, cost="target 1×", steps=steps, scoring_seconds=scoring)


def test_a_shared_pass_is_shown_for_each_detector_and_counted_once_in_all():
    found = detector_costs([work("loss", TEXT), work("zlib", TEXT), work("lower", TEXT, LOWER)])
    by_name = {one.detector: one for one in found}
    assert [one.detector for one in found] == ["lower", "loss", "zlib", "all together"]
    assert by_name["loss"].seconds == 4.0
    assert by_name["loss"].own_seconds == 0.0
    assert (by_name["lower"].seconds, by_name["lower"].own_seconds) == (9.0, 5.0)
    assert by_name["lower"].tokens_in == 2100
    total = by_name["all together"]
    assert (total.tokens_in, total.seconds, total.scoring_seconds) == (2100, 9.0, 1.5)


def test_models_are_summed_and_a_step_that_two_models_share_counts_once():
    other = EvidenceStep(key="text-2", seconds=2.0, tokens_in=1000)
    found = detector_costs([work("ratio", TEXT, LOWER), work("ratio", other, LOWER)])
    (one,) = found
    assert (one.tokens_in, one.seconds, one.own_seconds) == (3100, 11.0, 11.0)
    assert one.scoring_seconds == 1.0


def test_a_time_that_was_not_recorded_is_no_zero():
    found = detector_costs([work("loss", TEXT, scoring=None), work("zlib", TEXT)])
    assert {one.detector: one.scoring_seconds for one in found} == {
        "loss": None,
        "zlib": 0.5,
        "all together": None,
    }
    assert detector_costs([]) == []
    assert detector_cost_listing([]) is None


def test_the_table_leaves_out_what_nobody_has():
    table = detector_cost_listing([work("loss", TEXT), work("blind")])
    assert table is not None
    assert "Tokens out" not in table.heads, "nothing was written"
    assert [row[0] for row in table.rows] == ["loss", "blind", "all together"]
    assert table.rows[0][table.heads.index("Tokens in")] == "1,000"
    assert table.rows[1][table.heads.index("Its own steps")] == "–"
