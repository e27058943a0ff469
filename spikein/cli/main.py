"""The command `spikein`: its subcommands and their exit statuses.

`spikein --help` prints `EXIT_STATUSES`. Nothing heavy is imported before a command runs.
"""

import gc
import inspect
import io
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from inject.errors import SpikeinError
from spikein.cli.output import former_names_as_notes, print_error, say

EXIT_STATUSES = {
    0: "done, or declined at a prompt",
    1: "`validate --strict` found a detector wrong; with a traceback: a bug in spikein",
    2: "bad input, a failed audit, a detector that could not be judged, or an error of the machine "
    "(no space, no permission)",
    3: "some steps of a run failed; all others are finished",
    130: "interrupted",
    143: "ended by SIGTERM, with a restart checkpoint if a model was being trained",
}
_PANELS = {
    "Experiments": "presets init run check plan status report compare audit export validate bundle "
    "leaderboard push executors",
    "Any model, any file": "detect correct audit-unlearning datasets data detectors",
    "Housekeeping": "gc",
}
"""The commands, by the panel of `spikein --help` that lists them. Each is the function of that
name, `_` for `-`, in the module of that name or the one below. The module is imported when its
command is called. A list of commands reads only the first lines of their docstrings: building the
options of all commands took a third of its time."""
_MODULES = {
    "report": "run",
    "bundle": "validate",
    "datasets": "listings",
    "detectors": "listings",
    "executors": "listings",
}
"""The module of a command that shares one with a related command."""


def _first_line(name: str) -> str:
    """Return the first line of a command's help, without importing its module."""
    own = name.replace("-", "_")
    path = Path(__file__).parent / "commands" / f"{_MODULES.get(own, own)}.py"
    docstring = path.read_text(encoding="utf-8").partition(f"\ndef {own}(")[2].split('"""')[1]
    return " ".join(docstring.partition("\n\n")[0].split())


class _Commands(TyperGroup):
    """The commands: listed by their first lines, imported when they are called."""

    def __init__(self, **settings: Any) -> None:
        """List all commands."""
        super().__init__(**settings)
        self.commands = {
            name: TyperCommand(name=name, help=_first_line(name), rich_help_panel=panel)
            for panel, names in _PANELS.items()
            for name in names.split()
        }

    # Typer brings its own click, whose Context and Command have no public name.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the called command with all its options."""
        name, command, arguments = super().resolve_command(ctx, args)
        return name, None if command is None or name is None else whole_command(name), arguments

    def invoke(self, ctx: Any) -> Any:
        """Run a command; bad input and Ctrl-C end it with a message."""
        try:
            with former_names_as_notes():
                return super().invoke(ctx)
        except SpikeinError as error:
            print_error("\n".join([str(error), *getattr(error, "__notes__", [])]))
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            print_error("interrupted. Finished steps are kept; run the same command to go on.")
            raise typer.Exit(130) from None
        except Exception as error:
            refusal = _machine_refusal(error)
            if refusal is None:
                _name_the_setting(error)
                raise
            print_error(refusal)
            raise typer.Exit(2) from None


def _machine_refusal(error: Exception) -> str | None:
    """Return a message if the machine failed (no space, no permission); None for our own bug."""
    from inject.files import disk_full
    from spikein.store.filesystem import read_only

    path = getattr(error, "filename", None)
    place = f"{path}: " if path else ""
    if disk_full(error):
        return f"{place}the disk is full. Free some space, then run the same command to go on."
    if read_only(error) and isinstance(error, OSError) and path:
        return f"{place}{error.strerror}."
    return None


def _name_the_setting(error: Any) -> None:
    """Explain for an unknown option how to write it as a setting."""
    option = getattr(error, "option_name", None)
    if option is None or error.ctx is None:
        return
    if any("KEY=VALUE" in (param.metavar or "") for param in error.ctx.command.params):
        key = option.lstrip("-").replace("-", "_")
        error.message += f". A setting is written {key}=VALUE"


app = typer.Typer(
    name="spikein",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def whole_command(name: str) -> Any:
    """Return a command with all its options and its full help."""
    own = name.replace("-", "_")
    function = getattr(import_module(f"spikein.cli.commands.{_MODULES.get(own, own)}"), own)
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, help=_join_lines(inspect.getdoc(function) or ""))(function)
    return get_command(alone)


def _join_lines(text: str) -> str:
    """Return help whose paragraphs are single lines: terminals wrap them at their own width."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        paragraph if paragraph.startswith(" ") else paragraph.replace("\n", " ")
        for paragraph in paragraphs
    )


def _version(requested: bool) -> None:
    if requested:
        import spikein

        say(f"spikein {spikein.__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit status: " + "; ".join(f"{code} {text}" for code, text in EXIT_STATUSES.items())
)
def _spikein(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Spike known text into a corpus, train a language model, see which detectors can tell.

    [bold]Start here:[/]  spikein run quickstart

    This needs no download, no GPU and a few minutes, and writes a report.
    """


def main() -> None:
    """Run the command line; the entry point of `spikein`."""
    # Imports create half a million objects that stay. To search all of them for garbage whenever
    # their number had grown by a quarter took a fifth of a command's start.
    gc.set_threshold(700, 10, 100)
    if sys.stdout.encoding and sys.stdout.encoding.lower() not in ("utf-8", "utf8"):
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
    app()


if __name__ == "__main__":
    main()
