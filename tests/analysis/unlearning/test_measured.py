"""Looking up what was measured of unlearned models."""

from analysis.unlearning.measured import measured_models
from tests.analysis.unlearned import measured_rows


def test_the_detector_that_represents_all_is_the_first_of_a_fixed_list():
    def headline(*detectors):
        return measured_models(measured_rows(detectors=detectors)).headline_detector

    assert headline("zlib", "loss", "min_k") == "min_k"
    assert headline("zlib", "reference", "loss") == "loss"
    assert headline("my_own", "reference") == "my_own"
    assert measured_models([]).headline_detector is None
