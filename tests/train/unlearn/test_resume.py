"""A run that was killed, and taken up again, is the run that was never killed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from inject.stream.exposures import read_exposures
from tests.train.unlearn.made import job, unlearn
from train.execution import ExecutionSettings
from train.loop.log import read_log
from train.unlearn.job import unlearn_job

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).resolve().parents[3]
EVERY = ExecutionSettings(resume_every=1)


@pytest.mark.parametrize(
    ("entry", "prints"),
    [
        # Four steps; a checkpoint after each.
        ({"method": "npo", "retain_weight": 1.0}, 3),
        ({"method": "kl", "mode": "lora"}, 2),
        # The first two prints are of the reinforced model's two steps.
        ({"method": "relabel", "reinforced_epochs": 1}, 1),
        ({"method": "relabel", "reinforced_epochs": 1}, 4),
    ],
)
def test_killed_and_taken_up_again(world, tmp_path, entry, prints):
    expected = unlearn(world, tmp_path / "whole", entry, execution=EVERY)
    given = job(world, tmp_path / "killed", entry, execution=EVERY)
    file = tmp_path / "job.json"
    file.write_text(given.model_dump_json(), encoding="utf-8")
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.train.unlearn.made", str(file)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    seen = 0
    for line in running.stdout:
        seen += line.strip().isdigit()
        if seen == prints:
            os.kill(running.pid, signal.SIGKILL)
            break
    running.stdout.close()
    assert running.wait() == -signal.SIGKILL
    unlearn_job(given)
    weights, others = (
        load_file(folder / "model.safetensors") for folder in (Path(given.out), expected)
    )
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    assert read_exposures(Path(given.out)).equals(read_exposures(expected))
    logs = [read_log(folder) for folder in (Path(given.out), expected)]
    assert [row[:4] for row in logs[0]] == [row[:4] for row in logs[1]]


@pytest.mark.parametrize("how", ["flipped", "cut", "gone"])
def test_a_damaged_first_stage_is_said_and_trained_again(world, tmp_path, how, caplog):
    """Every file of the first stage's model, one after the other."""
    entry = {"method": "relabel", "reinforced_epochs": 1, "epochs": 1}
    expected = load_file(unlearn(world, tmp_path / "whole", entry) / "model.safetensors")
    given = job(world, tmp_path / "again", entry)
    unlearn_job(given)
    [stage] = Path(given.unfinished).glob("stages/*/model")
    files = sorted(path.name for path in stage.iterdir() if path.is_file())
    assert "model.safetensors" in files
    for name in [one for one in files if one in ("model.safetensors", "spikein.json")]:
        path = stage / name
        content = path.read_bytes()
        middle = len(content) // 2
        if how == "gone":
            path.unlink()
        else:
            changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
            path.write_bytes({"flipped": changed, "cut": content[:-9]}[how])
        shutil.rmtree(given.out)
        Path(given.out).mkdir()
        caplog.clear()
        unlearn_job(given)
        weights = load_file(Path(given.out) / "model.safetensors")
        assert all(torch.equal(weights[key], expected[key]) for key in expected)
        if (name, how) != ("spikein.json", "gone"):
            assert f"{stage} is damaged" in caplog.text
