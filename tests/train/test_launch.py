"""Several processes: all end well, or the first that dies is named and nobody waits."""

import pytest
from pydantic import ValidationError

from inject.errors import InputError
from train.execution import ExecutionSettings, deepspeed_config
from train.launch import ProcessFailed, launch


def ranks(what: str, *, processes: int) -> list[str]:
    lines: list[str] = []
    launch("tests.train.ranks", [what], processes=processes, environment={}, on_line=lines.append)
    return lines


def test_all_find_their_place_and_rank_0_is_heard():
    first, last = ranks("say", processes=3)
    assert first.startswith("rank 0 of 3 at ")
    assert last == "last words"


@pytest.mark.timeout(100)
def test_a_failed_process_is_shown_and_the_others_are_ended():
    with pytest.raises(ProcessFailed, match=r"(?s)1 of 2 ended with code 3.*something went wrong"):
        ranks("fail", processes=2)


@pytest.mark.parametrize(
    ("given_settings", "said"),
    [
        ({"processes": 2}, "is one process, not 2"),
        ({"engine": "torchrun", "offload": True}, "offload belongs to"),
        ({"engine": "deepspeed", "zero": 1, "offload": True}, "zero 2 or 3"),
        ({"engine": "deepspeed", "zero": 4}, "less than or equal to 3"),
    ],
)
def test_settings_that_make_no_sense(given_settings, said):
    with pytest.raises(ValidationError, match=said):
        ExecutionSettings(**given_settings)


def test_windows_of_a_step_are_shared_out_evenly():
    two = ExecutionSettings(engine="torchrun", processes=2, device_windows=4)
    assert two.device_batch(16, 2) == 4
    assert ExecutionSettings().device_batch(16, 1) == 16
    with pytest.raises(InputError, match=r"15 windows .* to 2 processes.*Allowed: 1, 3, 5, 15"):
        two.device_batch(15, 2)
    with pytest.raises(InputError, match="5 windows of each step, which 4 do not divide"):
        two.device_batch(10, 2)


def test_configurations_of_deepspeed():
    for zero, offload in [(0, False), (1, False), (2, False), (2, True), (3, False), (3, True)]:
        asked = ExecutionSettings(engine="deepspeed", processes=2, zero=zero, offload=offload)
        found = (deepspeed_config(asked) or {})["zero_optimization"]
        assert (found["stage"], "offload_optimizer" in found) == (zero, offload)
        assert ("offload_param" in found) == (offload and zero == 3)


def test_deepspeed_is_asked_for_only_where_it_is_wanted(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert deepspeed_config(ExecutionSettings()) is None
    with pytest.raises(InputError, match="DeepSpeed is not installed"):
        deepspeed_config(ExecutionSettings(engine="deepspeed"))
