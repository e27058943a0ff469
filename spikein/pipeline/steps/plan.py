"""The step that draws the copies of one arm: how many, of which variants, and where."""

from typing import NamedTuple

from inject.corpus.corpus import corpus_tokenizer
from inject.examples.example import members, read_examples
from inject.plan.make_plan import PlanSettings, make_plan
from inject.plan.plan import write_plan
from inject.plan.separators import separators_for
from inject.source_digest import root
from inject.variants.settings import Variants
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.artifact_parts import TOKENS, UNSPLIT
from spikein.pipeline.steps.inputs import read_pool_and_corpus
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
    settings = PlanSettings(
        copies=experiment.copies,
        placement=experiment.placement,
        budget=experiment.corpus.tokens,
        context=experiment.train.context,
        seed=seed,
        variants=experiment.variants if variants else Variants(),
        draw_number=count_draw.number if count_draw else 0,
    )

    def build(context: StepContext) -> None:
        pool, tokens, clean = read_pool_and_corpus(corpus, context.inputs)
        tokenizer = corpus_tokenizer(context.inputs["corpus"].path)
        candidates = None
        if count_draw is not None:
            candidates = read_examples(context.inputs["pool"].path)
            candidates = candidates if count_draw.number else members(candidates)
        plan = make_plan(
            pool,
            tokens,
            settings,
            source=clean,
            separators=separators_for(settings.placement, tokenizer),
            vocabulary=clean.vocabulary,
            renditions=renditions_of(context.inputs),
            candidates=candidates,
        )
        write_plan(context.out, plan)

    return Step(
        kind="plan",
        label=label or f"{settings.copies.label()}-{settings.placement.label()}-seed{seed}",
        version=3,
        settings=settings.identity(),
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
