"""Steps of the pool: examples with sides and splits, held-out rows, and the sides of a twin."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from inject.corpus.tokenizer import load_tokenizer
from inject.errors import InputError
from inject.examples.contaminant import contaminant_identity
from inject.examples.datasets.registry import find_dataset, get_dataset
from inject.examples.example import (
    Example,
    Loss,
    RowLoss,
    read_examples,
    read_held_out,
    write_examples,
    write_held_out,
    write_losses,
)
from inject.examples.held_out import HeldOutRequest, draw_held_out
from inject.examples.length_filter import (
    LengthFiltered,
    LengthRules,
    filter_by_length,
    length_error,
)
from inject.examples.load import load_examples
from inject.examples.membership import split_members
from inject.examples.parts import OF_EXAMPLES
from inject.examples.pool import PoolRequest, usable_rows
from inject.examples.twin_membership import TwinMembership, with_twin_membership
from inject.plan.plan import read_plan
from inject.plan.separators import separated_placements, text_room
from inject.plan.settings import Placement
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.source_digest import root
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext

REPORTS_FILE = "examples.json"


def examples_step(
    experiment: Experiment, tokenizer: Step, *, seed: int, placements: Sequence[Placement]
) -> Step:
    """Load all datasets, filter their rows by length, and draw sides, splits and held-out rows.

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
        further: list[HeldOutRequest] = []
        filtered: dict[str, LengthFiltered] = {}
        losses: list[RowLoss] = []
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
            behind = filter_by_length(loaded.further, encoder, rules, besides=suitable.examples)
            further.append(
                HeldOutRequest(
                    dataset=contaminant.name,
                    rows=[*suitable.examples, *behind.examples],
                    wanted=contaminant.held_out,
                    stratify=contaminant.stratify,
                )
            )
            losses += [*loaded.losses, *suitable.losses, *behind.losses]
            reports[contaminant.name] = {
                "rows": loaded.rows,
                "examples": len(loaded.every),
                "split": suitable.split + behind.split,
                "repeated_ids": loaded.repeated_ids,
                "members": contaminant.members,
                "nonmembers": contaminant.nonmembers,
                **({"held_out": contaminant.held_out} if contaminant.held_out else {}),
                "protected": get_dataset(contaminant.dataset).protected,
            }
        total = len(contaminants)
        context.report(total, total, unit="datasets", note="drawing members")
        examples: list[Example] = []
        usable = usable_rows(requests, near_duplicate=pool.near_duplicate, seed=seed)
        for (name, report), one in zip(reports.items(), usable, strict=True):
            try:
                membership = split_members(one, tune_share=tune_share, seed=seed)
            except InputError as error:
                raise length_error(error, filtered[name], name=name, rules=rules) from error
            examples.extend(membership.examples)
            losses += one.losses
            own = [loss for loss in losses if loss.dataset == name]
            report |= {
                "considered": one.considered,
                "losses": dict(Counter(loss.loss for loss in own)),
                Loss.CUT_BEFORE_ANSWER: [
                    loss.source_id for loss in own if loss.loss == Loss.CUT_BEFORE_ANSWER
                ],
                "strata": membership.drawn.strata,
                "strata_pooled": {
                    "strata": membership.drawn.pooled_strata,
                    "rows": membership.drawn.pooled_rows,
                },
            }
        held_out = draw_held_out(further, examples, near_duplicate=pool.near_duplicate, seed=seed)
        write_examples(context.out, examples)
        write_held_out(context.out, [row for rows in held_out for row in rows])
        write_losses(context.out, losses)
        write_pool_reports(context.out, reports)

    return Step(
        kind="examples",
        label=f"{'-'.join(contaminant.name for contaminant in contaminants)[:40]}-seed{seed}",
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
        libraries=("unicode",),
        protected=any(get_dataset(contaminant.dataset).protected for contaminant in contaminants),
        code=(
            root(build),
            *(place for one in contaminants for place in find_dataset(one.dataset).code),
        ),
        facets=OF_EXAMPLES,
        build=build,
    )


def twin_membership_step(
    examples: Step, membership: TwinMembership, *, seed: int, plan: Step | None = None
) -> Step:
    """Write the pool again, `side` being `member` for those whom the twin sees.

    Held-out rows are copied: no twin may see them either, which its audit finds out.

    Args:
        examples: the arm's pool.
        membership: which twin it is.
        seed: the arm's seed.
        plan: the arm's own plan; read where the forget set goes by numbers of copies.
    """
    counted = membership.forget is not None and membership.forget.copies is not None
    if counted and plan is None:
        raise TypeError("a forget set by copies needs the arm's plan")
    named = membership.identity()

    def build(context: StepContext) -> None:
        folder = context.inputs["examples"].path
        pool = read_examples(folder)
        copies = read_plan(context.inputs["plan"].path).realised() if counted else None
        with unchanged("unlearning.forget.ids", membership.identity, named):
            seen = with_twin_membership(pool, membership, seed=seed, copies=copies)
        write_examples(context.out, seen)
        write_held_out(context.out, read_held_out(folder))

    return Step(
        kind="examples",
        label=f"{membership.label()}-seed{seed}",
        settings={"membership": named, "seed": seed},
        inputs={"examples": examples, **({"plan": plan} if counted and plan else {})},
        libraries=("unicode",),
        code=(root(build),),
        facets=OF_EXAMPLES,
        build=build,
    )


def write_pool_reports(folder: Path, reports: Mapping[str, Any]) -> None:
    """Write what became of each dataset's rows into the folder of a pool."""
    (folder / REPORTS_FILE).write_text(json.dumps(reports, indent=1))


def read_pool_reports(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what became of each dataset's rows: dataset's name to its report."""
    reports: dict[str, dict[str, Any]] = json.loads((folder / REPORTS_FILE).read_text())
    return reports
