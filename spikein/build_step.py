"""Build one step of a graph by hand: `python -m spikein.build_step GRAPH STEP`.

GRAPH is the file that a run wrote for its workers, in a folder of `STORE/.runs`. The step is built
in the graph's store as a worker builds it, with the same checks and in the same working folder, but
in this terminal: with its messages, its traceback and optionally a debugger. The inputs must be in
the store; a stored step is not built again.
"""

import argparse
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from inject.errors import InputError, SpikeinError, unknown_name
from inject.helper_processes import usable_cores
from inject.step import Step
from spikein.cli.output import print_error
from spikein.executors.graph_file import GRAPH_FILE, StoredGraph, parse_graph
from spikein.executors.task import build_stored
from spikein.progress import Lines

_EXAMPLE = f"""example:
  python -m spikein.build_step store/.runs/RUN/{GRAPH_FILE} "audit fixed-2-seed0"
"""


def open_graph(path: Path) -> StoredGraph:
    """Return the graph of a file.

    Raises:
        InputError: for a file that cannot be read or contains no graph.
        SpikeinError: when someone edited what determines a step's content.
    """
    try:
        return parse_graph(path.read_bytes())
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"is not a graph of a run: {type(error).__name__}: {error}",
            where=str(path),
            allowed=f"the file {GRAPH_FILE} in a folder of STORE/.runs",
        ) from error


def find_step(graph: StoredGraph, text: str) -> Step:
    """Return the step that a text names.

    Args:
        graph: the graph with the step.
        text: the step's digest, its first characters, or `kind label`.

    Raises:
        InputError: when no step or several match.
    """
    steps = graph.steps.values()
    matches = [step for step in steps if step.name == text]
    matches = matches or [step for step in steps if text and step.digest.startswith(text)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        matching_steps = ", ".join(f"{step.digest[:12]} ({step.name})" for step in matches)
        raise InputError(f"{text!r} names {len(matches)} steps", allowed=matching_steps)
    raise unknown_name(f"the graph has no step {text!r}", text, [step.name for step in steps])


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the step, and print the folder of its artifact; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m spikein.build_step",
        description="Build one step of a run's graph in the graph's store, in this process.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("graph", metavar="GRAPH", type=Path, help=f"STORE/.runs/RUN/{GRAPH_FILE}")
    parser.add_argument("step", metavar="STEP", help="digest or its beginning, or 'kind label'")
    parsed = parser.parse_args(arguments)
    try:
        graph = open_graph(parsed.graph)
        step = find_step(graph, parsed.step)
        progress, threads = Lines(sys.stderr, verbose=True), len(usable_cores())
        outcome = build_stored(graph, step, progress, threads=threads)
    except SpikeinError as error:
        print_error("\n".join([str(error), *getattr(error, "__notes__", [])]))
        return error.exit_code
    except Exception:
        traceback.print_exc()
        return 1
    print(outcome.artifact.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
