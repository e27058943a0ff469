"""`spikein bundle`: the ground truth of a run as a folder that can be published."""

from pathlib import Path
from typing import Annotated

from spikein.cli.options import RUNS, RunName, RunsFolder, RunStore, option
from spikein.cli.output import say, warn


def bundle(
    run: RunName,
    out: Annotated[
        Path,
        option("--out FOLDER", "The folder to write."),
    ],
    arm: Annotated[
        str | None,
        option("--arm LABEL", "Pack one arm alone; all otherwise."),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Pack the ground truth of a run into a folder for others.

    Inside: who is a member and how often each was seen, all that detectors were given (of the
    arms, the base model, twins and shadow models; held-out rows, shots and what models wrote,
    too), and the scores of all detectors; no model. Texts of protected datasets stay behind.
    [cyan]spikein validate[/] takes the folder as it takes a run.

    [bold]Examples[/]

      spikein bundle quickstart --out quickstart.bundle

      spikein bundle quickstart --arm 'lr 0.0015' --out one-arm.bundle
    """
    from inject.files import human_bytes
    from spikein.api.ground_truth import bundle as pack

    facts = pack(run, out, arm=arm, runs=runs, store=store)
    if facts.withheld:
        warn(
            f"{facts.withheld:,} of {facts.rows:,} rows are protected: their texts are not inside."
        )
    say(f"{facts.models} models, {facts.rows:,} rows, {human_bytes(facts.size)}.")
    say(f"Content: {facts.content}")
    say(f"Bundle: {out}", style="bold")
