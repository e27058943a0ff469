"""Several processes: all succeed, or the first failure is reported without waiting."""

import sys

import pytest
from pydantic import ValidationError

from inject.errors import InputError
from train.execution import ExecutionSettings, deepspeed_config
from train.launch import ProcessFailed, launch
from train.processes import extension


def ranks(action: str, *, processes: int) -> list[str]:
    lines: list[str] = []
    launch("tests.train.ranks", [action], processes=processes, environment={}, on_line=lines.append)
    return lines


def test_processes_get_their_rank_and_rank_0_is_printed():
    first, last = ranks("say", processes=3)
    assert first.startswith("rank 0 of 3 at ")
    assert last == "last words"


@pytest.mark.timeout(100)
def test_a_failed_process_is_shown_and_the_others_are_ended():
    with pytest.raises(ProcessFailed, match=r"(?s)1 of 2 ended with code 3.*something went wrong"):
        ranks("fail", processes=2)


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"engine": "process", "processes": 2}, "is one process, not 2"),
        ({"engine": "torchrun", "offload": True}, "offload requires"),
        ({"engine": "deepspeed", "zero": 1, "offload": True}, "zero 2 or 3"),
        ({"engine": "deepspeed", "zero": 4}, "less than or equal to 3"),
    ],
)
def test_inconsistent_settings_are_rejected(given_settings, message):
    with pytest.raises(ValidationError, match=message):
        ExecutionSettings(**given_settings)


def test_windows_of_a_step_are_divided_evenly():
    two = ExecutionSettings(engine="torchrun", processes=2, micro_batch_windows=4)
    assert two.device_batch(16, 2) == 4
    assert ExecutionSettings().device_batch(16, 1) == 16
    with pytest.raises(InputError, match=r"15 windows .* among 2 processes.*Allowed: 1, 3, 5, 15"):
        two.device_batch(15, 2)
    with pytest.raises(InputError, match="5 windows of each step, which 4 do not divide"):
        two.device_batch(10, 2)


def test_deepspeed_configuration_follows_the_settings():
    for zero, offload in [(0, False), (1, False), (2, False), (2, True), (3, False), (3, True)]:
        settings = ExecutionSettings(engine="deepspeed", processes=2, zero=zero, offload=offload)
        config = (deepspeed_config(settings) or {})["zero_optimization"]
        assert (config["stage"], "offload_optimizer" in config) == (zero, offload)
        assert ("offload_param" in config) == (offload and zero == 3)


def test_deepspeed_is_required_only_if_configured(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert deepspeed_config(ExecutionSettings()) is None
    with pytest.raises(InputError, match="DeepSpeed is not installed"):
        deepspeed_config(ExecutionSettings(engine="deepspeed"))


def test_auto_is_deepspeed_for_several_processes_only():
    assert ExecutionSettings().backend == "process"
    two = ExecutionSettings(processes=2, zero=1)
    assert two.backend == "deepspeed"
    assert deepspeed_config(two) == deepspeed_config(two.model_copy(update={"engine": "deepspeed"}))
    assert two.label() == "in 2 processes with DeepSpeed (ZeRO stage 1)"


@pytest.mark.parametrize("missing", ["compiler", "ninja", "writable cache"])
def test_missing_parts_of_deepspeed_are_reported_before_training(monkeypatch, tmp_path, missing):
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    monkeypatch.setenv("SPIKEIN_CACHE", str(tmp_path / "cache"))
    if missing == "compiler":
        monkeypatch.setenv("CXX", "no-such-compiler")
    elif missing == "ninja":
        monkeypatch.setattr(extension, "_search_path", lambda: str(tmp_path))
        monkeypatch.setenv("CXX", sys.executable)
    else:
        (tmp_path / "cache").write_text("a file where the folder would be")
    expected = {
        "compiler": "no-such-compiler is missing.*Install a C\\+\\+ compiler",
        "ninja": "ninja is missing.*training_runtime.engine=torchrun",
        "writable cache": "cannot be compiled there.*SPIKEIN_CACHE",
    }
    with pytest.raises(InputError, match=expected[missing]):
        extension.require_extension()


def test_a_launch_gets_its_own_copy_of_the_compiled_extension(monkeypatch, tmp_path):
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    monkeypatch.setenv("SPIKEIN_CACHE", str(tmp_path / "cache"))
    compiled = []

    def compile_once(folder):
        compiled.append(folder)
        (folder / "op").mkdir()
        (folder / "op" / "op.so").write_text("code")
        (folder / "op" / "lock").touch()

    monkeypatch.setattr(extension, "_compile", compile_once)
    lines = []
    for run in ("one", "two"):
        environment = extension.prepared_extension(tmp_path / run, lines.append)
        folder = tmp_path / run / "extensions"
        assert environment["TORCH_EXTENSIONS_DIR"] == str(folder)
        # A lock left by a killed process would make all others hang.
        assert [path.name for path in (folder / "op").iterdir()] == ["op.so"]
    assert len(compiled) == len(lines) == 1
    assert "compiled once" in lines[0]
    # A folder set by the user is separate per version as well.
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "named"))
    for release in ("1", "2"):
        monkeypatch.setattr(extension, "version", lambda name, release=release: release)
        assert extension.compiled_extension().is_relative_to(tmp_path / "named")
    assert len(compiled) == 3
