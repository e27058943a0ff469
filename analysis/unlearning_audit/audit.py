"""Audits as steps: what an unlearned model still writes of what it should have forgotten.

Scores and continuations were made by other steps. In an experiment each forgotten text is one
chunk, all of them are continued by all models, non-members are the control texts, and the other
members are texts that the model should still know; texts that cannot be divided, or of which no
copy was fed, are left out. Chunks, continuations and findings are tables of their own; one step
gathers the findings of all audits.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arm import axis_column
from analysis.copy_bins import ALL, EVERY_MEMBER, copies_cells
from analysis.findings import question_table, read_table, write_findings
from analysis.intervals.ends import LEAST_GROUPS
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Floats, Mask, pack_groups
from analysis.intervals.rows import Rows, share_numbers
from analysis.settings import AuditRule, ChunkAudit
from analysis.unit import Unit
from analysis.unlearning_audit.checks import QUESTIONS, Judgement, Weights, judge
from analysis.unlearning_audit.evidence import (
    AUDITED,
    HOLDOUT,
    QUESTION,
    RETAINED,
    Chunks,
    prompt_of,
    read_evidence,
    rest_of,
)
from analysis.unlearning_audit.rule import (
    AuditShares,
    Band,
    audit_shares,
    counted_shares,
    likeness,
    question_findings,
)
from analysis.unlearning_audit.shares import CONFIDENCE
from detect.generation.continuations import CONTINUATIONS_FILE, read_continuations
from inject.examples.example import UNSPLIT, Example, members, read_examples
from inject.examples.forget_set import forgotten_rows
from inject.settings import plain
from inject.step import Step, StepContext, StepGroup, numbered_folders, numbered_inputs
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts
from inject.tables import read_parquet

AUDITS = "unlearning_audits"
"""The question of the findings."""
AUDIT_FILE = "unlearning_audit.json"
CHUNKS_FILE = "chunks.parquet"
_PLACE = ("start", "stop", "prompt_stop")
_COLUMNS = """
    chunk:int64 part:string text_id:string group:string start:int64 stop:int64 prompt_stop:int64
    original:double unlearned:double retrained:double ratio:double retrained_ratio:double
    suspicious:bool continued:bool remembered:bool remembered_original:bool
    loss_original:double loss_unlearned:double loss_retrained:double
    reason:string copies:int64 prompt:string truth:string
