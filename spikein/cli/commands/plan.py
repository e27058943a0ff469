"""`spikein plan`: estimate a run without executing it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inject.files import human_bytes
from spikein.cli.options import (
    RUNS,
    STORE,
    ExperimentFile,
    Overrides,
    RunsFolder,
    StoreFolder,
    former_option,
    option,
    replace_former,
)
from spikein.cli.output import (
    exit_if_refused,
    print_notes,
    print_rows,
    say,
    short_number,
    time_in_words,
    with_noun,
)
from spikein.progress import duration

if TYPE_CHECKING:
    from spikein.api.plan import PlanResult
    from spikein.api.power import PowerResult
    from spikein.estimates.injection import InjectionEstimate
    from spikein.estimates.training import Hardware, TrainingEstimate


def plan(
    file: ExperimentFile,
    overrides: Overrides = None,
    store: StoreFolder = STORE,
    gpu: Annotated[
        str | None,
        option(
            "--gpu TEXT",
            "Estimate training on this GPU: a100, h100, h200.",
            show_default="h100; none if this machine has none and its processor is enough",
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        option("--gpus INTEGER", "Number of GPUs per training run.", show_default="8"),
    ] = None,
    mfu: Annotated[
        float | None,
        option("--mfu SHARE", "Share of peak FLOPs that training reaches.", show_default="0.4"),
    ] = None,
    time_training: Annotated[
        bool,
        option(
            "--time-training/--no-time-training",
            "Time a few training steps here, to estimate how long each step takes.",
            show_default=True,
        ),
    ] = True,
    power: Annotated[
        bool,
        option("--power", "Estimate instead the examples and seeds needed to detect a difference."),
    ] = False,
    assume: Annotated[
        list[str] | None,
        option(
            "--assume KEY=VALUE",
            "With --power: assume a value, such as [cyan]auc=0.65[/], [cyan]delta=0.05[/], "
            "[cyan]seed_deviation=0.02[/].",
        ),
    ] = None,
    from_run: Annotated[
        str | None,
        option("--from RUN", "With --power: assume the variances of this finished run."),
    ] = None,
    runs: RunsFolder = RUNS,
    former_measure: Annotated[
        bool | None, former_option("--measure/--no-measure", "--time-training")
    ] = None,
) -> None:
    """Estimate the steps and the cost of a run without executing it.

    The whole file is checked, with every combination of its sweep, and the members and copies are
    drawn as in a run. Exit code 2 means that a run would be refused. Names that cannot be looked
    up without a network are listed.

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

        _print_power(
            plan_power(
                file, overrides=overrides or (), assume=assume or (), from_run=from_run, runs=runs
            )
        )
        return
    if assume or from_run is not None:
        raise typer.BadParameter("--assume and --from need --power.")
    from spikein.api.plan import plan as plan_experiment
    from spikein.estimates.training import Hardware

    named: dict[str, Any] = {"gpu": gpu and gpu.lower(), "gpus": gpus, "utilisation": mfu}
    named = {name: value for name, value in named.items() if value is not None}
    result = plan_experiment(
        file,
        overrides=overrides or (),
        store=store,
        hardware=Hardware(**named) if named else None,
        measure=replace_former(time_training, former_measure, ("--measure", "--time-training")),
        draw=True,
    )
    print_rows(
        {
            "step": row.kind,
            "what": row.label,
            "state": row.state,
            "tokens": short_number(row.tokens),
            "FLOPs": short_number(row.flops),
            "memory": _format(human_bytes, row.memory_bytes),
            "disk": _format(human_bytes, row.disk_bytes),
            "time": _format(duration, row.seconds),
        }
        for row in result.rows
    )
    for row in result.rows:
        if row.problem is not None:
            say(f"Damaged: {row.problem}; a run builds it again.", style="yellow")
    _print_injection(result.injection)
    if result.hardware is None:
        _print_on_processor(result)
    else:
        _print_estimates(result.training, result.hardware)
    _print_unresolved(result.unresolved)
    print_notes(result.notes)
    todo = [row for row in result.rows if not row.stored]
    disk = sum(row.disk_bytes or 0 for row in todo)
    parts = [
        f"{result.name}: {with_noun(result.arms, 'arm')}, {with_noun(len(result.rows), 'step')}, "
        f"{len(todo)} to do",
        _time(result),
        f"about {human_bytes(disk)} on disk" if disk else "",
    ]
    say("; ".join(part for part in parts if part) + ". Nothing was run.")
    exit_if_refused(result.problems)


