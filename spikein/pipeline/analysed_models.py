"""The models that the results of an experiment are drawn from, beside the arms' own."""

from collections.abc import Mapping, Sequence

from detect.evidence.needs import TWIN
from detect.ground_truth.ground_truth import BASE
from inject.step import Step, StepGroup, axis_pairs
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.twin_models import Reported


def analysed_model(
    axes: Mapping[str, str],
    seed: int,
    model: str,
    steps: Mapping[str, Step | None],
    *,
    fixed_levels: bool = False,
) -> StepGroup:
    """Return a model as `results_step` takes it.

    Args:
        axes: its place in the sweep.
        seed: of its arm.
        model: `contaminated`, `base`, `twin` or `retrained`.
        steps: what the results read of it, by name.
        fixed_levels: whether each number of copies was given to as many groups as another.
    """
    values = {
        "axes": axis_pairs(axes),
        "seed": seed,
        "model": model,
        "fixed_levels": fixed_levels,
    }
    return StepGroup(values, steps)


def twin_arms(
    every: Sequence[tuple[ArmExperiment, Step, Sequence[Reported]]],
) -> list[StepGroup]:
    """Return the twins' scores, each once, under the axes whose value the arms that share it share.

    Args:
        every: each arm with its examples and its reported twins.
    """
    shared: dict[tuple[int, str, str], list[tuple[ArmExperiment, Step, Reported]]] = {}
    for arm, examples, twins in every:
        for one in twins:
            # Retrained models have copies, so each arm shows its own.
            own = one.scores.digest if one.model == TWIN else arm.label
            shared.setdefault((arm.seed, one.model, own), []).append((arm, examples, one))
    found = []
    for (seed, model, _), same in shared.items():
        first, examples, one = same[0]
        found.append(
            analysed_model(
                {
                    key: value
                    for key, value in first.labels.items()
                    if all(arm.labels[key] == value for arm, _, _ in same)
                },
                seed,
                model,
                {
                    "scores": one.scores,
                    "examples": examples,
                    "model": None if model == TWIN else one.twin.trained,
                },
            )
        )
    return found


def base_arms(every: Sequence[tuple[ArmExperiment, Step, Step | None]]) -> list[StepGroup]:
    """Return the base models' scores, each once.

    Where all arms of a seed share them, they stand for every value of the axes.

    Args:
        every: each arm with its examples and its base model's scores.
    """
    by_seed: dict[int, dict[str, tuple[ArmExperiment, Step, Step]]] = {}
    for arm, examples, scores in every:
        if scores is not None:
            by_seed.setdefault(arm.seed, {}).setdefault(scores.digest, (arm, examples, scores))
    shared = all(len(found) == 1 for found in by_seed.values())
    return [
        analysed_model(
            {} if shared else arm.labels, seed, BASE, {"scores": scores, "examples": examples}
        )
        for seed, found in by_seed.items()
        for arm, examples, scores in found.values()
    ]
