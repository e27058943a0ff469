"""The step that searches a stream for every example before anything is trained on it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from inject.corpus.corpus import corpus_tokenizer
from inject.examples.example import read_held_out
from inject.overlap.filter import overlaps_between_sides
from inject.plan.plan import read_plan
from inject.source_digest import root
from inject.stream.audit import HELD_OUT_SIDE, AuditFailed, audit, read_audit, write_audit
from inject.stream.audit_findings import name_rows
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.artifact_parts import AUDITED, OF_AUDIT, TOKENS
from spikein.pipeline.steps.inputs import example_tokens, read_pool_and_corpus
from spikein.pipeline.steps.variants import copy_texts, variants_of


def audit_step(experiment: Experiment, corpus: Step, examples: Step, plan: Step) -> Step:
    """Search the contaminated stream and the clean corpus for every example.

    Held-out rows are looked for as non-members are. The corpus is hashed on the way: an edit of a
    token file is noticed before anything trains.
    """

    rules = experiment.audit

    def build(context: StepContext) -> None:
        pool, tokens, clean = read_pool_and_corpus(corpus, context.inputs)
        clean.verify()
        held_out = read_held_out(context.inputs["examples"].path)
        if held_out:
            encoder = corpus_tokenizer(context.inputs["corpus"].path)
            tokens = {**tokens, **example_tokens(held_out, encoder)}
        sides: dict[str, str] = {example.example_id: example.side for example in pool}
        sides |= dict.fromkeys((example.example_id for example in held_out), HELD_OUT_SIDE)
        planned = read_plan(context.inputs["plan"].path)
        view = planned.view(clean)
        report = audit(
            view,
            clean,
            clean.doc_starts,
            tokens=tokens,
            names=planned.names(),
            starts=view.text_starts(),
            texts=copy_texts(context.inputs, tokens),
            sides=sides,
        )
        shared = overlaps_between_sides(pool, rules) if rules.ngram is not None else []
        report = replace(name_rows(report, [*pool, *held_out]), between_sides=tuple(shared))
        write_audit(context.out, report)

    return Step(
        kind="audit",
        label=plan.label,
        version=4,
        settings={"ngram": rules.ngram, "share": rules.share},
        inputs={
            "corpus": corpus,
            "examples": examples,
            "plan": plan,
            **variants_of(plan),
        },
        libraries=("unicode",),
        code=(root(build),),
        reads={"corpus": TOKENS, "examples": AUDITED},
        facets=OF_AUDIT,
        build=build,
    )


def require_passed(inputs: Mapping[str, Any]) -> None:
    """Stop the graph where the audit failed.

    Raises:
        AuditFailed: with the first findings.
    """
    folder = inputs["audit"].path
    report = read_audit(folder)
    if not report.passed:
        raise AuditFailed(report, folder)
