"""The steps of audits: what an unlearned model still writes of what it should have forgotten.

Scores and continuations were made by other steps. In an experiment each forgotten text is one
chunk, all of them are continued by all models, non-members are the control texts, and the other
members are texts that the model should still know; texts that cannot be divided, or of which no
copy was fed, are left out. One step gathers all audits.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arm import axis_column
from analysis.copy_bins import ALL, EVERY_MEMBER, CopiesCell, copies_cells, is_dose
from analysis.findings import question_table, read_table, write_findings
from analysis.intervals.ends import LEAST_GROUPS
from analysis.intervals.influence import pack_groups
from analysis.intervals.numbers import Rows, share_numbers
from analysis.metrics import Floats
from analysis.unlearning_audit.audit import (
    AUDIT_FILE,
    CHUNKS_FILE,
    CONTINUATIONS,
    MODELS,
    QUESTION,
    Evidence,
    audit_chunks,
    compared,
    finding_rows,
    headline,
    without_protected,
)
from analysis.unlearning_audit.checks import QUESTIONS, Weights
from analysis.unlearning_audit.estimates import CONFIDENCE, null
from analysis.unlearning_audit.ratio import Band, Scores
from analysis.unlearning_audit.settings import AuditRule, ChunkAudit
from analysis.unlearning_audit.text_chunks import AUDITED, HOLDOUT, RETAINED, Chunk
from detect.generation.continuations import CONTINUATIONS_FILE, read_continuations
from detect.scores.table import read_scores
from inject.examples.example import Example, members, read_examples
from inject.examples.forget_set import forgotten_rows
from inject.examples.parts import UNSPLIT
from inject.settings import plain
from inject.step import Step, StepContext, StepGroup, numbered_folders, numbered_inputs
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts
from inject.tables import read_parquet


def audit_step(
    inputs: Mapping[str, Step],
    settings: ChunkAudit,
    *,
    method: str,
    arm: str,
    scored: tuple[str, str],
) -> Step:
    """Audit one unlearned model of an experiment.

    Args:
        inputs: `examples`, `membership` (the sides that hold for the retrained model), `exposures`
            (the original model), and `MODEL-scores` and `MODEL-written` of each of `MODELS`.
        settings: of the audit.
        method: the method setting's label.
        arm: the arm's label.
        scored: the detector and its setting whose scores the ratio is of.
    """
    return Step(
        kind="unlearning_audit",
        label=f"{method}-{arm}",
        function=f"{__name__}:build_audit",
        settings={"method": method, "arm": arm, "audit": plain(settings), "scored": list(scored)},
        inputs=inputs,
        reads={"examples": UNSPLIT, "membership": UNSPLIT, "exposures": EXPOSURES},
    )


def build_audit(context: StepContext) -> None:
    """Audit the model, and write its tables."""
    folders = context.inputs
    pool = read_examples(folders["examples"])
    copies = seen_copy_counts(read_exposures(folders["exposures"]))
    sides = read_examples(folders["membership"])
    forgotten, retained = (
        [row for row in rows if copies.get(row.example_id)]
        for rows in (forgotten_rows(pool, sides), members(sides))
    )
    written = read_continuations(folders["unlearned-written"])
    divided = [row for row in forgotten if written[row.example_id].reason is None]
    prompts = [len(written[row.example_id].beginning) for row in divided]
    audited = [_whole(*each) for each in zip(range(len(divided)), divided, prompts, strict=True)]
    others = [(row, HOLDOUT) for row in pool if row.side == "nonmember"]
    others += [(row, RETAINED) for row in retained]
    further = [
        _whole(number, row, 0, part=part) for number, (row, part) in enumerate(others, len(audited))
    ]
    notes = []
    if left_out := len(forgotten) - len(divided):
        notes.append(f"{left_out:,} texts are too short to be divided, and are left out")
    evidence = read_evidence(context, [*audited, *further])
    write_audit(context, replace(evidence, copies=copies), notes)


def _whole(number: int, row: Example, prompt_stop: int, *, part: str = AUDITED) -> Chunk:
    return Chunk(
        chunk=number,
        text_id=row.example_id,
        group=row.group,
        start=0,
        stop=len(row.text),
        text=row.text,
        prompt_stop=prompt_stop,
        protected=row.protected,
        part=part,
        key=row.example_id,
    )


def read_evidence(context: StepContext, chunks: Sequence[Chunk]) -> Evidence:
    """Return what an audit is drawn from: scores and continuations, as far as there are any."""
    names = [name for name in MODELS if f"{name}-scores" in context.inputs]
    folders = {name: context.inputs[f"{name}-scores"] for name in names}
    scores = {
        name: scored_by(folder, chunks, *context.settings["scored"])
        for name, folder in folders.items()
    }
    losses = {name: scored_by(folder, chunks, "loss", None) for name, folder in folders.items()}
    tables = [CONTINUATIONS.empty_table()]
    for name in names:
        if (folder := context.inputs.get(f"{name}-written")) is not None:
            written = read_continuations(folder)
            own = [chunk for chunk in chunks if chunk.example_id in written]
            tables.append(compared(name, own, [written[one.example_id].texts for one in own]))
    return Evidence(
        chunks=chunks,
        scores={name: found.values for name, found in scores.items()},
        reasons=[
            scores["original"].reasons[at] or scores["unlearned"].reasons[at]
            for at in range(len(chunks))
        ],
        # Audits of experiments without the detector loss do not say whether a model works.
        losses={name: -found.values for name, found in losses.items()}
        if all(len(found.values) for found in losses.values())
        else {},
        continuations=pa.concat_tables(tables).combine_chunks(),
        weights=Weights(False, math.nan, "the experiment trained it from the original"),
        guessing=math.inf,
    )


def scored_by(folder: Path, rows: Sequence[Chunk], detector: str, setting: str | None) -> Scores:
    """Return a detector's scores of chunks; none where it did not score.

    Args:
        folder: of the scores.
        rows: what was scored.
        detector: its name.
        setting: None: whichever it has.
    """
    columns = ["example_id", "detector", "setting", "score", "reason"]
    found = {
        row["example_id"]: row
        for row in read_scores(folder, columns=columns).to_pylist()
        if row["detector"] == detector and setting in (None, row["setting"])
    }
    own = [found[row.example_id] for row in rows] if found else []
    values = np.array([row["score"] for row in own], dtype=np.float64)
    return Scores(values, [row["reason"] for row in own])


def write_audit(context: StepContext, evidence: Evidence, notes: Sequence[str]) -> None:
    """Audit one unlearned model, and write chunks, continuations, findings and the verdict.

    Args:
        context: of the step; its settings are `audit` (of an `AuditRule`), `method`, and more.
        evidence: what the audit is drawn from.
        notes: what to know of it.
    """
    given = context.settings["audit"]
    rule = AuditRule.model_validate({name: given[name] for name in AuditRule.model_fields})
    band = Band(*rule.band)
    audit = audit_chunks(evidence, band=band, rate=rule.false_alarms)
    pq.write_table(audit.chunks, context.out / CHUNKS_FILE)
    shown = without_protected(evidence.continuations, evidence.chunks)
    pq.write_table(shown, context.out / CONTINUATIONS_FILE)
    count = sum(chunk.part == AUDITED for chunk in evidence.chunks)
    rows = finding_rows(context.settings["method"], audit.estimates, count)
    write_findings(context.out, {QUESTION: question_table(QUESTION, (), rows)})
    checks = audit.judgement.checks
    record = {
        "settings": dict(context.settings),
        "verdict": audit.judgement.verdict,
        "headline": headline(audit.found, audit.judgement),
        "checks": {
            name: {"question": question, "answer": checks[name].answer, "about": checks[name].about}
            for name, question in QUESTIONS.items()
        },
        "control": audit.found.control,
        "levels": {name: null(level.value) for name, level in audit.found.levels.items()},
        "levels_of": audit.found.levels["unlearned"].about,
        "notes": list(notes),
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (context.out / AUDIT_FILE).write_text(text + "\n", encoding="utf-8")


def audits_step(audits: Sequence[StepGroup], axes: Sequence[str], *, label: str) -> Step:
    """Gather the audits of an experiment.

    Args:
        audits: their values are `axes` (pairs), `seed` and `method`; their step is `audit`.
        axes: all swept axes.
        label: for people.
    """
    return Step(
        kind="unlearning_audits",
        label=label,
        function=f"{__name__}:build_audits",
        settings={"places": [dict(one.values) for one in audits], "axes": list(axes)},
        inputs=numbered_inputs([one.steps for one in audits]),
    )


def build_audits(context: StepContext) -> None:
    """Write one table of all audits, pooled over seeds, too."""
    rows: list[dict[str, Any]] = []
    seeds: dict[str, list[Path]] = {}
    for number, place in enumerate(context.settings["places"]):
        folder = numbered_folders(context.inputs, number)["audit"]
        axes = {axis_column(axis): value for axis, value in place["axes"]}
        table = read_table(folder, QUESTION).to_pylist()
        rows += [{**row, **axes, "seed": place["seed"]} for row in table]
        seeds.setdefault(json.dumps({**axes, "method": place["method"]}), []).append(folder)
    for arm, folders in seeds.items():
        if len(folders) > 1:
            pooled = pooled_rows([read_seed(folder) for folder in folders])
            rows += [{**json.loads(arm), "seed": None, **row} for row in pooled]
    table = question_table(QUESTION, context.settings["axes"], rows)
    write_findings(context.out, {QUESTION: table})


class Counted(NamedTuple):
    """What a share is counted over in one seed."""

    values: Floats
    """1 or 0; NaN for a text that does not count."""
    groups: tuple[str, ...]
    copies: npt.NDArray[np.int64]


AuditedSeed = dict[str, Counted]
"""One seed's audit of a method: what each share is counted over."""


