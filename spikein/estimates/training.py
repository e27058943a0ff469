"""Estimate the training of an experiment's models: steps, operations, memory, disk, GPU-hours.

Only from settings: no data, weights or network are needed. A model of unknown size is reported with
the reason instead of a guess.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from inject.errors import InputError, unknown_name
from spikein.config.copy_checkpoints import with_counted_steps
from spikein.config.schema import Experiment
from spikein.config.sweep import ArmExperiment
from train.cost import MEMORY, PEAKS, STAGES, UTILISATION, RunCost, model_states, run_cost
from train.models.model_sizes import known_sizes
from train.schedule import kept_steps, step_count
from train.settings import TrainSettings

PROCESSOR_FLOPS = 2e15
"""Operations of about two days on a processor of two cores, at 10 GFLOP/s."""


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The GPUs that a plan assumes.

    Raises:
        InputError: for a GPU that is not in the table, no GPU at all, or a share beyond 1.
    """

    gpu: str = "h100"
    """One of `train.cost.PEAKS`."""
    gpus: int = 8
    """Number that share the work and, under ZeRO, the model states."""
    utilisation: float = UTILISATION
    """Share of the peak that is reached."""

    def __post_init__(self) -> None:
        if self.gpu not in PEAKS:
            problem = f"no figures for a GPU called {self.gpu!r}"
            raise unknown_name(problem, self.gpu, PEAKS, where="--gpu")
        if self.gpus < 1:
            raise InputError(f"{self.gpus} GPUs", where="--gpus", allowed="1 or more")
        if not 0 < self.utilisation <= 1:
            raise InputError(
                f"{self.utilisation:g} of the peak cannot be reached",
                where="--mfu",
                allowed="more than 0, at most 1",
            )

    @property
    def memory(self) -> float:
        """Bytes of one GPU."""
        return MEMORY[self.gpu]


@dataclass(frozen=True, kw_only=True)
class TrainingEstimate:
    """Cost of one kind of training run; its `runs` differ only in seeds or rates."""

    what: str
    """`base`, the mode of the arms, or `twins` of the arms."""
    runs: int
    windows: int
    """Windows of one forward pass on one GPU."""
    steps: int
    tokens: int
    cost: RunCost | None
    """None if the model's sizes are not known."""
    states: tuple[float, ...]
    """Bytes of the model states on one GPU by stage of ZeRO, 0 to 3."""
    note: str
    """Source of the sizes, or why there are none."""
    models: int = 1
    """Models that a run saves: the trained one, and its scored checkpoints."""

    def memory(self, stage: int) -> float:
        """Return the bytes that one GPU needs at a stage of ZeRO."""
        activations = 0.0 if self.cost is None else self.cost.activations
        return self.states[stage] + activations


def training_estimates(
    arms: Sequence[ArmExperiment], hardware: Hardware
) -> tuple[TrainingEstimate, ...]:
    """Return the cost of an experiment's training runs, equal ones counted together.

    Args:
        arms: its arms.
        hardware: the GPUs.
    """
    estimates: Counter[TrainingEstimate] = Counter()
    bases = set()
    clean = set()
    for arm in arms:
        experiment = with_counted_steps(arm.experiment)
        base = experiment.base
        if base is not None:
            settings = base.resolved(experiment.train)
            run = f"{experiment.model!r} {base!r} {settings!r}"
            if run not in bases:
                bases.add(run)
                estimates[_estimate("base", experiment, settings, base.tokens, hardware)] += 1
        train, tokens = experiment.train, experiment.corpus.tokens
        estimates[_estimate(train.mode, experiment, train, tokens, hardware)] += 1
        twins = experiment.twins
        runs = twins.shadows + (experiment.forget_set is not None)
        # Arms that differ only in their copies share the clean twin.
        run = f"{experiment.model!r} {base!r} {train!r} {experiment.corpus!r} {arm.seed}"
        if twins.clean and run not in clean:
            clean.add(run)
            runs += 1
        # Twins keep no scored checkpoints.
        whole = train.model_copy(update={"checkpoints": None})
        if runs:
            estimates[_estimate("twins", experiment, whole, tokens, hardware)] += runs
    return tuple(replace(estimate, runs=number) for estimate, number in estimates.items())


def hardware_needed(estimates: Sequence[TrainingEstimate], *, gpus: int) -> Hardware | None:
    """Return the GPUs to plan for by default; None for this machine's processor.

    Args:
        estimates: of all training runs.
        gpus: the number on this machine.
    """
    costs = [
        estimate.runs * estimate.cost.flops for estimate in estimates if estimate.cost is not None
    ]
    on_processor = len(costs) == len(estimates) and sum(costs) <= PROCESSOR_FLOPS
    return None if on_processor and not gpus else Hardware()


def _estimate(
    label: str,
    experiment: Experiment,
    settings: TrainSettings,
    stream: int,
    hardware: Hardware,
) -> TrainingEstimate:
    n_windows = stream // settings.context
    steps = step_count(settings, n_windows)
    tokens = settings.epochs * n_windows * settings.context
    sizes = known_sizes(experiment.model)
    windows = -(-settings.batch_windows // hardware.gpus)
    estimate = TrainingEstimate(
        what=label,
        runs=1,
        windows=windows,
        steps=steps,
        tokens=tokens,
        cost=None,
        states=(),
        note=_explain_unknown(experiment),
    )
    if sizes is None:
        return estimate
    cost_of = partial(
        run_cost,
        sizes.shape,
        sizes.vocabulary,
        settings,
        experiment.training_runtime,
        tokens=tokens,
        peak=PEAKS[hardware.gpu],
        utilisation=hardware.utilisation,
    )
    cost = cost_of()
    states = tuple(
        model_states(cost.parameters, trained=cost.trained, stage=stage, gpus=hardware.gpus)
        for stage in STAGES
    )
    # As many windows at once as fit at the stage with most free memory; gradients accumulate.
    room = int((hardware.memory - states[-1]) // cost.activations)
    fitting = experiment.training_runtime.micro_batch_windows or max(1, min(windows, room))
    return replace(
        estimate,
        windows=fitting,
        cost=cost_of(windows=fitting),
        states=states,
        note=f"{cost.parameters:,} parameters, by {sizes.source}",
        models=1 + len(kept_steps(settings, stream)),
    )


def _explain_unknown(experiment: Experiment) -> str:
    model = experiment.model
    if model.pretrained is not None:
        return (
            f"the sizes of {model.pretrained} are unknown here, so operations and memory are not "
            "estimated; give a local folder with its config.json"
        )
    return (
        f"the vocabulary of the tokenizer {model.tokenizer} is not known before it is loaded, so "
        "operations and memory are not estimated"
    )
