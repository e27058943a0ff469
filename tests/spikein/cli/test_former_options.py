"""Options of version 0.1 are accepted with a note, and no help lists them."""

import pytest

from spikein.cli.main import whole_command
from spikein.cli.options import replace_former
from tests.command_line import invoke

FORMER = {
    "audit-unlearning": ("--holdout", "--control-texts"),
    "bundle": ("--with", "--include"),
    "plan": ("--measure", "--time-training"),
}


@pytest.mark.parametrize("command", FORMER)
def test_help_lists_only_the_current_option(command):
    former, current = FORMER[command]
    output = invoke(command, "--help", code=0).output
    assert current in output
    assert f"{former} " not in output
    options = {name for param in whole_command(command).params for name in param.opts}
    assert {former, current} <= options


def test_former_option_replaces_the_current_one():
    with pytest.warns(FutureWarning, match="command line: --with is now called --include; spikein"):
        assert replace_former(None, ["shots"], ("--with", "--include")) == ["shots"]
    assert replace_former(["shots"], [], ("--with", "--include")) == ["shots"]
    assert replace_former(True, None, ("--measure", "--time-training"))
    with pytest.warns(FutureWarning):
        assert not replace_former(True, False, ("--measure", "--time-training"))


def test_plan_accepts_the_former_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("plan", "none.yaml", "--no-measure", code=2)
    assert done.output.count("Note: command line: --measure is now called --time-training;") == 1


def test_audit_accepts_the_former_option(tmp_path):
    models = [tmp_path / "a", tmp_path / "b"]
    done = invoke("audit-unlearning", *models, "--texts", "none.txt", "--holdout", "x.txt", code=2)
    assert "--holdout is now called --control-texts;" in done.output


def test_bundle_accepts_the_former_option(tmp_path):
    done = invoke("bundle", tmp_path, "--with", "shots", "--list", code=2)
    assert "--with is now called --include;" in done.output
