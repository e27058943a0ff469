"""Names of shipped files: found from any folder, never taken for a local file, and the reverse."""

from pathlib import Path

import pytest

from inject.builtin_files import CONFIGS, EXPERIMENTS, SHAPES
from inject.errors import InputError


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_builtin_files_are_found_by_name_from_any_folder():
    assert EXPERIMENTS.find("quickstart") == CONFIGS / "quickstart.yaml"
    assert EXPERIMENTS.find("min-k-table3") == CONFIGS / "paper" / "min-k-table3.yaml"
    assert EXPERIMENTS.find("real-small") == CONFIGS / "small" / "real-small.yaml"
    assert EXPERIMENTS.find("dose-response-160m") == CONFIGS / "gpu" / "dose-response-160m.yaml"
    assert SHAPES.find("llama-1m") == CONFIGS / "models" / "llama-1m.yaml"
    for catalogue in (EXPERIMENTS, SHAPES):
        for name, path in catalogue.files().items():
            assert catalogue.find(name) == path


def test_name_means_the_builtin_file_despite_a_local_one():
    assert EXPERIMENTS.clash("quickstart") is None
    for local in ("quickstart.yaml", "quickstart.yml", "quickstart"):
        Path(local).write_text("name: mine")
        assert EXPERIMENTS.find("quickstart") == CONFIGS / "quickstart.yaml"
        message = EXPERIMENTS.clash("quickstart")
        assert str(CONFIGS / "quickstart.yaml") in message
        assert f"{local} is another file" in message
        Path(local).unlink()
    Path("quickstart").mkdir()
    assert EXPERIMENTS.clash("quickstart") is None


def test_unknown_name_is_rejected_with_a_suggestion():
    with pytest.raises(InputError, match="Did you mean 'quickstart'") as caught:
        EXPERIMENTS.find("quikstart")
    assert "real-small" in str(caught.value)
    for wrong, near in (("forgeting", "forgetting"), ("trajectory-smal", "trajectory-small")):
        with pytest.raises(InputError, match=f"Did you mean '{near}'"):
            EXPERIMENTS.find(wrong)
    with pytest.raises(InputError, match=r"no model shape of this name.*Did you mean 'llama-1m'"):
        SHAPES.find("lama-1m")


def test_path_in_a_clone_resolves_to_the_name_elsewhere():
    with pytest.raises(InputError, match="Use the name quickstart for the experiment that comes"):
        EXPERIMENTS.find("configs/quickstart.yaml")
    with pytest.raises(InputError, match=r"Names that spikein knows: .*min-k-table3"):
        EXPERIMENTS.find("configs/mine.yaml")
