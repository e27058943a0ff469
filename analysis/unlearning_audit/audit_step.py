"""The steps of audits: what an unlearned model still writes of what it should have forgotten.

Scores and continuations were made by other steps. In an experiment each forgotten text is one
chunk, all of them are continued by all models, and non-members are the control texts; texts that
cannot be divided, or of which no copy was fed, are left out. One step gathers all audits.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arm import axis_column
from analysis.findings import question_table, read_table, write_findings
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
from analysis.unlearning_audit.pooled import pooled_rows, read_seed
from analysis.unlearning_audit.ratio import Band, Scores
from analysis.unlearning_audit.settings import AuditRule, ChunkAudit
from analysis.unlearning_audit.text_chunks import AUDITED, HOLDOUT, Chunk
from detect.generation.continuations import CONTINUATIONS_FILE, read_continuations
from detect.scores.table import read_scores
from inject.examples.example import Example, read_examples
from inject.examples.forget_set import forgotten_rows
from inject.examples.parts import UNSPLIT
from inject.settings import plain
from inject.step import Step, StepContext, StepGroup, numbered_folders, numbered_inputs
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts


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
    forgotten = [
        row
        for row in forgotten_rows(pool, read_examples(folders["membership"]))
        if copies.get(row.example_id)
    ]
    written = read_continuations(folders["unlearned-written"])
    divided = [row for row in forgotten if written[row.example_id].reason is None]
    prompts = [len(written[row.example_id].beginning) for row in divided]
    audited = [_whole(*each) for each in zip(range(len(divided)), divided, prompts, strict=True)]
    others = [row for row in pool if row.side == "nonmember"]
    held_out = [
        _whole(number, row, 0, part=HOLDOUT) for number, row in enumerate(others, len(audited))
    ]
    notes = []
    if left_out := len(forgotten) - len(divided):
        notes.append(f"{left_out:,} texts are too short to be divided, and are left out")
    evidence = read_evidence(context, [*audited, *held_out])
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
        "level": None if math.isnan(audit.found.level.value) else audit.found.level.value,
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