def _time(result: "PlanResult") -> str:
    """Return the expected time of the run on this machine, and the basis of the estimate."""
    seconds = [row.seconds for row in result.rows if not row.stored]
    if not any(seconds):
        return ""
    words, rate = time_in_words(seconds), result.measured
    if rate is None:
        return words
    model_note = "" if rate.whole else ", on a smaller model"
    return (
        f"{words} ({rate.flops_per_second / 1e9:,.1f} GFLOP/s in {rate.steps} training steps on "
        f"its {rate.device}{model_note}; other work on the machine makes it longer)"
    )


def _print_injection(estimates: "tuple[InjectionEstimate, ...]") -> None:
    """Print the number and size of each arm's copies."""
    say("")
    print_rows(
        {
            "injection": estimate.label or estimate.copies_rule,
            "placement": estimate.placement,
            "members": estimate.members,
            "held out": estimate.held_out or None,
            "copies": f"{estimate.copies:,.0f}"
            + (f" ± {estimate.spread:,.0f}" if estimate.spread else ""),
            "members with 0, 1, 2, 3, 4, 5+": ", ".join(
                f"{count:,.0f}" for count in estimate.counts
            ),
            "tokens": ("" if estimate.measured or estimate.tokens is None else "~")
            + short_number(estimate.tokens),
            "share": _format(_percent, estimate.share),
            "disk": _format(human_bytes, estimate.disk_bytes),
            "time": duration(estimate.seconds),
        }
        for estimate in estimates
    )
    print_notes(estimate.note for estimate in estimates if estimate.note)
    if any(estimate.tokens is not None and not estimate.measured for estimate in estimates):
        say("~: estimated from the texts' bytes, as there is no tokenizer yet.")


def _format(written: Callable[[Any], str], value: float | None, unknown: str = "") -> str:
    """Return a number in words."""
    return unknown if value is None else written(value)


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else f"{share:.1e}"


def _print_on_processor(result: "PlanResult") -> None:
    """Print the cost of training on this processor."""
    say("")
    print_rows(
        {
            **_size(estimate),
            "disk": human_bytes(estimate.cost.disk * estimate.models),
            "time": _format(
                duration, result.measured and estimate.cost.flops / result.measured.flops_per_second
            ),
        }
        for estimate in result.training
        if estimate.cost is not None
    )
    say(*dict.fromkeys(f"{estimate.what}: {estimate.note}" for estimate in result.training))
    time = "Time: of one run. " if result.measured else ""
    say(f"{time}On the processor of this machine; to estimate GPUs: --gpu h100 --gpus 1.")


def _size(estimate: "TrainingEstimate") -> dict[str, object]:
    return {
        "training": estimate.what,
        "runs": estimate.runs,
        "steps": estimate.steps,
        "tokens": short_number(estimate.tokens),
        "FLOPs": estimate.cost and short_number(estimate.cost.flops),
    }


