"""The help: every command is listed and explains itself, and a list of them costs little."""

import re

from typer.main import get_command

from spikein.cli.main import EXIT_STATUSES, app
from tests.command_line import invoke
from tests.conftest import REPOSITORY
from tests.processes import printed


def test_commands_are_listed_with_the_first_paragraph_of_their_help_and_an_example():
    group = get_command(app)
    context = group.make_context("spikein", [], resilient_parsing=True)
    names = group.list_commands(context)
    assert len(names) == 22
    listing = invoke("--help").output
    for name in names:
        listed = group.get_command(context, name)
        _, whole, _ = group.resolve_command(context, [name])
        paragraphs = whole.help.split("\n\n")
        assert listed.help == paragraphs[0]
        # A terminal wraps paragraphs at its own width; commands are indented.
        assert not [text for text in paragraphs if "\n" in text and not text.startswith(" ")]
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
    output = printed(code)
    assert "Usage" in output
    assert output.endswith("[]")


def test_a_setting_given_as_an_option_is_corrected():
    arguments = ("detect", "--model", "m", "--examples", "rows.jsonl", "--held-out", "x.jsonl")
    assert "A setting is written held_out=VALUE" in " ".join(invoke(*arguments).output.split())
    assert "is written" not in invoke("gc", "--held-out").output


def test_exit_statuses_are_listed_in_the_help_and_the_docs():
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
    table = re.findall(r"^\| (\d[\d, ]*) \|", page, re.MULTILINE)
    assert [int(code) for line in table for code in line.split(",")] == [*EXIT_STATUSES]
    text = " ".join(invoke("--help").output.split())
    assert all(f" {code} {meaning[:20]}" in text for code, meaning in EXIT_STATUSES.items())
