"""`spikein plan`: what a run would do and cost, without doing it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spikein.cli.options import (
    RUNS,
    STORE,
    ExperimentFile,
    Overrides,
    RunsFolder,
    StoreFolder,
    option,
)
from spikein.cli.output import (
    exit_if_refused,
    print_notes,
    print_table,
    say,
    short_number,
    with_noun,
)

if TYPE_CHECKING:
    from spikein.api.results import PlanResult
    from spikein.estimates.injection import InjectionEstimate


def plan(
    file: ExperimentFile,
    overrides: Overrides = None,
    store: StoreFolder = STORE,
    gpu: Annotated[
        str,
        option(
            "--gpu TEXT",
            "The GPU that training is estimated for: a100, h100, h200.",
            show_default=True,
        ),
    ] = "h100",
    gpus: Annotated[
        int, option("--gpus INTEGER", "How many of them share a training run.", show_default=True)
    ] = 8,
    mfu: Annotated[
        float,
        option("--mfu SHARE", "Share of their peak that training reaches.", show_default=True),
    ] = 0.4,
    measure: Annotated[
        bool,
        option(
            "--measure/--no-measure",
            "Time a few training steps here, to say how long each step will take.",
            show_default=True,
        ),
    ] = True,
    power: Annotated[
        bool,
        option("--power", "Say how many examples and seeds it takes to see a difference, instead."),
    ] = False,
    assume: Annotated[
        list[str] | None,
        option(
            "--assume KEY=VALUE",
            "With --power: what is assumed, such as [cyan]auc=0.65[/], [cyan]delta=0.05[/], "
            "[cyan]seed_deviation=0.02[/].",
        ),
    ] = None,
    from_run: Annotated[
        str | None,
        option("--from RUN", "With --power: a finished run whose own variances are assumed."),
    ] = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Say what a run will do and what it will cost; run nothing.

    The whole file is checked, every combination of its sweep included. Exit code 2 means that a
    run would be refused.

    [bold]Examples[/]

      spikein plan quickstart

      spikein plan my.yaml seeds=[0,1,2] corpus.tokens=2_000_000

      spikein plan frequency data=../data

      spikein plan min-k-table3 --gpu a100 --gpus 4

      spikein plan dose-response-160m --gpu h200 --gpus 1

      spikein plan quickstart --power --assume delta=0.05 --assume auc=0.65
    """
    if power:
        from spikein.api.power import power as plan_power
        from spikein.cli.power_table import print_power

        print_power(
            plan_power(
                file, overrides=overrides or (), assume=assume or (), from_run=from_run, runs=runs
            )
        )
        return
    if assume or from_run is not None:
        raise typer.BadParameter("--assume and --from belong to --power.")
    from spikein.api.plan import plan as plan_experiment
    from spikein.cli.estimate_tables import print_estimates, print_unresolved
    from spikein.estimates.training import Hardware
    from spikein.progress import duration
    from spikein.store.filesystem import human_bytes

    hardware = Hardware(gpu=gpu.lower(), gpus=gpus, utilisation=mfu)
    result = plan_experiment(
        file, overrides=overrides or (), store=store, hardware=hardware, measure=measure
    )
    print_table(
        ("step", "what", "state", "tokens", "FLOPs", "memory", "disk", "time"),
        (
            (
                row.kind,
                row.label,
                row.state,
                short_number(row.tokens),
                short_number(row.flops),
                _known(human_bytes, row.memory_bytes),
                _known(human_bytes, row.disk_bytes),
                _known(duration, row.seconds),
            )
            for row in result.rows
        ),
    )
    for row in result.rows:
        if row.problem is not None:
            say(f"Damaged: {row.problem}; a run builds it again.", style="yellow")
    _print_injection(result.injection)
    print_estimates(result.training, hardware)
    print_unresolved(result.unresolved)
    print_notes(result.notes)
    todo = [row for row in result.rows if not row.stored]
    seconds = sum(row.seconds or 0.0 for row in todo)
    disk = sum(row.disk_bytes or 0 for row in todo)
    parts = [
        f"{result.name}: {with_noun(result.arms, 'arm')}, {with_noun(len(result.rows), 'step')}, "
        f"{len(todo)} to do",
        _time(result, seconds),
        f"about {human_bytes(disk)} on disk" if disk else "",
    ]
    say("; ".join(part for part in parts if part) + ". Nothing was run.")
    exit_if_refused(result.problems)


def _time(result: "PlanResult", seconds: float) -> str:
    """Say how long the run will take on this machine, and how that is known."""
    from spikein.progress import duration

    if not seconds:
        return ""
    unknown = sum(row.seconds is None for row in result.rows if not row.stored)
    words = f"about {duration(seconds)} on this machine"
    if unknown:
        words += f", and {unknown} steps whose time is not known"
    rate = result.measured
    if rate is None:
        return words
    how = "" if rate.whole else ", on a smaller model"
    return (
        f"{words} ({rate.flops_per_second / 1e9:,.1f} GFLOP/s in {rate.steps} training steps on "
        f"its {rate.device}{how}; other work on the machine makes it longer)"
    )


def _print_injection(estimates: "tuple[InjectionEstimate, ...]") -> None:
    """Print what the copies of each arm will amount to."""
    from spikein.progress import duration
    from spikein.store.filesystem import human_bytes

    say("")
    print_table(
        (
            "injection",
            "placement",
            "members",
            "held out",
            "copies",
            "members with 0, 1, 2, 3, 4, 5+",
            "tokens",
            "share",
            "disk",
            "time",
        ),
        (
            (
                one.label or one.copies_rule,
                one.placement,
                one.members,
                one.held_out or None,
                f"{one.copies:,.0f}" + (f" ± {one.spread:,.0f}" if one.spread else ""),
                ", ".join(f"{members:,.0f}" for members in one.counts),
                ("" if one.measured or one.tokens is None else "~") + short_number(one.tokens),
                _known(_percent, one.share),
                _known(human_bytes, one.disk_bytes),
                duration(one.seconds),
            )
            for one in estimates
        ),
    )
    print_notes(one.note for one in estimates if one.note)
    if any(one.tokens is not None and not one.measured for one in estimates):
        say("~: estimated from the texts' bytes, as there is no tokenizer yet.")


def _known(written: Callable[[Any], str], value: float | None) -> str:
    """Return a number in words; nothing where it is not known."""
    return "" if value is None else written(value)


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else f"{share:.1e}"