def _print_estimates(estimates: "Sequence[TrainingEstimate]", hardware: "Hardware") -> None:
    """Print steps, operations, memory of a GPU by stage of ZeRO, disk and GPU-hours."""
    stages = [f"ZeRO-{stage}" for stage in range(4)]
    say("")
    print_rows(
        {
            **_size(estimate),
            **{
                f"a GPU, {name}": estimate.cost and human_bytes(estimate.memory(stage))
                for stage, name in enumerate(stages)
            },
            "disk": estimate.cost and human_bytes(estimate.cost.disk * estimate.models),
            "GPU-hours": estimate.cost and _hours(estimate.cost.gpu_seconds / 3600),
        }
        for estimate in estimates
    )
    say(*dict.fromkeys(f"{estimate.what}: {estimate.note}" for estimate in estimates))
    sized = [estimate for estimate in estimates if estimate.cost is not None]
    if sized:
        say(
            f"Assumed: {hardware.gpus} GPUs {hardware.gpu.upper()} "
            f"({human_bytes(hardware.memory)}), {hardware.utilisation:.0%} of their peak in "
            f"bfloat16, {_windows(sized)} at once on each. Choose with --gpu, --gpus, --mfu."
        )
        total = sum(
            estimate.runs * estimate.cost.gpu_seconds for estimate in sized if estimate.cost
        )
        say(f"All training: {_hours(total / 3600)} GPU-hours.")
    for estimate in sized:
        fitting = [
            stage for stage, _ in enumerate(stages) if estimate.memory(stage) <= hardware.memory
        ]
        if not fitting:
            say(
                f"{estimate.what}: fits no stage of ZeRO on {hardware.gpus} such GPUs; use more "
                "GPUs, training_runtime.gradient_checkpointing, CPU offload or mode: lora."
            )
        elif fitting[0] > 0:
            say(f"{estimate.what}: fits from {stages[fitting[0]]} on.")


def _print_unresolved(unresolved: Mapping[str, str]) -> None:
    """Print the names that need a network to resolve; one reason usually covers all."""
    if not unresolved:
        return
    reason = next(iter(unresolved.values())).rstrip(".")
    say(f"The network cannot be reached: {reason}.")
    say(
        f"Not checked for this reason: {', '.join(unresolved)}. A run needs them; steps made of "
        "them count as to do."
    )


def _windows(estimates: "Sequence[TrainingEstimate]") -> str:
    numbers = sorted({estimate.windows for estimate in estimates})
    text = " or ".join(str(number) for number in numbers)
    return f"{text} window{'' if numbers == [1] else 's'}"


def _hours(hours: float) -> str:
    return f"{hours:,.1f}" if hours >= 0.1 else f"{hours:.2g}"


def _print_power(result: "PowerResult") -> None:
    """Print both tables and a sentence."""
    from spikein.api.power import PowerAssumptions

    values = {"delta": result.delta, **vars(result.assumed)}
    print_rows(
        {
            "assumed": name,
            "value": f"{values[name]:.3g}",
            "what": field.description,
            "from": result.sources[name],
        }
        for name, field in PowerAssumptions.model_fields.items()
    )
    say("")
    auc, delta = f"AUC {result.assumed.auc:g}", f"{result.delta:g}"
    print_rows(
        {
            "seeds": row.seeds,
            f"power: {auc} against 0.5": f"{row.auc_power:.0%}",
            f"power: difference {delta}": f"{row.difference_power:.0%}",
            "AUC seen": _format("{:.3f}".format, row.seen_auc, "none"),
            "difference seen": _format("{:.3f}".format, row.seen_difference, "none"),
            f"members for {auc}": _format("{:,}".format, row.needed_for_auc, "none"),
            f"members for {delta}": _format("{:,}".format, row.needed_for_difference, "none"),
        }
        for row in result.rows
    )
    say(
        f"{result.name}: {result.members:,} members in the file, of which about "
        f"{result.tested:,.0f} are tested and have a copy; {with_noun(result.seeds, 'seed')}. Seen "
        "and needed: with 80 % power. Members: in the file, all datasets together, non-members in "
        "proportion; none: the seeds differ too much for any number."
    )
    say(
        "With one or two seeds the interval covers only the models at hand, so those rows ignore "
        "the variation between seeds. Other values: --assume KEY=VALUE, --from RUN. Nothing was "
        "run."
    )
