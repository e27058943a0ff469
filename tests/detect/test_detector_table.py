import pytest

from detect.detector_table import detector_table
from detect.evidence.membership import Sides
from detect.evidence.needs import Need, cost_text, every_kind
from detect.evidence.views import Reference, View
from detect.registry import BUILT_IN


@pytest.fixture(scope="module")
def rows():
    return {row.name: row for row in detector_table()[0] if row.origin == BUILT_IN}


def test_costs_count_the_passes_of_each_model(rows):
    assert rows["loss"].cost == "target 1×"
    assert rows["lowercase"].cost == "target 2×"
    assert rows["reference"].cost == "target 1×, reference 1×"
    assert rows["blind"].cost == "no model"
    assert cost_text([View("text"), View("text")]) == "target 1×", "a need that is named twice"
    assert cost_text([Sides(), Reference()]) == "reference 1×"


def test_needs_that_run_a_model_declare_their_cost():
    for kind in every_kind():
        assert not kind.asks_model or kind.cost is not Need.cost, kind.__name__
