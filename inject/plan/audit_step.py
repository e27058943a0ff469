"""The step that searches a stream for every example before anything is trained on it."""

from dataclasses import replace

from inject.corpus.corpus import TOKENS, corpus_tokenizer
from inject.examples.example import read_held_out
from inject.examples.parts import AUDITED
from inject.overlap.filter import overlaps_between_sides
from inject.overlap.settings import OverlapSettings
from inject.plan.plan import read_plan
from inject.settings import plain
from inject.step import Step, StepContext
from inject.stream.audit import HELD_OUT_SIDE, audit, name_rows
from inject.stream.audit_report import write_audit
from inject.stream.inputs import (
    copy_texts,
    corpus_execution,
    example_tokens,
    read_pool_and_corpus,
    variants_of,
)


def audit_step(rules: OverlapSettings, corpus: Step, examples: Step, plan: Step) -> Step:
    """Search the contaminated stream and the clean corpus for every example.

    Held-out rows are looked for as non-members are. The corpus is hashed on the way: an edit of a
    token file is noticed before anything trains.
    """
    return Step(
        kind="audit",
        label=plan.label,
        function=f"{__name__}:build",
        settings={"ngram": rules.ngram, "share": rules.share},
        inputs={"corpus": corpus, "examples": examples, "plan": plan, **variants_of(plan)},
        libraries=("unicode",),
        reads={"corpus": TOKENS, "examples": AUDITED},
        facets={"passed": "inject.stream.audit_report:passed"},
        execution={**corpus_execution(corpus), "rules": plain(rules)},
    )


def build(context: StepContext) -> None:
    """Search the stream, and write what was found."""
    rules = OverlapSettings.model_validate(context.execution["rules"])
    pool, tokens, clean = read_pool_and_corpus(context)
    clean.verify()
    held_out = read_held_out(context.inputs["examples"])
    if held_out:
        encoder = corpus_tokenizer(context.inputs["corpus"])
        tokens = {**tokens, **example_tokens(held_out, encoder)}
    sides: dict[str, str] = {example.example_id: example.side for example in pool}
    sides |= dict.fromkeys((example.example_id for example in held_out), HELD_OUT_SIDE)
    planned = read_plan(context.inputs["plan"])
    view = planned.view(clean)
    report = audit(
        view,
        clean,
        clean.doc_starts,
        tokens=tokens,
        names=planned.names(),
        starts=view.text_starts(),
        texts=copy_texts(context, tokens),
        sides=sides,
    )
    shared = overlaps_between_sides(pool, rules) if rules.ngram is not None else []
    report = replace(name_rows(report, [*pool, *held_out]), between_sides=tuple(shared))
    write_audit(context.out, report)