def read_seed(folder: Path) -> AuditedSeed:
    """Return one seed's audit from its artifact.

    Raises:
        InputError: naming the file that is missing or damaged.
    """
    record = json.loads((folder / AUDIT_FILE).read_text(encoding="utf-8"))
    band = Band(*record["settings"]["audit"]["band"])
    rows = read_parquet(folder / CHUNKS_FILE).to_pylist()
    audited = [row for row in rows if row["part"] == "audited"]
    outside = [row for row in rows if row["part"] == "holdout"]
    flagged = _flags(audited, "ratio", band)
    # What had no control nobody remembers.
    known = np.array([bool(row["remembered"]) for row in audited])
    before = np.array([bool(row["remembered_original"]) for row in audited])
    shares = {
        "flagged": flagged,
        "false_alarms": _flags(audited, "retrained_ratio", band),
        "remembered_original": before.astype(float),
        "remembered_unlearned": known.astype(float),
        "missed": np.where(known & np.isfinite(flagged), flagged == 0, np.nan),
        "wrong": np.where(flagged == 1, ~known, np.nan),
    }
    return {
        **{name: _counted(values, audited) for name, values in shares.items()},
        "flagged_holdout": _counted(_flags(outside, "ratio", band), outside),
    }


def _counted(values: Floats, rows: Sequence[Mapping[str, Any]]) -> Counted:
    copies = [1 if row["copies"] is None else row["copies"] for row in rows]
    return Counted(values, tuple(row["group"] for row in rows), np.array(copies, dtype=np.int64))


