"""`spikein init` writes complete files and never overwrites any."""

from pathlib import Path

import pytest

from inject.builtin_files import EXPERIMENTS
from spikein.api.plan import plan
from spikein.config.load import read_experiment
from tests.command_line import invoke


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def background() -> str:
    """Return an override: a background that is read quickly."""
    Path("text.txt").write_text("Some text. " * 1000)
    return "corpus.sources=[{kind: files, path: text.txt}]"


def test_the_file_is_a_complete_experiment_with_the_given_name():
    result = invoke("init", "study", code=0)
    assert result.stdout.splitlines() == [
        "Experiment file: study.yaml",
        "Next: spikein check study.yaml, then spikein run study.yaml",
    ]
    checked = read_experiment("study.yaml")
    assert checked.experiment.name == "study"
    assert len(checked.arms) == 2
    text = Path("study.yaml").read_text()
    assert "my-experiment" not in text
    assert "spikein run study.yaml" in text


def test_the_file_plans_without_notes_on_a_processor(monkeypatch):
    monkeypatch.setattr("spikein.api.plan.visible_gpus", tuple)
    invoke("init", "study")
    planned = invoke(
        "plan", "study.yaml", "--no-time-training", "corpus.tokens=600000", background(), code=0
    )
    assert "Note" not in planned.output
    assert "a GPU" not in planned.stdout
    assert "On the processor of this machine" in planned.stdout


def test_detectors_with_the_same_missing_input_share_one_note():
    invoke("init", "study")
    notes = plan("study.yaml", overrides=["detect.detectors=all", background()]).notes
    assert sum("Hold rows out" in note for note in notes) == 2
    assert any(note.startswith("prefix, samia, cdd, ngram_coverage of `all` are") for note in notes)
    assert len(notes) == 8


def test_a_copied_preset_differs_only_in_its_name():
    for at, source in enumerate(("quickstart", "learning-rate", "min-k-table3")):
        invoke("init", f"mine-{at}", "--from", source, code=0)
        copied = read_experiment(f"mine-{at}.yaml")
        assert copied == read_experiment(source, [f"name=mine-{at}"]), source
        before, after = EXPERIMENTS.find(source).read_text(), Path(f"mine-{at}.yaml").read_text()
        assert after.count("#") == before.count("#")
        assert f"spikein run {source}" not in after


def test_an_existing_file_is_never_overwritten():
    Path("study.yaml").write_text("precious")
    result = invoke("init", "study", code=2)
    assert "study.yaml: the file exists already; nothing was written" in result.stderr
    assert Path("study.yaml").read_text() == "precious"


def test_bad_names_are_refused_and_nothing_is_written():
    Path("own.yaml").write_text("name: own")
    for arguments, message in (
        (("quickstart",), "is the name of an experiment that comes with spikein"),
        (("mine", "--from", "own.yaml"), "Write `extends: own.yaml` into a new file"),
        (("mine", "--from", "absent.yaml"), "there is no such file"),
        (("mine", "--from", ""), "--from: is empty. Allowed: "),
    ):
        result = invoke("init", *arguments, code=2)
        assert message in " ".join(result.stderr.split())
        assert [path.name for path in Path().iterdir()] == ["own.yaml"]
