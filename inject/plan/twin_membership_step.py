"""The step that writes the pool as a twin sees it (`inject.examples.twin_membership`)."""

from inject.examples.example import (
    read_examples,
    read_held_out,
    write_examples,
    write_held_out,
)
from inject.examples.parts import OF_EXAMPLES
from inject.examples.twin_membership import TwinMembership, with_twin_membership
from inject.plan.plan import read_plan
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.step import Step, StepContext


def twin_membership_step(
    examples: Step, membership: TwinMembership, *, seed: int, plan: Step | None = None
) -> Step:
    """Write the pool again, `side` being `member` for those whom the twin sees.

    Held-out rows are copied: no twin may see them either, which its audit finds out.

    Args:
        examples: the arm's pool.
        membership: which twin it is.
        seed: the arm's seed.
        plan: the arm's own plan; read where the forget set goes by numbers of copies.
    """
    counted = membership.forget is not None and membership.forget.copies is not None
    if counted and plan is None:
        raise TypeError("a forget set by copies needs the arm's plan")
    return Step(
        kind="examples",
        label=f"{membership.label()}-seed{seed}",
        function=f"{__name__}:build",
        settings={"membership": membership.identity(), "seed": seed},
        inputs={"examples": examples, **({"plan": plan} if counted and plan else {})},
        libraries=("unicode",),
        facets=OF_EXAMPLES,
        execution={"membership": plain(membership)},
    )


def build(context: StepContext) -> None:
    """Write the rows with the sides that hold for the twin."""
    membership = TwinMembership.model_validate(context.execution["membership"])
    folder = context.inputs["examples"]
    pool = read_examples(folder)
    plan = context.inputs.get("plan")
    copies = None if plan is None else read_plan(plan).realised()
    with unchanged("unlearning.forget.ids", membership.identity, context.settings["membership"]):
        seen = with_twin_membership(pool, membership, seed=context.settings["seed"], copies=copies)
    write_examples(context.out, seen)
    write_held_out(context.out, read_held_out(folder))
