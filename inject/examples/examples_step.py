"""The step that makes the pool: examples with sides and splits, and held-out rows."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from inject.corpus.separators import Separation, text_room
from inject.corpus.tokenizer import load_tokenizer
from inject.errors import InputError
from inject.examples.contaminant import Contaminant, PoolSettings, contaminant_identity
from inject.examples.datasets.registry import find_dataset, get_dataset
from inject.examples.example import (
    OF_EXAMPLES,
    DroppedRow,
    DropReason,
    Example,
    write_dropped_rows,
    write_examples,
    write_held_out,
)
from inject.examples.load import LengthRules, filter_by_length, length_error, load_examples
from inject.examples.membership import split_members
from inject.examples.pool import PoolRequest, draw_held_out, usable_rows
from inject.reading.change_guard import unchanged
from inject.settings import plain
from inject.step import Step, StepContext

REPORTS_FILE = "examples.json"


def examples_step(
    contaminants: Sequence[Contaminant],
    pool: PoolSettings,
    tokenizer: Step,
    *,
    context: int,
    separations: Sequence[Separation],
    tune_share: float,
    seed: int,
) -> Step:
    """Load all datasets, filter their rows by length, and draw sides, splits and held-out rows.

    Args:
        contaminants: the datasets.
        pool: how rows become members and non-members.
        tokenizer: counts the tokens of texts.
        context: tokens in a training window.
        separations: the separators that texts leave room for, of all arms, which share the pool.
        tune_share: each row's probability to tune detectors.
        seed: the arm's seed.
    """
    # Neither decides the length of a text that is kept whole or cut to `max_tokens`.
    whole = pool.long_examples == "split" or pool.max_tokens is not None
    return Step(
        kind="examples",
        label=f"{'-'.join(contaminant.name for contaminant in contaminants)[:40]}-seed{seed}",
        function=f"{__name__}:build",
        settings={
            "contaminants": [contaminant_identity(contaminant) for contaminant in contaminants],
            "pool": plain(pool, exclude=None if pool.max_tokens else {"max_tokens"}),
            "context": None if whole else context,
            "separated": [] if whole else [list(separation) for separation in separations],
            "tune_share": tune_share,
            "seed": seed,
        },
        inputs={"tokenizer": tokenizer},
        libraries=("unicode",),
        protected=any(get_dataset(contaminant.dataset).protected for contaminant in contaminants),
        code=tuple(
            place
            for contaminant in contaminants
            for place in find_dataset(contaminant.dataset).code
        ),
        facets=OF_EXAMPLES,
        execution={
            "contaminants": [plain(contaminant) for contaminant in contaminants],
            "context": context,
            "separated": [list(separation) for separation in separations],
        },
    )


def build(context: StepContext) -> None:
    """Draw the pool, and write it with a report on all rows."""
    settings, execution = context.settings, context.execution
    contaminants = [Contaminant.model_validate(values) for values in execution["contaminants"]]
    pool, seed = PoolSettings.model_validate(settings["pool"]), settings["seed"]
    encoder = load_tokenizer(str(context.inputs["tokenizer"]))
    separations = [(kind, document) for kind, document in execution["separated"]]
    room = text_room(execution["context"], separations, encoder)
    rules = LengthRules(
        context=execution["context"],
        room=pool.max_tokens or room,
        min_tokens=pool.min_tokens,
        policy="truncate" if pool.max_tokens else pool.long_examples,
        max_tokens=pool.max_tokens,
    )
    requests: list[PoolRequest] = []
    losses: list[DroppedRow] = []
    reports: dict[str, dict[str, Any]] = {}
    for done, contaminant in enumerate(contaminants):
        context.report(done, len(contaminants), unit="datasets", note=contaminant.name)
        with unchanged(
            f"contaminants.{done}",
            partial(contaminant_identity, contaminant),
            settings["contaminants"][done],
        ):
            loaded = load_examples(contaminant, seed=seed)
        suitable, lost, split = filter_by_length(loaded.examples, encoder, rules)
        further, also_lost, also_split = filter_by_length(
            loaded.further, encoder, rules, besides=suitable
        )
        requests.append(
            PoolRequest(
                examples=suitable,
                members=contaminant.members,
                nonmembers=contaminant.nonmembers,
                stratify=contaminant.stratify,
                held_out=contaminant.held_out,
                further=further,
            )
        )
        losses += [*loaded.losses, *lost, *also_lost]
        reports[contaminant.name] = {
            "rows": loaded.rows,
            "examples": len(loaded.every),
            "split": split + also_split,
            "repeated_ids": loaded.repeated_ids,
            "members": contaminant.members,
            "nonmembers": contaminant.nonmembers,
            **({"held_out": contaminant.held_out} if contaminant.held_out else {}),
            **({"max_tokens": pool.max_tokens} if pool.max_tokens else {}),
            "protected": get_dataset(contaminant.dataset).protected,
        }
    total = len(contaminants)
    context.report(total, total, unit="datasets", note="drawing members")
    examples: list[Example] = []
    usable = usable_rows(requests, near_duplicate=pool.near_duplicate, seed=seed)
    for (name, report), usable_of_dataset in zip(reports.items(), usable, strict=True):
        losses += usable_of_dataset.losses
        own = [loss for loss in losses if loss.dataset == name]
        try:
            sided, draw_report = split_members(
                usable_of_dataset, tune_share=settings["tune_share"], seed=seed
            )
        except InputError as error:
            raise length_error(error, own, name=name, rules=rules) from error
        examples += sided
        report |= {
            "considered": usable_of_dataset.considered,
            "losses": dict(Counter(loss.drop_reason for loss in own)),
            DropReason.CUT_BEFORE_ANSWER: [
                loss.source_id for loss in own if loss.drop_reason == DropReason.CUT_BEFORE_ANSWER
            ],
            "strata": draw_report.strata,
            "strata_pooled": {"strata": draw_report.pooled_strata, "rows": draw_report.pooled_rows},
        }
    held_out = draw_held_out(requests, examples, near_duplicate=pool.near_duplicate, seed=seed)
    write_examples(context.out, examples)
    write_held_out(context.out, [row for rows in held_out for row in rows])
    write_dropped_rows(context.out, losses)
    (context.out / REPORTS_FILE).write_text(json.dumps(reports, indent=1))


def read_pool_reports(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the report on each dataset's rows, by the dataset's name."""
    return json.loads((folder / REPORTS_FILE).read_text())
