"""The step that draws the copies of one arm: how many, of which variants, and where."""

from pydantic import TypeAdapter

from inject.corpus.corpus import TOKENS, corpus_tokenizer
from inject.corpus.separators import separators_for
from inject.examples.example import members, read_examples
from inject.examples.parts import UNSPLIT
from inject.plan.make_plan import PlanSettings, make_plan
from inject.plan.plan import write_plan
from inject.step import Step, StepContext
from inject.stream.inputs import corpus_execution, read_pool_and_corpus, renditions_of

_SETTINGS = TypeAdapter(PlanSettings)


def plan_step(
    settings: PlanSettings,
    corpus: Step,
    examples: Step,
    variants: Step | None,
    *,
    pool: Step | None = None,
    label: str | None = None,
) -> Step:
    """Draw copies, their variants and their anchors for one arm.

    Args:
        settings: how many copies, where, and in which stream.
        corpus: the clean corpus.
        examples: the pool.
        variants: what copies can carry; None where all carry whole examples.
        pool: the arm's own examples, whose members get copy counts, or all of them (see
            `PlanSettings.draw_number`); None for the members of `examples`.
        label: for people; None for the settings' own.
    """
    return Step(
        kind="plan",
        label=label
        or f"{settings.copies.label()}-{settings.placement.label()}-seed{settings.seed}",
        function=f"{__name__}:build",
        settings=settings.identity(),
        inputs={
            "corpus": corpus,
            "examples": examples,
            **({"pool": pool} if pool else {}),
            **({"variants": variants} if variants else {}),
        },
        libraries=("scipy",),
        reads={"corpus": TOKENS, "examples": UNSPLIT, "pool": UNSPLIT},
        execution={
            **corpus_execution(corpus),
            "plan": _SETTINGS.dump_python(settings, mode="json"),
        },
    )


def build(context: StepContext) -> None:
    """Draw the plan, and write it."""
    settings = _SETTINGS.validate_python(context.execution["plan"])
    pool, tokens, clean = read_pool_and_corpus(context)
    tokenizer = corpus_tokenizer(context.inputs["corpus"])
    candidates = None
    if "pool" in context.inputs:
        candidates = read_examples(context.inputs["pool"])
        candidates = candidates if settings.draw_number else members(candidates)
    plan = make_plan(
        pool,
        tokens,
        settings,
        source=clean,
        separators=separators_for(settings.placement.separation, tokenizer),
        vocabulary=clean.facts.vocabulary,
        renditions=renditions_of(context),
        candidates=candidates,
    )
    write_plan(context.out, plan)
