"""The step that draws the copies of one arm: how many, of which variants, and where."""

from typing import NamedTuple

from inject.corpus.build import corpus_tokenizer
from inject.examples.example import members, read_examples
from inject.plan.plan import make_plan, write_plan
from inject.plan.separators import separators_for
from inject.settings import plain
from inject.source_digest import root
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.artifact_parts import TOKENS, UNSPLIT
from spikein.pipeline.steps.inputs import read_ground
from spikein.pipeline.steps.variants import renditions_of


class Dealing(NamedTuple):
    """Whom doses and variants are dealt to, where that is more than the members."""

    pool: Step
    """The arm's own examples: doses are dealt to their members, or to all of them."""
    deal: int
    """0 for the members' doses in the arm; others are draws of their own, for everybody."""


def plan_step(
    experiment: Experiment,
    corpus: Step,
    examples: Step,
    variants: Step | None,
    *,
    seed: int,
    dealing: Dealing | None = None,
    label: str | None = None,
) -> Step:
    """Draw copies, their variants and their anchors for one arm."""
    copies, placement = experiment.copies, experiment.placement
    budget, window = experiment.corpus.tokens, experiment.train.context
    asked = experiment.variants

    def build(context: StepContext) -> None:
        pool, tokens, clean = read_ground(corpus, context.inputs)
        tokenizer = corpus_tokenizer(context.inputs["corpus"].path)
        dosed = None
        if dealing is not None:
            dosed = read_examples(context.inputs["pool"].path)
            dosed = dosed if dealing.deal else members(dosed)
        plan = make_plan(
            pool,
            tokens,
            copies=copies,
            placement=placement,
            seed=seed,
            source=clean,
            budget=budget,
            context=window,
            separators=separators_for(placement, tokenizer),
            vocabulary=clean.vocabulary,
            variants=asked,
            renditions=renditions_of(context.inputs),
            dosed=dosed,
            deal=dealing.deal if dealing else 0,
        )
        write_plan(context.out, plan)

    return Step(
        kind="plan",
        label=label or f"{copies.label()}-{placement.label()}-seed{seed}",
        version=3,
        settings={
            "copies": plain(copies),
            "placement": plain(placement),
            "budget": budget,
            "context": window,
            "seed": seed,
            **(
                {"assign_by": asked.assign_by, "weights": [one.weight for one in asked.of]}
                if variants
                else {}
            ),
            **({"deal": dealing.deal} if dealing else {}),
        },
        inputs={
            "corpus": corpus,
            "examples": examples,
            **({"pool": dealing.pool} if dealing else {}),
            **({"variants": variants} if variants else {}),
        },
        libraries=("scipy",),
        code=(root(build),),
        reads={"corpus": TOKENS, "examples": UNSPLIT, "pool": UNSPLIT},
        build=build,
    )
