"""Documented commands exist, with valid options."""

import re
import shlex
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *sorted((REPOSITORY / "configs").rglob("*.yaml")),
]
TEMPLATE = REPOSITORY / "configs" / "templates" / "experiment.yaml"
WRITTEN_BY_INIT = ("mine.yaml", "my-experiment.yaml")
"""Names under which pages and the template call the file that `spikein init` writes."""
_BLOCK = re.compile(r"^```(?:\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(spikein [a-z][^`]*)`")
_COMMENT = re.compile(r"^#   (spikein .+)$", re.MULTILINE)


def command_lines(page: Path) -> list[str]:
    """The calls of `spikein` in the text and the blocks of a page, or at the head of a preset."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".yaml":
        return _COMMENT.findall(text)
    lines = "\n".join(_BLOCK.findall(text)).replace("\\\n", " ").splitlines()
    called = [line.strip().removeprefix("$ ") for line in lines]
    called += _INLINE.findall(text)
    return [" ".join(line.split()) for line in called if line.startswith("spikein ")]


def fault(line: str) -> str | None:
    """The command line's error for a call before anything runs, or None if it is valid."""
    from typer.core import TyperGroup
    from typer.main import get_command

    from spikein.cli.main import app, whole_command

    group = get_command(app)
    assert isinstance(group, TyperGroup)
    _, *words = shlex.split(line, comments=True)
    name = words[0] if words else ""
    if name.startswith("-"):
        return None
    if name not in group.commands:
        return f"there is no command {name!r}"
    command = whole_command(name)
    try:
        command.make_parser(command.context_class(command, info_name=name)).parse_args(words[1:])
    except Exception as error:
        return str(error) or type(error).__name__
    return None


def overrides_fault(line: str) -> str | None:
    """Return the error of overriding a shipped experiment or the template, or None if valid."""
    from inject.builtin_files import EXPERIMENTS
    from inject.errors import InputError, InputErrors
    from spikein.config.load import read_experiment

    _, command, *words = shlex.split(line, comments=True)
    overrides = [word for word in words[1:] if "=" in word and word.split("=")[0] != "data"]
    if command not in ("run", "plan", "check") or not overrides:
        return None
    path = TEMPLATE if words[0] in WRITTEN_BY_INIT else words[0]
    if path != TEMPLATE and path not in EXPERIMENTS.files():
        return None
    try:
        read_experiment(path, overrides)
    except (InputError, InputErrors) as error:
        return str(error)
    return None


def test_documented_overrides_are_valid():
    calls = {line for page in PAGES for line in command_lines(page)}
    assert [(line, problem) for line in calls if (problem := overrides_fault(line))] == []
    assert overrides_fault("spikein run quickstart train.lr=1e-3") is not None


def test_documented_commands_exist():
    calls = [(page.name, line) for page in PAGES for line in command_lines(page)]
    assert len(calls) > 100
    assert [(*call, problem) for call in calls if (problem := fault(call[1]))] == []


def test_check_detects_an_unknown_command():
    assert fault("spikein run quickstart train.lr=1e-3  # a comment") is None
    assert "no command" in (fault("spikein runn quickstart") or "")
    assert "--no-such" in (fault("spikein detect --no-such 3 --model a") or "")
