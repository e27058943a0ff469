"""Estimate the steps and the cost of a run; nothing is built.

Unreachable hubs are reported, and the plan continues without them. Cost: the time to name the
steps, which reads the sources; some seconds more if training is timed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from detect.evidence.needs import BASE, TWIN
from inject.corpus.named_tokenizer import load_named_tokenizer
from inject.errors import InputError, Unreachable
from inject.hub.resolver import without_network
from inject.overlap.corpus_step import require_background
from inject.step import Cost
from spikein.api.experiment import AnyExperiment, Overrides, naming_missing_data, read
from spikein.estimates.design import StudyDesign, study_design
from spikein.estimates.draws import draw_problems
from spikein.estimates.injection import InjectionEstimate, arm_estimates
from spikein.estimates.step_times import TrainingRate, measured_rate, step_seconds
from spikein.estimates.training import (
    Hardware,
    TrainingEstimate,
    hardware_needed,
    training_estimates,
)
from spikein.executors.pools.local import require_local_training, visible_gpus
from spikein.pipeline.build_graph import ExperimentGraph, build_graph
from spikein.pipeline.graph import Planned
from spikein.pipeline.graph import plan as plan_steps
from spikein.runs.trackers import check_trackers
from spikein.store.filesystem import (
    STORE_OPTION,
    AnyPath,
    check_folder,
    check_writable,
    store_folder,
)
from spikein.store.manifest import StoreError
from spikein.store.store import Store
from train.execution import require_installed
from train.models.model_tokenizer import tokenizer_place


@dataclass(frozen=True, kw_only=True)
class PlanRow(Cost):
    """One step of a plan, with its expected cost."""

    kind: str
    label: str
    stored: bool
    """Whether the step is already in the store."""
    state: str
    """The state as text: in the store, damaged, to do …"""
    problem: str | None = None
    """The damage, if any."""


@dataclass(frozen=True, kw_only=True)
class PlanResult:
    """The plan of a run."""

    name: str
    arms: int
    rows: tuple[PlanRow, ...]
    injection: tuple[InjectionEstimate, ...] = ()
    """Expected number and size of each arm's copies."""
    design: StudyDesign | None = None
    """What the arms differ in and can separate; None for one arm."""
    training: tuple[TrainingEstimate, ...] = ()
    """Expected cost of the training runs."""
    hardware: Hardware | None = None
    """The GPUs that this assumes; None if the processor of this machine is enough."""
    unresolved: Mapping[str, str] = field(default_factory=dict)
    """Names that need a network to look up, with the reason; not checked."""
    measured: TrainingRate | None = None
    """The training rate of this machine; None if not measured."""
    problems: tuple[str, ...] = ()
    """Problems that would stop a run, found in the rows of the datasets."""
    notes: tuple[str, ...] = ()
    """Parts that a run would skip, and names that could mean another file."""


