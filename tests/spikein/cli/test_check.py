"""`spikein check`: files that extend others, names, and what is printed beside the verdict."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from spikein.cli.main import app
from tests.spikein.tiny import write_tiny


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def check(*arguments: str):
    result = CliRunner().invoke(app, ["check", *arguments])
    return result.exit_code, " ".join(result.output.split())


def test_a_file_that_extends_another_is_checked_as_a_whole(tmp_path):
    write_tiny(tmp_path)
    Path("sub").mkdir()
    Path("sub/child.yaml").write_text("extends: ../tiny.yaml\nseeds: [0, 1]\n")
    code, output = check("sub/child.yaml")
    assert code == 0
    assert output.startswith("sub/child.yaml: nothing wrong was found; 2 arms, ")
    text = Path("tiny.yaml").read_text().replace("members: 24, non", "members: none, non")
    Path("tiny.yaml").write_text(text)
    line = 1 + text[: text.index("members: none")].count("\n")
    code, output = check("sub/child.yaml", "train.lr=0")
    assert code == 2
    assert f"sub/../tiny.yaml:{line}: contaminants.0.members: is the text 'none'" in output
    assert "override train.lr=0: train.lr: is the number 0" in output


def test_a_name_that_could_be_taken_for_a_local_file_is_noted(tmp_path):
    write_tiny(tmp_path)
    Path("llama-1m.yaml").write_text("hidden: 3\n")
    code, output = check("tiny.yaml", "model.shape=llama-1m", "corpus.tokens=60_000")
    assert code == 0
    assert "Note: 'llama-1m' means the model shape that comes with spikein" in output
    assert "llama-1m.yaml is another file; give its path to use it." in output


def test_an_unknown_name_is_refused_with_the_nearest():
    code, output = check("quikstart")
    assert code == 2
    assert "Did you mean 'quickstart'?" in output
