import pytest

from detect.detector_table import detector_table
from detect.evidence.membership import Sides
from detect.evidence.needs import Need, cost_text, every_kind
from detect.evidence.views import Reference, View
from detect.registry import BUILT_IN, detector_names


@pytest.fixture(scope="module")
def rows():
    return {row.name: row for row in detector_table()[0] if row.origin == BUILT_IN}


def test_the_table_lists_every_detector_with_its_paper(rows):
    assert list(rows) == list(detector_names())
    assert all(row.summary and row.source and row.needs for row in rows.values())
    assert rows["surp"].setting == "entropy=2.0:k=40"


def test_costs_count_the_passes_of_each_model(rows):
    assert rows["loss"].cost == "target 1×"
    assert rows["lowercase"].cost == "target 2×"
    assert rows["reference"].cost == "target 1×, reference 1×"
    assert rows["blind"].cost == "no model"
    assert cost_text([View("text"), View("text")]) == "target 1×", "a need that is named twice"
    assert cost_text([Sides(), Reference()]) == "reference 1×"


def test_every_kind_of_need_that_asks_a_model_declares_its_cost():
    for kind in every_kind():
        assert not kind.asks_model or kind.cost is not Need.cost, kind.__name__


def test_a_grid_is_told_in_words(rows):
    assert rows["surp"].grid_text == (
        "200 settings: entropy 0.5, 1.0, … 10.0 (20 values); k 10, 20, … 100 (10 values)"
    )
    assert rows["reference"].grid_text == "2 settings: variant difference, ratio"
    assert rows["loss"].grid_text == ""