"""
_SHARE = Unit("%", 1, 100.0)
CHUNKS = pa.schema(
    (name, pa.type_for_alias(kind))
    for name, _, kind in (column.partition(":") for column in _COLUMNS.split())
)


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
    prompts = {
        row.example_id: len(written[row.example_id].beginning)
        for row in forgotten
        if written[row.example_id].reason is None
    }
    chunks = [
        *(_whole_text(row, AUDITED, prompts[row.example_id])
          for row in forgotten if row.example_id in prompts),
        *(_whole_text(row, HOLDOUT) for row in pool if row.side == "nonmember"),
        *(_whole_text(row, RETAINED) for row in retained),
    ]  # fmt: skip
    notes = []
    if left_out := len(forgotten) - len(prompts):
        notes.append(f"{left_out:,} texts are too short to be divided, and are omitted")
    weights = Weights(False, math.nan, "the experiment trained it from the original")
    write_audit(context, read_evidence(context, chunks), notes, weights=weights, copies=copies)


def _whole_text(row: Example, part: str, prompt_stop: int = 0) -> Example:
    fields = {"start": 0, "stop": len(row.text), "prompt_stop": prompt_stop}
    return replace(row, dataset=part, source_id=row.example_id, fields=fields)


def write_audit(
    context: StepContext,
    chunks: Chunks,
    notes: Sequence[str],
    *,
    weights: Weights,
    guessing: float = math.inf,
    copies: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Audit one unlearned model, and write chunks, continuations, findings and the verdict.

    Args:
        context: of the step; its settings are `audit` (of an `AuditRule`), `method`, and more.
        chunks: of all parts: those that are audited, those of texts that no model saw, those that
            the unlearned model should still know, and questions.
        notes: its caveats.
        weights: their comparison with the original's.
        guessing: loss of guessing tokens by their frequency; infinite if it is unknown.
        copies: that the original saw, by text; empty if they are unknown.
    """
    settings = context.settings["audit"]
    rule = AuditRule.model_validate({name: settings[name] for name in AuditRule.model_fields})
    band = Band(*rule.band)
    parts = {name: chunks.part(name) for name in (AUDITED, HOLDOUT, RETAINED, QUESTION)}
    audited = parts[AUDITED]
    measured = audit_shares(audited, parts[HOLDOUT], band=band, rate=rule.false_alarms)
    judgement = judge(parts, weights, measured, guessing=guessing)
    estimates = {
        **measured.shares,
        **{name: judgement.checks[name].measure for name in QUESTIONS},
        **likeness(audited, band.flags(audited.ratios["unlearned"])),
        **question_findings(parts[QUESTION], band),
    }
    head = {"method": context.settings["method"], "chunks": len(audited.rows)}
    rows = [_row(name, estimate) | head for name, estimate in estimates.items()]
    pq.write_table(_chunk_table(chunks, audited, measured, band, copies), context.out / CHUNKS_FILE)
    pq.write_table(_blank_protected(chunks), context.out / CONTINUATIONS_FILE)
    write_findings(context.out, {AUDITS: question_table(AUDITS, (), rows)})
    written = measured.written
    record = {
        "settings": dict(context.settings),
        "verdict": judgement.verdict,
        "headline": headline(measured, judgement),
        "checks": {
            name: {"question": question, "answer": check.answer, "about": check.about}
            for name, question in QUESTIONS.items()
            for check in (judgement.checks[name],)
        },
        "control": measured.control,
        "levels": {name: none_if_nan(memory.level.value) for name, memory in written.items()},
        "levels_of": written["unlearned"].level.about,
        "notes": list(notes),
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (context.out / AUDIT_FILE).write_text(text + "\n", encoding="utf-8")


def _row(quantity: str, estimate: Estimate) -> dict[str, Any]:
    return {
        "copies": ALL,
        "quantity": quantity,
        **{end: getattr(estimate, end) for end in ("value", "low", "high")},
        "seeds": 1,
        "note": "; ".join(part for part in (estimate.reason, estimate.caution) if part),
    }


def _blank_protected(chunks: Chunks) -> pa.Table:
    """Return continuations; the text is null if the chunk is protected: it may be that text."""
    table = chunks.continuations
    texts = [
        None if chunks.rows[row["chunk"]].protected else row["text"]
        for row in table.select(["chunk", "text"]).to_pylist()
    ]
    place = table.schema.get_field_index("text")
    return table.set_column(place, "text", pa.array(texts, pa.string()))


def _chunk_table(
    chunks: Chunks, audited: Chunks, measured: AuditShares, band: Band, copies: Mapping[str, int]
) -> pa.Table:
    flags = band.holds(chunks.ratios["unlearned"]).tolist()
    continued = {*chunks.continuations["chunk"].to_pylist()}
    remembered = {
        name: {int(audited.numbers[at]): hit for at, hit in measured.written[model].remembered}
        for name, model in (("remembered", "unlearned"), ("remembered_original", "original"))
    }
    ratios = {"ratio": "unlearned", "retrained_ratio": "retrained"}
    numbers = {
        **chunks.scores,
        **{f"loss_{model}": values for model, values in chunks.losses.items()},
        **{name: chunks.ratios[model] for name, model in ratios.items() if model in chunks.ratios},
    }
    rows = [
        {
            "chunk": at,
            "part": row.dataset,
            "text_id": row.source_id,
            "group": row.group,
            **{name: row.fields[name] for name in _PLACE},
            **{name: none_if_nan(values[at]) for name, values in numbers.items()},
            "suspicious": flags[at],
            "continued": row.dataset not in (HOLDOUT, RETAINED) and at in continued,
            **{name: by_chunk.get(at) for name, by_chunk in remembered.items()},
            "reason": chunks.reasons[at],
            "copies": copies.get(row.source_id),
            "prompt": None if row.protected else prompt_of(row),
            "truth": None if row.protected else rest_of(row),
        }
        for at, row in enumerate(chunks.rows)
    ]
    return pa.Table.from_pylist(rows, schema=CHUNKS)


def none_if_nan(value: float) -> float | None:
    """Return a number; None if it is none."""
    return float(value) if isfinite(value) else None


def headline(measured: AuditShares, judgement: Judgement) -> str:
    """Return the sentence on the share that the unlearned model still writes, with the verdict."""
    after, before = (measured.shares[f"remembered_{model}"] for model in ("unlearned", "original"))
    if not isnan(after.value):
        written = (
            f"The unlearned model still writes {_percent(after)} of the chunks, the original "
            f"{_percent(before)}"
        )
    elif measured.longest:
        words, original_words = (measured.longest[model] for model in ("unlearned", "original"))
        written = (
            f"The unlearned model still writes up to {words:g} true words in a row, the original "
            f"{original_words:g}; whether that exceeds chance is unknown: {after.reason}"
        )
    else:
        written = (
            f"The share that the unlearned model still writes was not measured: {after.reason}"
        )
    return f"{written}. {judgement.verdict.capitalize()}: {judgement.meaning}."


def _percent(share: Estimate) -> str:
    if isnan(share.low):
        why = f" (no interval: {share.reason})" if share.reason else ""
        return f"{_SHARE.number(share.value)} %{why}"
    return _SHARE.text(*share[:3])


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
        settings={"places": [dict(audit.values) for audit in audits], "axes": list(axes)},
        inputs=numbered_inputs([audit.steps for audit in audits]),
    )


