"""Steps of the ground truth: examples, plan, audit."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inject.corpus.build import Corpus
from inject.corpus.tokenizer import load_tokenizer
from inject.errors import InputError
from inject.examples.contaminant import contaminant_identity
from inject.examples.datasets.registry import dataset_code, get_dataset
from inject.examples.example import Example, members, read_examples, write_examples
from inject.examples.length_filter import (
    LengthFiltered,
    LengthRules,
    filter_by_length,
    length_error,
)
from inject.examples.load import load_examples
from inject.examples.membership import split_members
from inject.examples.pool import PoolRequest, usable_rows
from inject.overlap.filter import overlaps_between_sides
from inject.plan.plan import make_plan, read_plan, write_plan
from inject.plan.separators import separated_placements, separators_for, text_room
from inject.reading.unchanged import unchanged
from inject.settings import Placement, plain
from inject.source_digest import root
from inject.stream.audit import AuditFailed, audit, read_audit, write_audit
from inject.stream.audit_findings import name_rows
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.artifact_parts import OF_AUDIT, OF_EXAMPLES, TOKENS, UNSPLIT
from spikein.pipeline.steps.corpus_files import open_corpus
from spikein.pipeline.steps.example_tokens import example_tokens
from spikein.pipeline.steps.variants import copy_texts, renditions_of, variants_of


def examples_step(
    experiment: Experiment, tokenizer: Step, *, seed: int, placements: Sequence[Placement]
) -> Step:
    """Load all datasets, filter their rows by length, and draw members, non-members and splits.

    Args:
        experiment: of one arm.
        tokenizer: what texts are counted with.
        seed: the arm's seed.
        placements: of all arms, which share the pool: texts leave room for their separators.
    """
    contaminants, pool = experiment.contaminants, experiment.pool
    context_tokens = experiment.train.context
    separated = separated_placements(placements)
    tune_share = experiment.detect.tune_share
    named = [contaminant_identity(contaminant) for contaminant in contaminants]

    def build(context: StepContext) -> None:
        encoder = load_tokenizer(str(context.inputs["tokenizer"].path))
        rules = LengthRules(
            context=context_tokens,
            room=text_room(context_tokens, separated, encoder),
            min_tokens=pool.min_tokens,
            policy=pool.long_examples,
        )
        requests: list[PoolRequest] = []
        filtered: dict[str, LengthFiltered] = {}
        reports: dict[str, dict[str, Any]] = {}
        for done, contaminant in enumerate(contaminants):
            context.report(done, len(contaminants), unit="datasets", note=contaminant.name)
            with unchanged(
                f"contaminants.{done}",
                partial(contaminant_identity, contaminant),
                named[done],
            ):
                loaded = load_examples(contaminant, seed=seed)
            suitable = filter_by_length(loaded.examples, encoder, rules)
            filtered[contaminant.name] = suitable
            requests.append(
                PoolRequest(
                    examples=suitable.examples,
                    members=contaminant.members,
                    nonmembers=contaminant.nonmembers,
                    stratify=contaminant.stratify,
                )
            )
            reports[contaminant.name] = {
                **asdict(loaded.report),
                "too_short": suitable.too_short,
                "too_long": suitable.too_long,
                "long_examples": pool.long_examples,
                "members": contaminant.members,
                "nonmembers": contaminant.nonmembers,
                "protected": get_dataset(contaminant.dataset).protected,
            }
        context.report(
            len(contaminants), len(contaminants), unit="datasets", note="drawing members"
        )
        examples: list[Example] = []
        usable = usable_rows(requests, near_duplicate=pool.near_duplicate, seed=seed)
        for (name, report), one in zip(reports.items(), usable, strict=True):
            try:
                membership = split_members(one, tune_share=tune_share, seed=seed)
            except InputError as error:
                raise length_error(error, filtered[name], name=name, rules=rules) from error
            examples.extend(membership.examples)
            report |= {
                "considered": one.considered,
                "near_duplicates": [list(item) for item in one.near_duplicates],
                "near_duplicates_across": [item._asdict() for item in one.cross_dataset_duplicates],
                "strata": membership.drawn.strata,
                "strata_pooled": {
                    "strata": membership.drawn.pooled_strata,
                    "rows": membership.drawn.pooled_rows,
                },
            }
        write_examples(context.out / "examples.parquet", examples)
        (context.out / "examples.json").write_text(json.dumps(reports, indent=1))

    return Step(
        kind="examples",
        label=f"{'-'.join(contaminant.name for contaminant in contaminants)[:40]}-seed{seed}",
        version=2,
        settings={
            "contaminants": named,
            "pool": plain(pool),
            "context": None if pool.long_examples == "split" else context_tokens,
            "separated": []
            if pool.long_examples == "split"
            else [[one.separated_by, one.policy == "document"] for one in separated],
            "tune_share": tune_share,
            "seed": seed,
        },
        inputs={"tokenizer": tokenizer},
        protected=any(get_dataset(contaminant.dataset).protected for contaminant in contaminants),
        code=(root(build), *(dataset_code(one.dataset) for one in contaminants)),
        facets=OF_EXAMPLES,
        build=build,
    )


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
    variant_settings = experiment.variants

    def build(context: StepContext) -> None:
        pool, tokens, clean = read_ground(corpus, context.inputs)
        tokenizer = load_tokenizer(str(context.inputs["corpus"].path / "tokenizer"))
        candidates = None
        if count_draw is not None:
            candidates = read_examples(context.inputs["pool"].path / "examples.parquet")
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
            variants=variant_settings,
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
                {
                    "assign_by": variant_settings.assign_by,
                    "weights": [one.weight for one in variant_settings.of],
                }
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


def audit_step(experiment: Experiment, corpus: Step, examples: Step, plan: Step) -> Step:
    """Search the contaminated stream and the clean corpus for every example.

    The corpus is hashed on the way: an edit of a token file is noticed before anything trains.
    """

    rules = experiment.audit

    def build(context: StepContext) -> None:
        pool, tokens, clean = read_ground(corpus, context.inputs)
        clean.verify()
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
            sides={example.example_id: example.side for example in pool},
        )
        shared = overlaps_between_sides(pool, rules) if rules.ngram is not None else []
        report = replace(name_rows(report, pool), between_sides=tuple(shared))
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
        code=(root(build),),
        reads={"corpus": TOKENS, "examples": UNSPLIT},
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


def read_ground(
    corpus: Step,
    inputs: Mapping[str, Any],
) -> tuple[list[Example], dict[str, npt.NDArray[np.int64]], Corpus]:
    """Return examples, their token ids and the clean corpus of a step's inputs."""
    clean = open_corpus(corpus, inputs)
    pool = read_examples(inputs["examples"].path / "examples.parquet")
    tokenizer = load_tokenizer(str(inputs["corpus"].path / "tokenizer"))
    return pool, example_tokens(pool, tokenizer), clean
