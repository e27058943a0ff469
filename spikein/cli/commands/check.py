"""`spikein check`: whether an experiment can be run, and all that is wrong; runs nothing."""

from spikein.cli.options import STORE, ExperimentFile, Overrides, StoreFolder
from spikein.cli.output import exit_if_refused, print_notes, say, with_noun


def check(file: ExperimentFile, overrides: Overrides = None, store: StoreFolder = STORE) -> None:
    """Check an experiment file, its data and whether its copies fit; run nothing.

    Checked is all that a run needs: every key of every combination of the sweep, in the file and
    in those it extends; the files of the background; the rows, fields and templates of the
    datasets; devices, packages and tokenizers. Exit code 2 means that a run would be refused.

    [bold]Examples[/]

      spikein check my.yaml

      spikein check my.yaml copies.fixed=64 train.context=512
    """
    from spikein.api.plan import plan
    from spikein.cli.estimate_tables import print_unresolved

    result = plan(file, overrides=overrides or (), store=store, thorough=True)
    print_unresolved(result.unresolved)
    print_notes([*result.notes, *(one.note for one in result.injection if one.note)])
    exit_if_refused(result.problems)
    say(
        f"{file}: nothing wrong was found; {with_noun(result.arms, 'arm')}, "
        f"{with_noun(len(result.rows), 'step')}. Nothing was run."
    )
