"""The step that says whom a twin sees: the pool's rows, with the sides that hold for this model."""

from inject.examples.example import read_examples, write_examples
from inject.examples.twin_membership import TwinMembership, with_twin_membership
from inject.settings import plain
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.artifact_parts import OF_EXAMPLES

_FILE = "examples.parquet"


def twin_membership_step(examples: Step, membership: TwinMembership, *, seed: int) -> Step:
    """Write the pool again, `side` being `member` for those whom the twin sees."""

    def build(context: StepContext) -> None:
        pool = read_examples(context.inputs["examples"].path / _FILE)
        write_examples(context.out / _FILE, with_twin_membership(pool, membership, seed=seed))

    return Step(
        kind="examples",
        label=f"{membership.label()}-seed{seed}",
        version=2,
        settings={"membership": plain(membership), "seed": seed},
        inputs={"examples": examples},
        code=(root(build),),
        facets=OF_EXAMPLES,
        build=build,
    )
