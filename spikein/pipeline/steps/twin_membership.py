"""The step that says whom a twin sees: the pool's rows, with the sides that hold for this model."""

from inject.examples.example import read_examples, write_examples
from inject.examples.twin_membership import Cast, with_cast
from inject.settings import plain
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.artifact_parts import OF_EXAMPLES


def cast_step(examples: Step, cast: Cast, *, seed: int) -> Step:
    """Write the pool again, `side` being `member` for those whom the twin sees."""

    def build(context: StepContext) -> None:
        pool = read_examples(context.inputs["examples"].path)
        write_examples(context.out, with_cast(pool, cast, seed=seed))

    return Step(
        kind="examples",
        label=f"{cast.label()}-seed{seed}",
        version=2,
        settings={"cast": plain(cast), "seed": seed},
        inputs={"examples": examples},
        code=(root(build),),
        facets=OF_EXAMPLES,
        build=build,
    )
