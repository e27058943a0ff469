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


class CopyCountDraw(NamedTuple):
    """Who gets copy counts and variants, where that is more than the spiked members."""

    pool: Step
    """The arm's own examples: their members get copy counts, or all of them."""
    number: int
    """0 for the counts that the arm's members have; each other number is a draw of its own, for all
    examples of the pool."""


def plan_step(
    experiment: Experiment,
    corpus: Step,
    examples: Step,
    variants: Step | None,
    *,
    seed: int,
    count_draw: CopyCountDraw | None = None,
    label: str | None = None,
) -> Step:
    """Draw copies, their variants and their anchors for one arm."""
    copies, placement = experiment.copies, experiment.placement
    budget, window = experiment.corpus.tokens, experiment.train.context
    asked = experiment.variants

    def build(context: StepContext) -> None:
        pool, tokens, clean = read_ground(corpus, context.inputs)
        tokenizer = corpus_tokenizer(context.inputs["corpus"].path)
        candidates = None
        if count_draw is not None:
            candidates = read_examples(context.inputs["pool"].path)
            candidates = candidates if count_draw.number else members(candidates)
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
            candidates=candidates,
            draw_number=count_draw.number if count_draw else 0,
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
            **({"draw_number": count_draw.number} if count_draw else {}),
        },
        inputs={
            "corpus": corpus,
            "examples": examples,
            **({"pool": count_draw.pool} if count_draw else {}),
            **({"variants": variants} if variants else {}),
        },
        libraries=("scipy",),
        code=(root(build),),
        reads={"corpus": TOKENS, "examples": UNSPLIT, "pool": UNSPLIT},
        build=build,
    )