def _flags(rows: Sequence[Mapping[str, Any]], column: str, band: Band) -> Floats:
    """Return 1 where the rule flags a chunk, 0 where not; NaN without a ratio."""
    ratios = [math.nan if row[column] is None else row[column] for row in rows]
    values = np.array(ratios, dtype=np.float64)
    return np.where(np.isfinite(values), band.holds(values), np.nan)


def pooled_rows(seeds: Sequence[AuditedSeed]) -> list[dict[str, Any]]:
    """Return the shares over all seeds, and those of each number of copies.

    Args:
        seeds: two or more, of one method.
    """
    counts = [count for seed in seeds for count in seed["flagged"].copies.tolist()]
    doses = [cell for cell in copies_cells(counts, high_copies=1 << 62) if is_dose(cell.label)]
    cells = [EVERY_MEMBER, *doses] if len(doses) > 1 else [EVERY_MEMBER]
    rows = []
    for quantity in seeds[0]:
        wanted = [EVERY_MEMBER] if quantity == "flagged_holdout" else cells
        of_seed = [seed[quantity] for seed in seeds]
        rows += [{"quantity": quantity, **row} for row in share_rows(of_seed, wanted)]
    return rows


def share_rows(seeds: Sequence[Counted], cells: Sequence[CopiesCell]) -> list[dict[str, Any]]:
    """Return a share of each number of copies over all seeds; none where nothing counts.

    A number of copies with fewer than three groups in every seed has no row.
    """
    groups = [group for one in seeds for group in one.groups]
    copies = np.concatenate([one.copies for one in seeds])
    seed = np.repeat(np.arange(len(seeds)), [len(one.values) for one in seeds])
    rows = Rows.of(pack_groups(groups)[0], seed=seed)
    within = np.array([cell.holds(copies) for cell in cells])
    numbers = share_numbers(rows, np.concatenate([one.values for one in seeds]), within)
    found = numbers.clustered()
    if found is None:
        return []
    return [
        {
            "copies": cell.label,
            **{name: getattr(estimate, name) for name in ("value", "low", "high", "seeds", "note")},
            "chunks": estimate.members,
        }
        for cell, estimate, fewest in zip(
            cells, numbers.estimates(confidence=CONFIDENCE), found.smaller_groups, strict=True
        )
        if np.isfinite(estimate.value) and (cell.label == ALL or fewest >= LEAST_GROUPS)
    ]
