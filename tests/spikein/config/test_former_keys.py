"""Experiment files, overrides and sweeps of version 0.1 mean the same, with a note for each key."""

import re
import warnings
from pathlib import Path

import pytest

import spikein
from inject.errors import InputError, InputErrors
from inject.reading.former_names import FormerNameWarning
from spikein.config.former_keys import FORMER_KEYS, current_key, with_current_keys
from spikein.config.load import CheckedExperiment, read_experiment
from spikein.config.yaml_document import YamlDocument
from tests.command_line import invoke
from tests.spikein.tiny import write_tiny

PARENT = """\
name: parent
model:
  shape: llama-1m
  tokenizer: {train: 512}
base: {tokens: 100_000, clip: 2.0}
corpus:
  tokens: 50_000
  sources:
    - {kind: files, path: "*.jsonl"}
contaminants:
  - {dataset: fictional, members: 20, nonmembers: 20}
copies: {fixed: 2}
train: {lr: 1e-3, context: 64, batch_tokens: 1024, clip: 0.5}
execution:
  engine: torchrun
  processes: 2
  kernel: eager
  checkpointing: true
  silent_after: 900
"""
CHILD = """\
extends: parent.yaml
execution: {device_windows: 2}
unlearning:
  forget: {share: 0.5}
  methods:
    - {method: npo, clip: 0.25}
    - {method: gradient_ascent, sweep: {clip: [0.5, 1.0]}}
sweep:
  train.clip: [0.5, 1.0]
  model.tokenizer: [{train: 512}, {train: 600}]
"""
OVERRIDES = ("execution.kernel=sdpa", "base.clip=3.0", "sweep.train.clip=[0.75, 1.5]")
_WORDS = {
    "execution:": "training_runtime:",
    "clip": "max_grad_norm",
    "{train: ": "{vocab_size: ",
    "device_windows": "micro_batch_windows",
    "silent_after": "hang_timeout",
    "checkpointing": "gradient_checkpointing",
    "kernel": "attention",
    "execution.": "training_runtime.",
}


def current(text: str) -> str:
    for former, name in _WORDS.items():
        text = text.replace(former, name)
    return text


def write(folder: Path, parent: str, child: str) -> Path:
    folder.mkdir()
    (folder / "parent.yaml").write_text(parent)
    (folder / "child.yaml").write_text(child)
    return folder / "child.yaml"


def read_noted(path: Path, *overrides: str) -> tuple[CheckedExperiment, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checked = read_experiment(path, overrides)
    return checked, [str(one.message) for one in caught if one.category is FormerNameWarning]


def test_former_experiment_equals_the_current_one(tmp_path):
    former, notes = read_noted(write(tmp_path / "old", PARENT, CHILD), *OVERRIDES)
    path = write(tmp_path / "new", current(PARENT), current(CHILD))
    checked, none = read_noted(path, *map(current, OVERRIDES))
    assert former == checked
    assert none == []
    assert former.arms[0].axes == {
        "train.max_grad_norm": 0.75,
        "model.tokenizer": {"vocab_size": 512},
    }
    assert former.experiment.base.max_grad_norm == 3.0
    assert former.experiment.training_runtime.attention == "sdpa"
    for key, name in FORMER_KEYS.items():
        pattern = re.compile(
            rf"{re.escape(key)} is now called {re.escape(name)}".replace(r"\*", r"\d")
        )
        assert any(pattern.search(note) for note in notes), key


def test_note_names_file_line_and_override(tmp_path):
    path = write(tmp_path / "old", PARENT, CHILD)
    _, notes = read_noted(path, *OVERRIDES)
    line = 1 + PARENT[: PARENT.index("kernel")].count("\n")
    assert (
        f"{path.parent / 'parent.yaml'}:{line}: execution.kernel is now called "
        "training_runtime.attention; spikein 0.3 will not read the former name." in notes
    )
    assert any(
        note.startswith(f"{path}:2: execution is now called training_runtime;") for note in notes
    )
    assert any(note.startswith("override base.clip=3.0: base.clip is now") for note in notes)
    axis = "sweep.train.clip is now called sweep.train.max_grad_norm"
    assert sum(axis in note for note in notes) == 2


def test_current_parent_and_former_child_are_one_section(tmp_path):
    path = write(tmp_path / "mixed", current(PARENT), CHILD)
    runtime = read_noted(path)[0].experiment.training_runtime
    assert (runtime.processes, runtime.micro_batch_windows) == (2, 2)


@pytest.mark.filterwarnings("ignore::inject.reading.former_names.FormerNameWarning")
@pytest.mark.parametrize(
    ("key", "override"),
    [("train.clip", "train={clip: 1.0, max_grad_norm: 2.0}"), ("train.clip", None)],
)
def test_key_under_both_names_is_refused(tmp_path, key, override):
    parent = PARENT if override else PARENT.replace("clip: 0.5", "clip: 0.5, max_grad_norm: 1.0")
    path = write(tmp_path / "both", parent, CHILD)
    with pytest.raises((InputError, InputErrors), match=f"{key} and train.max_grad_norm are the"):
        read_experiment(path, [override] if override else [])


def test_mapping_is_read_with_warnings(tmp_path):
    write_tiny(tmp_path)
    experiment = {"name": "x", "train": {"lr": 1e-3, "clip": 0.5}}
    note = "train.clip is now called train.max_grad_norm"
    with pytest.raises(InputErrors), pytest.warns(FormerNameWarning, match=note):
        spikein.plan(experiment, store=tmp_path / "store")


def test_notes_can_be_silenced():
    document = YamlDocument(values={"train": {"clip": 1}}, places={}, name="old.yaml")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert with_current_keys(document, notes=False).values == {"train": {"max_grad_norm": 1}}


@pytest.mark.parametrize(
    "key", ["train.lr", "sweep.copies", "variables.clip", "model", "detect.clip"]
)
def test_other_keys_stay(key):
    assert current_key(key) == key


@pytest.mark.parametrize("command", ["check", "plan"])
def test_commands_print_each_note_once(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    path = write_tiny(tmp_path)
    path.write_text(path.read_text() + "execution: {resume_every: 4}\n")
    options = ["--no-time-training"] if command == "plan" else []
    output = " ".join(invoke(command, path.name, "train.clip=0.5", *options, code=0).output.split())
    last = path.read_text().count("\n")
    assert output.count(f"Note: tiny.yaml:{last}: execution is now called training_runtime;") == 1
    assert output.count("train.clip is now called train.max_grad_norm;") == 1
