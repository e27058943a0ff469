import pytest

from detect.detector_settings import parse_detectors, repeated_detectors, with_grids
from detect.registry import ALL, detector_names
from detect.settings import names_all
from inject.errors import InputError


def texts(specification):
    return [(setting.name, setting.text) for setting in parse_detectors(specification)]


def test_parameters_are_parsed_and_written_canonically():
    assert texts("min_k:k=0.20,surp:k=40:entropy=2") == [
        ("min_k", "k=0.2"),
        ("surp", "entropy=2.0:k=40"),
    ]
    assert texts(["loss", "reference:variant=ratio", "surp:k=100:selection=count"]) == [
        ("loss", "-"),
        ("reference", "variant=ratio"),
        ("surp", "entropy=2.0:k=100:selection=count"),
    ]


def test_a_canonical_text_parses_to_itself():
    for setting in with_grids(parse_detectors(ALL)):
        part = setting.name if setting.text == "-" else f"{setting.name}:{setting.text}"
        assert texts(part) == [(setting.name, setting.text)]


def test_all_includes_each_detector_once():
    assert tuple(name for name, _ in texts("all")) == detector_names()
    assert texts("loss,all,loss")[0] == ("loss", "-")
    assert len(texts("loss,all,loss")) == len(detector_names())
    assert names_all("loss, ALL")
    assert not names_all(["loss", "zlib"])


def test_repeated_detector_is_reported():
    assert repeated_detectors("loss,min_k:k=0.20,all,LOSS,min_k:k=0.2,min_k:k=0.3") == (
        "loss (-) is named 2 times, and scored once",
        "min_k (k=0.2) is named 2 times, and scored once",
    )
    assert repeated_detectors("loss,all") == ()


def test_grid_with_extra_passes_requires_naming_the_detector():
    def grid(specification):
        settings = with_grids(parse_detectors(specification))
        return {setting.text for setting in settings if setting.name == "recall"}

    expected = {f"shots={count}" for count in range(1, 13)}
    assert grid("recall") == grid("all,recall") == grid("recall,all") == expected
    assert grid("all") == {"shots=7"}
    assert grid("recall:shots=3") == {"shots=3"}
    free = {
        setting.text for setting in with_grids(parse_detectors("all")) if setting.name == "min_k"
    }
    assert len(free) == 20


def test_bad_specification_is_explained():
    for specification, message in (
        ("lose", "Did you mean 'loss'"),
        ("surp:entopy=2", "Did you mean 'entropy'"),
        ("min_k:k", "k has no value"),
        ("min_k:k=0.1:k=0.2", "given twice"),
        ("min_k:k=1.5", "less than or equal to 1"),
        ("surp:entropy=nan", "entropy:"),
        ("loss:k=0.2", "no parameters"),
        (" , ", "no detector is named"),
    ):
        with pytest.raises(InputError, match=message):
            parse_detectors(specification)