def plan(
    experiment: AnyExperiment,
    *,
    overrides: Overrides = (),
    store: AnyPath | None = None,
    hardware: Hardware | None = None,
    measure: bool = False,
    draw: bool = False,
    thorough: bool = False,
) -> PlanResult:
    """Estimate the steps and the cost of a run; nothing is built.

    If a hub cannot be reached, the plan continues and lists the names that it could not look up.

    Args:
        experiment: an experiment file, a mapping of the same keys, or a checked experiment.
        overrides: values that replace those of the experiment, by dotted key.
        store: the folder of artifacts; `$SPIKEIN_STORE`, else `store`, when None.
        hardware: the GPUs to estimate training for; None for eight H100s, unless this machine
            has no GPU and its processor trains everything within days.
        measure: time a few training steps on this machine, to estimate how long steps take.
        draw: draw the pool and the copies as a run will, and try to write to the store.
        thorough: the same; also read the background's files, and look for devices, packages and
            compilers.

    Returns:
        A row for each step, with its cost if known, and what a run would refuse.

    Raises:
        InputError: for a bad experiment, or a source that cannot be read.

    Example:
        ```python
        import spikein

        planned = spikein.plan("quickstart")
        print(planned.arms, "arms;", sum(not row.stored for row in planned.rows), "steps to do")
        ```
    """
    store_root = store_folder(store)
    check_folder(store_root, STORE_OPTION)
    with without_network() as notes:
        checked = read(experiment, overrides)
        with naming_missing_data(checked):
            experiment_graph = build_graph(checked)
    artifacts = Store(store_root)
    experiments = [node.arm for node in experiment_graph.nodes]
    by_arm = arm_estimates(experiments, _tokenizer(experiment_graph, artifacts))
    injection = tuple(dict.fromkeys(by_arm))
    steps = plan_steps(experiment_graph.graph.complete(), artifacts)
    measured = (
        measured_rate(experiments)
        if measure and any(estimate.to_do for estimate in steps)
        else None
    )
    rows = []
    for planned in steps:
        cost = planned.step.cost or Cost()
        if measured is not None and cost.seconds is None:
            seconds = step_seconds(
                planned.step,
                sizes=measured[0],
                rate=measured[1],
                injection=injection,
                context=experiments[0].experiment.train.context,
            )
            cost = replace(cost, seconds=seconds)
        rows.append(
            PlanRow(
                kind=planned.step.kind,
                label=planned.step.label,
                stored=not planned.to_do,
                state=planned.in_words,
                problem=None
                if planned.problem is None
                else f"{planned.problem.where} {planned.problem.problem}",
                **vars(cost),
            )
        )
    estimated = [estimate.problem for estimate in injection if estimate.problem]
    problems = [*estimated, *(_machine_problems(experiment_graph) if thorough else ())]
    if (draw or thorough) and not (problems or notes):
        problems += _early_problems(experiment_graph, steps, store_root)
    training = training_estimates(experiments, hardware or Hardware())
    return PlanResult(
        name=experiment_graph.experiment.name,
        notes=tuple(experiment_graph.short_notes),
        arms=len(experiment_graph.nodes),
        rows=tuple(rows),
        injection=injection,
        design=study_design(experiments, by_arm),
        training=training,
        hardware=hardware or hardware_needed(training, gpus=len(visible_gpus())),
        measured=None if measured is None else measured[1],
        unresolved=notes,
        problems=tuple(dict.fromkeys(problems)),
    )


def _early_problems(
    experiment_graph: ExperimentGraph, steps: Sequence[Planned], store_root: Path
) -> Iterator[str]:
    """Yield what a run would refuse within its first steps, on any machine."""
    to_do = {planned.step.digest for planned in steps if planned.to_do}
    if to_do:
        try:
            check_writable(store_root, STORE_OPTION)
        except InputError as error:
            yield str(error)
    yield from draw_problems(
        [planned for planned in experiment_graph.nodes if planned.plan.digest in to_do]
    )


def _machine_problems(experiment_graph: ExperimentGraph) -> Iterator[str]:
    """Yield the problems of this machine, and of the background."""
    # Importing torch takes seconds, which a plan does not need.
    from detect.engine.target import load_tokenizer_and_context, usable_device

    checks: dict[str, Callable[[], object]] = {}
    for node in experiment_graph.nodes:
        experiment, corpus = node.arm.experiment, node.corpus
        detect, execution = experiment.detect, experiment.training_runtime
        checks[f"{execution!r}"] = partial(require_installed, execution)
        checks[f"{execution.trackers}"] = partial(check_trackers, execution.trackers)
        # The machines of a cluster have devices of their own.
        if experiment_graph.experiment.executor.kind in ("in-process", "local"):
            checks[f"device {detect.device}"] = partial(usable_device, detect.device)
            checks[f"training {execution!r}"] = partial(require_local_training, execution)
        named = detect.reference
        if named not in (None, BASE, TWIN) and Path(named).expanduser().is_dir():
            checks[f"reference {named}"] = partial(load_tokenizer_and_context, named)
        checks[corpus.digest] = partial(require_background, corpus)
    for check in checks.values():
        try:
            check()
        except Unreachable:
            continue
        except InputError as error:
            yield str(error)


def _tokenizer(experiment_graph: ExperimentGraph, store: Store) -> Any | None:
    """Return the experiment's tokenizer if it is already in the store or on this disk."""
    model = experiment_graph.experiment.model
    named = model.tokenizer or model.pretrained
    stored = None
    with suppress(StoreError):
        stored = store.find(
            experiment_graph.nodes[0].tokenizer.digest, kind="tokenizer", verify=True
        )
    if stored is not None:
        return load_named_tokenizer(str(stored.path))
    if isinstance(named, str) and Path(place := tokenizer_place(named)).is_dir():
        return load_named_tokenizer(place, trust_remote_code=model.trust_remote_code)
    return None
