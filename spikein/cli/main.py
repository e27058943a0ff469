"""The command `spikein`: its commands, and how they end.

Exit codes: 0 done; 2 bad input, a failed audit, or a machine that refuses (no space, no
permission), reported without a traceback; 3 some steps failed and all others were finished; 130
interrupted; 143 ended by SIGTERM, with a checkpoint where a model was being trained; 1 a defect of
ours, with its traceback. Nothing heavy is imported before a command runs.
"""

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from inject.errors import SpikeinError
from spikein.cli.commands import (
    audit,
    bundle,
    check,
    compare,
    datasets,
    detect,
    detectors,
    executors,
    export,
    gc,
    init,
    plan,
    report,
    run,
    status,
    validate,
)
from spikein.cli.output import print_error, say


class _Commands(TyperGroup):
    # Typer brings its own click, whose Context has no public name.
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

_EXPERIMENT_PANEL = "Experiments"
_MODEL_PANEL = "Any model, any file"
_STORE_PANEL = "Housekeeping"

app.command("init", rich_help_panel=_EXPERIMENT_PANEL)(init.init)
app.command("run", rich_help_panel=_EXPERIMENT_PANEL)(run.run)
app.command("check", rich_help_panel=_EXPERIMENT_PANEL)(check.check)
app.command("plan", rich_help_panel=_EXPERIMENT_PANEL)(plan.plan)
app.command("status", rich_help_panel=_EXPERIMENT_PANEL)(status.status)
app.command("report", rich_help_panel=_EXPERIMENT_PANEL)(report.report)
app.command("compare", rich_help_panel=_EXPERIMENT_PANEL)(compare.compare)
app.command("audit", rich_help_panel=_EXPERIMENT_PANEL)(audit.audit)
app.command("export", rich_help_panel=_EXPERIMENT_PANEL)(export.export)
app.command("validate", rich_help_panel=_EXPERIMENT_PANEL)(validate.validate)
app.command("bundle", rich_help_panel=_EXPERIMENT_PANEL)(bundle.bundle)
app.command("executors", rich_help_panel=_EXPERIMENT_PANEL)(executors.executors)
app.command("detect", rich_help_panel=_MODEL_PANEL)(detect.detect)
app.command("datasets", rich_help_panel=_MODEL_PANEL)(datasets.datasets)
app.command("detectors", rich_help_panel=_MODEL_PANEL)(detectors.detectors)
app.command("gc", rich_help_panel=_STORE_PANEL)(gc.gc)


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
