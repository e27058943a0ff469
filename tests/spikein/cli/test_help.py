"""The help: every command is listed and explains itself, and a list of them costs little."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from spikein.cli.main import app

COMMANDS = [
    "init",
    "run",
    "check",
    "plan",
    "status",
    "report",
    "compare",
    "audit",
    "export",
    "validate",
    "bundle",
    "executors",
    "detect",
    "audit-unlearning",
    "datasets",
    "detectors",
    "gc",
]
REPOSITORY = Path(__file__).parents[3]


def invoke(*arguments: str):
    return CliRunner().invoke(app, arguments)


def test_every_command_is_listed_with_what_its_own_help_says_first_and_shows_an_example():
    group = get_command(app)
    context = group.make_context("spikein", [], resilient_parsing=True)
    assert group.list_commands(context) == COMMANDS
    listing = invoke("--help").output
    for name in COMMANDS:
        listed = group.get_command(context, name)
        _, whole, _ = group.resolve_command(context, [name])
        assert listed.help == whole.help.split("\n\n")[0].replace("\n", " ")
        assert whole.name == name
        assert f" {name} " in listing
        assert f"spikein {name}" in invoke(name, "--help").output


def test_the_list_of_commands_imports_none_of_them():
    code = (
        "import sys\nsys.argv = ['spikein', '--help']\nfrom spikein.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n"
        "    print([name for name in sys.modules if name.startswith('spikein.cli.commands.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert "Usage" in done.stdout
    assert done.stdout.strip().endswith("[]")


def test_the_start_imports_nothing_heavy():
    code = (
        "import sys, spikein.cli.main\n"
        "heavy = ['torch', 'transformers', 'numpy', 'pyarrow', 'pydantic', 'yaml', 'ruamel',"
        " 'datasets', 'matplotlib', 'sklearn', 'scipy', 'filelock']\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_help_costs_little_more_than_typer_itself():
    # A ratio, so that a busy machine slows both; the bare program prints a help text, too.
    bare = "import typer; app = typer.Typer(); app.command()(lambda x=1: None); app(['--help'])"

    def seconds(*arguments: str) -> float:
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], capture_output=True, check=True, cwd=REPOSITORY
        )
        return time.perf_counter() - started

    pairs = [(seconds("-m", "spikein.cli.main", "--help"), seconds("-c", bare)) for _ in range(5)]
    assert min(ours for ours, _ in pairs) / min(other for _, other in pairs) <= 1.5


def test_the_arm_of_an_example_is_one_of_the_quickstart():
    """As the one writer of such names has it; nothing is trained."""
    from analysis.arm import arm_label
    from spikein.config.load import read_experiment

    arms = read_experiment(REPOSITORY / "configs" / "quickstart.yaml").arms
    labels = {arm_label(arm.labels.items()) for arm in arms}
    source = (REPOSITORY / "spikein" / "cli" / "commands" / "bundle.py").read_text()
    assert re.findall(r"--arm '([^']+)'", source) == ["lr 0.0015"]
    assert {"lr 0.0015", "lr 0.0003"} == labels
