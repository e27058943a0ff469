"""A benchmark: a bundle with models whose labels only its organiser has.

The models of one seed are held out. In the public bundle they are `unlabelled`: the statistics of
their texts under the contaminated model, its reference and its shadow models. What depends on the
sides is removed: exposures, stored scores, twins, sides and splits, the order of rows, and the
names of artifacts. The seed is removed as well, since anyone could draw the sides again from it.
The organiser's bundle has these models complete.

The run's identity and time are not in the public bundle, so that two builds have one content.
"""

import re
from collections.abc import Mapping

from detect.ground_truth.ground_truth import (
    CONTAMINATED,
    RETRAINED,
    TWIN,
    Description,
    ModelTables,
)
from inject.errors import InputError

WITHHELD = -1
"""The seed of unlabelled models."""
LEAST_SEED = 1 << 48
"""Smaller seeds can be found by trying all of them."""
_EVIDENCE = re.compile(r"view-.*|reference|frequency|\d+-(shadow|membership)")
"""Inputs of the scores that depend on no side of the scored model."""


def withhold_labels(
    described: Description, seed: int
) -> tuple[Description, Description, Mapping[str, str]]:
    """Return the public description, the organiser's, and unlabelled artifacts with their sources.

    Args:
        described: description of the run.
        seed: the seed whose models are held out.

    Raises:
        InputError: a seed that can be guessed, or that leaves no model on one of the two sides.
    """
    arms = {model.seed for model in described.models if model.model == CONTAMINATED}
    if seed not in arms or len(arms) < 2 or seed < LEAST_SEED:
        raise InputError(
            f"cannot hold out the seed {seed}",
            where="--hold-out",
            allowed=f"one of two or more seeds of the run, which has {sorted(arms)}; at least "
            f"{LEAST_SEED}, since anyone who guesses it can draw the members again",
            hint="Run with a random seed: python -c 'import secrets; print(secrets.randbits(62))'.",
        )
    held_out = tuple(model for model in described.models if model.seed == seed)
    # A twin may be the arm's reference (`detect.reference`); its statistics would reveal the sides.
    of_twins = {
        name
        for model in held_out
        if model.model in (TWIN, RETRAINED)
        for role, name in model.inputs.items()
        if role.startswith("view-")
    }
    names: dict[str, str] = {}

    def rename(name: str) -> str:
        kind = name.partition("/")[0]
        return names.setdefault(name, f"{kind}/unlabelled-{len(names):04d}")

    def hide(model: ModelTables) -> ModelTables:
        inputs = {
            role: name if role == "frequency" else rename(name)
            for role, name in sorted(model.inputs.items())
            if _EVIDENCE.fullmatch(role) and name not in of_twins
        }
        places = {"scores": rename(model.scores), "examples": rename(model.examples)}
        return model.model_copy(
            update={"seed": WITHHELD, "trained": None, "inputs": inputs, **places}
        )

    public_models = tuple(model for model in described.models if model.seed != seed)
    seeds = "".join(f"- {other}\n" for other in sorted(arms - {seed}))
    origin = described.provenance.model_copy(update={"run": "", "finished": "", "artifacts": ()})
    public = described.model_copy(
        update={
            "models": public_models,
            "unlabelled": tuple(hide(model) for model in held_out if model.model == CONTAMINATED),
            "experiment": re.sub(
                r"(?m)^seeds:\n(?:- .*\n)+", f"seeds:\n{seeds}", described.experiment
            ),
            "provenance": origin,
        }
    )
    organiser = described.model_copy(update={"models": held_out})
    return public, organiser, {new: name for name, new in names.items()}
