"""Access levels follow from needs, and from what a detector declares besides."""

from detect.access import Access
from detect.detector_settings import parse_detectors
from detect.registry import get_detector


def test_each_detector_states_what_of_the_target_it_reads() -> None:
    def level(name: str) -> Access:
        (setting,) = parse_detectors(name)
        return setting.detector.access_with(setting.parameters)

    assert level("blind") is Access.NONE
    assert level("loss") is level("reference") is level("lira") is Access.TOKENS
    assert level("surp") is level("min_k_plus_plus") is Access.DISTRIBUTION


def test_levels_include_one_another_in_order() -> None:
    labels = [level.label for level in sorted(Access)]
    assert labels[0] == "none"
    assert labels[-1] == "weights"
    assert len(set(labels)) == len(labels)
    assert get_detector("loss").detector.access <= Access.TOKENS
