"""The command `spikein`: its commands, and how they end.

Exit codes: 0 done; 2 bad input, a failed audit, or a machine that refuses (no space, no
permission), reported without a traceback; 3 some steps failed and all others were finished; 130
interrupted; 143 ended by SIGTERM, with a checkpoint where a model was being trained; 1 a defect of
ours, with its traceback. Nothing heavy is imported before a command runs.
"""

import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from inject.errors import SpikeinError
from spikein.cli.output import print_error, say

_EXPERIMENTS = "Experiments"
_MODELS = "Any model, any file"
_HOUSEKEEPING = "Housekeeping"
_COMMANDS = {
    "init": (
        _EXPERIMENTS,
        "Write a commented experiment file to start from, into this folder; or a detector.",
    ),
    "run": (_EXPERIMENTS, "Run an experiment and write its report."),
    "check": (
        _EXPERIMENTS,
        "Check an experiment file, its data and whether its copies fit; run nothing.",
    ),
    "plan": (_EXPERIMENTS, "Say what a run will do and what it will cost; run nothing."),
    "status": (_EXPERIMENTS, "List the runs, or say how far one of them is."),
    "report": (_EXPERIMENTS, "Render the report of a finished run again, and print where it lies."),
    "compare": (
        _EXPERIMENTS,
        "Compare two finished runs: their settings, what they were made from, and their numbers.",
    ),
    "audit": (
        _EXPERIMENTS,
        "Show what the audits of a run found, and search its background by other rules.",
    ),
    "export": (
        _EXPERIMENTS,
        "Export the contaminated stream of a run, with the place of every copy beside it.",
    ),
    "validate": (
        _EXPERIMENTS,
        "Judge new detectors by ground truth: their rank among all stored ones, and what is wrong.",
    ),
    "bundle": (_EXPERIMENTS, "Pack the ground truth of a run into a folder for others."),
    "executors": (
        _EXPERIMENTS,
        "List the executors that [cyan]spikein run --executor[/] takes, and where they come from.",
    ),
    "detect": (_MODELS, "Score the rows of any file with any causal language model."),
    "audit-unlearning": (
        _MODELS,
        "Audit an unlearned model against the original: does it still know the texts?",
    ),
    "datasets": (
        _MODELS,
        "List the datasets that an experiment can spike in, and the sources of its background.",
    ),
    "detectors": (
        _MODELS,
        "List the detectors: what each must see of a model, what it needs and costs, and its "
        "paper.",
    ),
    "gc": (
        _HOUSEKEEPING,
        "Remove artifacts that no run needs, and what killed runs left behind.",
    ),
}
"""Each command's panel and the first line of its help: all that a list of commands shows. The
command itself is the function of that name in the module of that name, `_` for `-`, and is imported
when it is called: the options of all commands took a third of what `spikein --help` costs."""


class _Commands(TyperGroup):
    """The commands: listed by their first lines, imported when they are called."""

    def __init__(self, **settings: Any) -> None:
        """List all commands."""
        super().__init__(**settings)
        self.commands = {
            name: TyperCommand(name=name, help=line, rich_help_panel=panel)
            for name, (panel, line) in _COMMANDS.items()
        }

    # Typer brings its own click, whose Context and Command have no public name.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called, whole."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, None if listed is None or name is None else whole_command(name), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; bad input and Ctrl-C end it in words."""
        try:
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
                raise
            print_error(refusal)
            raise typer.Exit(2) from None


def _machine_refusal(error: Exception) -> str | None:
    """Say what the machine refused: no space, no permission; None for a defect of ours."""
    from spikein.store.filesystem import disk_full
    from spikein.store.folder_check import read_only

    where = getattr(error, "filename", None)
    place = f"{where}: " if where else ""
    if disk_full(error):
        return f"{place}the disk is full. Free some space, then run the same command to go on."
    if read_only(error) and isinstance(error, OSError) and where:
        return f"{place}{error.strerror}."
    return None


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
    """Return a command with its options and its help in full."""
    own = name.replace("-", "_")
    function = getattr(import_module(f"spikein.cli.commands.{own}"), own)
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, rich_help_panel=_COMMANDS[name][0])(function)
    return get_command(alone)


def _version(asked: bool) -> None:
    if asked:
        import spikein

        say(f"spikein {spikein.__version__}")
        raise typer.Exit


@app.callback()
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

    No download, no GPU, a few minutes; and a report at the end.
    """


def main() -> None:
    """Run the command line; the entry point of `spikein`."""
    if sys.stdout.encoding and sys.stdout.encoding.lower() not in ("utf-8", "utf8"):
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
    app()


if __name__ == "__main__":
    main()
