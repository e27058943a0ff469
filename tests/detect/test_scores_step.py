"""The step of scores restores its detectors from plain JSON."""

import json

import pytest

from detect.detector_settings import parse_detectors, plugin_digests, with_grids
from detect.registry import get_detector
from detect.scores_step import _given_settings
from inject.errors import InputError
from inject.settings import plain
from inject.step import StepContext

PLUGIN = "def score(statistics):\n    return 1.0\n"


def context_of(tmp_path, settings) -> StepContext:
    execution = {
        "detectors": [[setting.known.reference, plain(setting.parameters)] for setting in settings]
    }
    return StepContext(
        out=tmp_path,
        inputs={},
        settings={"plugins": plugin_digests(settings)},
        execution=json.loads(json.dumps(execution)),
        unfinished=tmp_path,
        report=lambda *_, **__: None,
    )


def test_detector_settings_round_trip(tmp_path):
    settings = with_grids(parse_detectors("all"))
    restored = _given_settings(context_of(tmp_path, settings))
    assert [(setting.name, setting.text, setting.needs) for setting in restored] == [
        (setting.name, setting.text, setting.needs) for setting in settings
    ]
    assert [setting.parameters for setting in restored] == [
        setting.parameters for setting in settings
    ]


def test_plugin_is_found_from_any_folder_and_rejected_when_edited(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    settings = parse_detectors("mine.py:score")
    context = context_of(tmp_path, settings)
    monkeypatch.chdir("/")
    assert _given_settings(context)[0].known.digest == settings[0].known.digest
    assert get_detector(settings[0].known.reference).detector.name == settings[0].name
    (tmp_path / "mine.py").write_text(PLUGIN.replace("1.0", "2.0"))
    with pytest.raises(InputError, match=r"detect\.detectors: it changed after it was hashed"):
        _given_settings(context)
