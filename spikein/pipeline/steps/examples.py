"""Steps of the pool: its examples with their sides and splits, and the sides that a twin sees."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from inject.corpus.tokenizer import load_tokenizer
from inject.errors import InputError
from inject.examples.contaminant import contaminant_identity
from inject.examples.datasets.registry import dataset_code, get_dataset
from inject.examples.example import Example, read_examples, write_examples
from inject.examples.length_filter import Fitted, LengthRules, fit_examples, told_of_lengths
from inject.examples.load import load_examples
from inject.examples.pool import Asked, deal_usable, usable_rows
from inject.examples.twin_membership import Cast, with_cast
from inject.plan.separators import separated_placements, text_room
from inject.reading.unchanged import unchanged
from inject.settings import Placement, plain
from inject.source_digest import root
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.artifact_parts import OF_EXAMPLES

REPORTS_FILE = "examples.json"


def examples_step(
    experiment: Experiment, tokenizer: Step, *, seed: int, placements: Sequence[Placement]
) -> Step:
    """Load all datasets, fit them to the model, and deal members, non-members and splits.

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
        lengths: LengthRules = {
            "context": context_tokens,
            "room": text_room(context_tokens, separated, encoder),
            "min_tokens": pool.min_tokens,
            "policy": pool.long_examples,
        }
        asked: list[Asked] = []
        fitting: dict[str, Fitted] = {}
        reports: dict[str, dict[str, Any]] = {}
        for done, contaminant in enumerate(contaminants):
            context.report(done, len(contaminants), unit="datasets", note=contaminant.name)
            with unchanged(
                f"contaminants.{done}",
                partial(contaminant_identity, contaminant),
                named[done],
            ):
                loaded = load_examples(contaminant, seed=seed)
            fitted = fit_examples(loaded.examples, encoder, **lengths)
            fitting[contaminant.name] = fitted
            asked.append(
                Asked(
                    examples=fitted.examples,
                    members=contaminant.members,
                    nonmembers=contaminant.nonmembers,
                    stratify=contaminant.stratify,
                )
            )
            reports[contaminant.name] = {
                **asdict(loaded.report),
                "too_short": fitted.too_short,
                "too_long": fitted.too_long,
                "long_examples": pool.long_examples,
                "members": contaminant.members,
                "nonmembers": contaminant.nonmembers,
                "protected": get_dataset(contaminant.dataset).protected,
            }
        context.report(len(contaminants), len(contaminants), unit="datasets", note="dealing")
        examples: list[Example] = []
        usable = usable_rows(asked, near_duplicate=pool.near_duplicate, seed=seed)
        for (name, report), one in zip(reports.items(), usable, strict=True):
            try:
                dealt = deal_usable(one, tune_share=tune_share, seed=seed)
            except InputError as error:
                raise told_of_lengths(error, fitting[name], name=name, **lengths) from error
            examples.extend(dealt.examples)
            report |= {
                "considered": one.considered,
                "near_duplicates": [list(item) for item in one.near_duplicates],
                "near_duplicates_across": [item._asdict() for item in one.near_across],
                "strata": dealt.drawn.strata,
                "strata_pooled": {
                    "strata": dealt.drawn.pooled_strata,
                    "rows": dealt.drawn.pooled_rows,
                },
            }
        write_examples(context.out, examples)
        write_pool_reports(context.out, reports)

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


def write_pool_reports(folder: Path, reports: Mapping[str, Any]) -> None:
    """Write what became of each dataset's rows into the folder of a pool."""
    (folder / REPORTS_FILE).write_text(json.dumps(reports, indent=1))


def read_pool_reports(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what became of each dataset's rows: dataset's name to its report."""
    reports: dict[str, dict[str, Any]] = json.loads((folder / REPORTS_FILE).read_text())
    return reports
