"""Steps that write a pool again for other models: other sides, or other words."""

from dataclasses import replace

from inject.errors import InputError
from inject.examples.example import (
    OF_EXAMPLES,
    read_examples,
    read_held_out,
    write_examples,
    write_held_out,
)
from inject.examples.forget_set import MemberSelection, forgotten_rows, select_members
from inject.examples.twin_membership import TwinMembership, twin_members, with_twin_membership
from inject.plan.plan import read_plan
from inject.reading.change_guard import unchanged
from inject.settings import plain
from inject.step import Step, StepContext

RELEARNING_DRAW = 2
"""Which draw of a share the part that is learned again is."""


def twin_membership_step(
    examples: Step, membership: TwinMembership, *, seed: int, plan: Step | None = None
) -> Step:
    """Write the pool again, `side` being `member` for those whom the twin sees.

    Held-out rows are copied: no twin may see them either, which its audit finds out.

    Args:
        examples: the arm's pool.
        membership: which twin it is.
        seed: the arm's seed.
        plan: the arm's own plan; read if the forget set selects by copy count.
    """
    counted = membership.forget is not None and membership.forget.copies is not None
    if counted and plan is None:
        raise TypeError("a forget set by copies needs the arm's plan")
    return Step(
        kind="examples",
        label=f"{membership.label()}-seed{seed}",
        function=f"{__name__}:write_membership",
        settings={"membership": membership.identity(), "seed": seed},
        inputs={"examples": examples, **({"plan": plan} if counted and plan else {})},
        libraries=("unicode",),
        facets=OF_EXAMPLES,
        execution={"membership": plain(membership)},
    )


def write_membership(context: StepContext) -> None:
    """Write the rows with the sides of the twin."""
    membership = TwinMembership.model_validate(context.execution["membership"])
    folder = context.inputs["examples"]
    pool = read_examples(folder)
    plan = context.inputs.get("plan")
    copies = None if plan is None else read_plan(plan).realised()
    with unchanged("unlearning.forget.ids", membership.identity, context.settings["membership"]):
        inside = twin_members(pool, membership, seed=context.settings["seed"], copies=copies)
    write_examples(context.out, with_twin_membership(pool, inside))
    write_held_out(context.out, read_held_out(folder))


def relearned_step(share: float, examples: Step, membership: Step, *, seed: int) -> Step:
    """Write the pool with those as members whom models learn again, of the forget set.

    Args:
        share: of the forget set.
        examples: the arm's pool.
        membership: the pool, with those as members whom the retrained model sees.
        seed: the arm's seed.
    """
    return Step(
        kind="examples",
        label=f"relearned-{share:g}-seed{seed}",
        function=f"{__name__}:write_relearned",
        settings={"relearned": share, "seed": seed},
        inputs={"examples": examples, "membership": membership},
        facets=OF_EXAMPLES,
    )


def write_relearned(context: StepContext) -> None:
    """Draw the part of the forget set, and write the pool."""
    pool = read_examples(context.inputs["examples"])
    chosen = select_members(
        forgotten_rows(pool, read_examples(context.inputs["membership"])),
        MemberSelection(share=context.settings["relearned"]),
        seed=context.settings["seed"],
        draw=RELEARNING_DRAW,
        key="unlearning.relearn",
    )
    write_examples(
        context.out,
        [replace(row, side="member" if row.example_id in chosen else "nonmember") for row in pool],
    )


def paraphrased_step(examples: Step, *, seed: int) -> Step:
    """Write the rows that have a paraphrase, with the first one as their text."""
    return Step(
        kind="examples",
        label=f"paraphrased-seed{seed}",
        function=f"{__name__}:write_paraphrased",
        settings={"paraphrased": "first"},
        inputs={"examples": examples},
        facets=OF_EXAMPLES,
    )


def write_paraphrased(context: StepContext) -> None:
    """Write the rows in other words.

    Raises:
        InputError: no row has a paraphrase.
    """
    folder = context.inputs["examples"]
    other = [
        # The text changes places with it, so that as many versions are there as before.
        replace(
            row,
            text=row.paraphrases[0],
            spans={},
            paraphrases=(row.text, *row.paraphrases[1:]),
        )
        for row in read_examples(folder)
        if row.paraphrases
    ]
    if not other:
        raise InputError(
            "unlearning.conditions: no row has a paraphrase",
            where="unlearning.conditions",
            hint="Take a dataset with paraphrases, or leave the condition out.",
        )
    write_examples(context.out, other)
    write_held_out(context.out, read_held_out(folder))
