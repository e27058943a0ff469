import pytest

from detect.settings import EXECUTION, DetectSettings
from detect.views import view_names, view_text
from inject.errors import InputError


def test_identity_covers_settings_that_affect_scores_and_not_execution():
    plain = DetectSettings().identity()
    for name, value in {
        "batch_tokens": 7, "compile": "never", "device": "cuda:1", "device_map": "auto",
    }.items():  # fmt: skip
        assert name in EXECUTION
        assert DetectSettings(**{name: value}).identity() == plain
    for name, value in {
        "detectors": ["loss"], "tune_share": 0.5, "bos": "always", "score_first": "start_token",
        "long": "truncate", "context": 64, "reference": None, "frequency": "texts.jsonl",
        "dtype": "bfloat16",
    }.items():  # fmt: skip
        assert DetectSettings(**{name: value}).identity() != plain, name


def test_views():
    assert view_names()[:2] == ("text", "lowercase")
    assert view_text("lowercase", "The ÉTÉ") == "the été"
    assert view_text("text", "The") == "The"
    with pytest.raises(InputError, match="Did you mean 'lowercase'"):
        view_text("lower_case", "The")