def build_audits(context: StepContext) -> None:
    """Write one table of all audits, also pooled over seeds."""
    rows: list[dict[str, Any]] = []
    seeds: dict[str, list[Path]] = {}
    for number, place in enumerate(context.settings["places"]):
        folder = numbered_folders(context.inputs, number)["audit"]
        axes = {axis_column(axis): value for axis, value in place["axes"]}
        table = read_table(folder, AUDITS).to_pylist()
        rows += [{**row, **axes, "seed": place["seed"]} for row in table]
        seeds.setdefault(json.dumps({**axes, "method": place["method"]}), []).append(folder)
    for arm, folders in seeds.items():
        if len(folders) > 1:
            rows += [{**json.loads(arm), "seed": None, **row} for row in pooled_rows(folders)]
    table = question_table(AUDITS, context.settings["axes"], rows)
    write_findings(context.out, {AUDITS: table})


def pooled_rows(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the shares over all seeds, and those of each number of copies.

    Args:
        folders: two or more audits of one method, one per seed.

    Raises:
        InputError: naming the file that is missing or damaged.
    """
    record = json.loads((folders[0] / AUDIT_FILE).read_text(encoding="utf-8"))
    band = Band(*record["settings"]["audit"]["band"])
    chunk_rows = [
        {**row, "seed": seed}
        for seed, folder in enumerate(folders)
        for row in read_parquet(folder / CHUNKS_FILE).to_pylist()
    ]
    audited, outside = (
        [row for row in chunk_rows if row["part"] == part] for part in (AUDITED, HOLDOUT)
    )
    # Without a control no chunk counts as remembered.
    remembered = {
        model: np.array([bool(row[column]) for row in audited], dtype=np.float64)
        for model, column in (("original", "remembered_original"), ("unlearned", "remembered"))
    }
    ratios, retrained = (_numbers(audited, name) for name in ("ratio", "retrained_ratio"))
    shares = counted_shares(ratios, retrained, remembered, band)
    copies = _numbers(audited, "copies", missing=1).astype(np.int64)
    _, *doses = copies_cells(copies.tolist(), high_copies=1 << 62)
    cells = [EVERY_MEMBER, *(doses if len(doses) > 1 else ())]
    within = {cell.label: cell.holds(copies) for cell in cells}
    rows = [
        {"quantity": quantity, **row}
        for quantity, values in shares.items()
        for row in share_rows(rows_of(audited), values, within)
    ]
    flagged = band.flags(_numbers(outside, "ratio"))
    whole = {ALL: np.ones(len(outside), dtype=bool)}
    pooled = share_rows(rows_of(outside), flagged, whole)
    return [*rows, *({"quantity": "flagged_holdout", **row} for row in pooled)]


def rows_of(chunks: Sequence[Mapping[str, Any]]) -> Rows:
    """Return chunks of all seeds, by their seeds and groups, as intervals take them."""
    groups, _ = pack_groups([row["group"] for row in chunks])
    return Rows.of(groups, seed=[row["seed"] for row in chunks])


def _numbers(rows: Sequence[Mapping[str, Any]], column: str, missing: float = math.nan) -> Floats:
    values = [missing if row[column] is None else row[column] for row in rows]
    return np.array(values, dtype=np.float64)


def share_rows(rows: Rows, values: Floats, within: Mapping[str, Mask]) -> list[dict[str, Any]]:
    """Return the share at each copy count over all seeds; empty if nothing counts.

    A number of copies with fewer than three groups in every seed has no row.

    Args:
        rows: chunks of all seeds.
        values: as `counted_shares`.
        within: mask of the chunks with each copy count.
    """
    numbers = share_numbers(rows, values, np.array([*within.values()]))
    cluster = numbers.clustered()
    if cluster is None:
        return []
    return [
        {
            "copies": label,
            **{name: getattr(estimate, name) for name in ("value", "low", "high", "seeds", "note")},
            "chunks": estimate.members,
        }
        for label, estimate, fewest in zip(
            within, numbers.estimates(confidence=CONFIDENCE), cluster.smaller_groups, strict=True
        )
        if np.isfinite(estimate.value) and (label == ALL or fewest >= LEAST_GROUPS)
    ]
