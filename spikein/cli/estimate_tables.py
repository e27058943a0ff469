"""The tables of `spikein plan` about training: steps, operations, memory, disk, GPU-hours."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spikein.cli.output import print_table, say, short_number

if TYPE_CHECKING:
    from spikein.estimates.training import Hardware, TrainingEstimate


def print_estimates(every: "Sequence[TrainingEstimate]", hardware: "Hardware") -> None:
    """Print steps, operations, memory of a GPU by stage of ZeRO, disk and GPU-hours."""
    from spikein.store.filesystem import human_bytes

    stages = [f"ZeRO-{stage}" for stage in range(4)]
    say("")
    print_table(
        (
            "training",
            "runs",
            "steps",
            "tokens",
            "FLOPs",
            *(f"a GPU, {stage}" for stage in stages),
            "disk",
            "GPU-hours",
        ),
        (
            (
                one.what,
                one.runs,
                one.steps,
                short_number(one.tokens),
                *(
                    ("", *("" for _ in stages), "", "")
                    if one.cost is None
                    else (
                        short_number(one.cost.flops),
                        *(human_bytes(one.memory(stage)) for stage in range(len(stages))),
                        human_bytes(one.cost.disk * one.models),
                        _hours(one.cost.gpu_seconds / 3600),
                    )
                ),
            )
            for one in every
        ),
    )
    for note in dict.fromkeys(f"{one.what}: {one.note}" for one in every):
        say(note)
    known = [one for one in every if one.cost is not None]
    if known:
        say(
            f"Assumed: {hardware.gpus} GPUs {hardware.gpu.upper()} "
            f"({human_bytes(hardware.memory)}), {hardware.utilisation:.0%} of their peak in "
            f"bfloat16, {_windows(known)} at once on each. Choose with --gpu, --gpus, --mfu."
        )
        total = sum(one.runs * one.cost.gpu_seconds for one in known if one.cost is not None) / 3600
        say(f"All training: {_hours(total)} GPU-hours.")
    for one in known:
        fitting = [stage for stage, _ in enumerate(stages) if one.memory(stage) <= hardware.memory]
        if not fitting:
            say(
                f"{one.what}: fits no stage of ZeRO on {hardware.gpus} such GPUs; more GPUs, "
                "train.checkpointing, CPU offload or mode: lora need less."
            )
        elif fitting[0] > 0:
            say(f"{one.what}: fits from {stages[fitting[0]]} on.")


def print_unresolved(unresolved: Mapping[str, str]) -> None:
    """Print what could not be resolved without a network: one reason usually stands for all."""
    if not unresolved:
        return
    reason = next(iter(unresolved.values())).rstrip(".")
    say(f"The network cannot be reached: {reason}.")
    say(
        f"Not checked for this reason: {', '.join(unresolved)}. A run needs them; steps made of "
        "them count as to do."
    )


def _windows(known: "Sequence[TrainingEstimate]") -> str:
    numbers = sorted({one.windows for one in known})
    text = " or ".join(str(number) for number in numbers)
    return f"{text} window{'' if numbers == [1] else 's'}"


def _hours(hours: float) -> str:
    return f"{hours:,.1f}" if hours >= 0.1 else f"{hours:.2g}"
