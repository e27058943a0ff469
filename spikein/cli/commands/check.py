"""`spikein check`: check a run, and print the design of its arms, without executing it."""

from math import inf
from typing import TYPE_CHECKING

from spikein.cli.options import STORE, ExperimentFile, Overrides, StoreFolder
from spikein.cli.output import exit_if_refused, print_notes, print_rows, say, with_noun

if TYPE_CHECKING:
    from spikein.estimates.design import StudyDesign

_COLUMNS = ("steps", "batch", "tail")
MOST_SHARE = 0.02
"""Copies should not take more of the tokens of an arm that a claim is about."""


def check(file: ExperimentFile, overrides: Overrides = None, store: StoreFolder = STORE) -> None:
    """Check an experiment file, its data and the room for its copies; run nothing.

    The command checks everything that a run needs: every key of every combination of the sweep, in
    the file and in those it extends; the files of the background; the rows, fields and templates
    of the datasets; whether enough rows are usable and the copies fit; devices, packages, models,
    tokenizers and the store. Exit code 2 means that a run would be refused here.

    With several arms the command prints their design: what each sets, the tokens after its last
    copy, its copies' share of the tokens, and the variance inflation of the design's columns.

    [bold]Examples[/]

      spikein check my.yaml

      spikein check my.yaml copies.fixed=64 train.context=512
    """
    from spikein.api.plan import plan as plan_experiment

    result = plan_experiment(file, overrides=overrides or (), store=store, thorough=True)
    print_notes([*result.notes, *(estimate.note for estimate in result.injection if estimate.note)])
    unknown = [f"{name} is unknown here: {why}" for name, why in result.unresolved.items()]
    exit_if_refused([*result.problems, *unknown])
    if result.design is not None:
        _print_design(result.design)
    say(
        f"{file}: nothing wrong was found; {with_noun(result.arms, 'arm')}, "
        f"{with_noun(len(result.rows), 'step')}. Nothing was run."
    )


def _print_design(design: "StudyDesign") -> None:
    """Print one row per arm, and the rank and the variance inflation of the columns."""
    from analysis.arm import short_axis

    titles = [short_axis(axis) for axis in design.axes]
    if len({*titles, *_COLUMNS, "arm", "share"}) < len([*titles, *_COLUMNS]) + 2:
        titles = list(design.axes)
    print_rows(
        {
            "arm": name if design.named else None,
            **{title: row[axis] for axis, title in zip(design.axes, titles, strict=True)},
            **{column: row[column] for column in _COLUMNS},
            "share": None if (share := design.shares[name]) is None else f"{share:.1%}",
        }
        for name, row in design.rows.items()
    )
    print_rows(
        {
            "columns of": title,
            "rank": f"{matrix.rank} of {matrix.size}",
            "variance inflation": ", ".join(
                f"{column} {'infinite' if value == inf else f'{value:.1f}'}"
                for column, value in matrix.inflation.items()
            ),
        }
        for title, matrix in design.matrices.items()
    )
    print_notes(
        f"{title}: {column} is a combination of {', '.join(others)}; their effects cannot be "
        "separated."
        for title, matrix in design.matrices.items()
        for column, others in matrix.aliased.items()
    )
    above = [name for name, share in design.shares.items() if (share or 0) > MOST_SHARE]
    if above and design.claimed:
        say(f"Copies are more than {MOST_SHARE:.0%} of the tokens in: {', '.join(above)}.")
