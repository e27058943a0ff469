"""The help: every command is listed and explains itself, and a list of them costs little."""

import re

from typer.main import get_command

from spikein.cli.main import EXIT_STATUSES, app
from tests.command_line import invoke
from tests.conftest import REPOSITORY
from tests.processes import printed


def test_every_command_is_listed_with_what_its_own_help_says_first_and_shows_an_example():
    group = get_command(app)
    context = group.make_context("spikein", [], resilient_parsing=True)
    names = group.list_commands(context)
    assert len(names) == 21
    listing = invoke("--help").output
    for name in names:
        listed = group.get_command(context, name)
        _, whole, _ = group.resolve_command(context, [name])
        assert listed.help == whole.help.split("\n\n")[0].replace("\n", " ")
        assert whole.name == name
        assert f" {name} " in listing
        assert f"spikein {name}" in invoke(name, "--help").output


def test_the_list_of_commands_imports_none_of_them_and_nothing_heavy():
    code = (
        "import sys\nsys.argv = ['spikein', '--help']\nfrom spikein.cli.main import main\n"
        "heavy = ['torch', 'transformers', 'numpy', 'pyarrow', 'pydantic', 'yaml', 'ruamel',"
        " 'datasets', 'resvg_py', 'sklearn', 'scipy', 'filelock']\n"
        "try:\n    main()\nexcept SystemExit:\n"
        "    print([name for name in sys.modules if name in heavy"
        " or name.startswith('spikein.cli.commands.')])"
    )
    shown = printed(code)
    assert "Usage" in shown
    assert shown.endswith("[]")


def test_a_setting_that_is_given_as_an_option_is_shown_as_it_is_written():
    asked = ("detect", "--model", "m", "--examples", "rows.jsonl", "--held-out", "x.jsonl")
    assert "A setting is written held_out=VALUE" in " ".join(invoke(*asked).output.split())
    assert "is written" not in invoke("gc", "--held-out").output


def test_how_commands_end_is_said_in_the_help_and_on_one_page():
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
    table = re.findall(r"^\| (\d[\d, ]*) \|", page, re.MULTILINE)
    assert [int(code) for line in table for code in line.split(",")] == [*EXIT_STATUSES]
    said = " ".join(invoke("--help").output.split())
    assert all(f" {code} {what[:20]}" in said for code, what in EXIT_STATUSES.items())
