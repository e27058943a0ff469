"""The steps of the audits of unlearned models: what each still writes of the forget set.

Continuations and scores were made by other steps; one step gathers all audits of an experiment.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arm import axis_column
from analysis.unlearning_audit.audit_tables import MODELS
from analysis.unlearning_audit.forgotten import (
    HOLDOUT_FILE,
    SCHEMA,
    AuditedModel,
    audit_forgotten,
    audit_rows,
    flagged_holdout,
    holdout_table,
)
from analysis.unlearning_audit.pooled import pooled_rows, read_seed
from analysis.unlearning_audit.ratio import Band
from analysis.unlearning_audit.report import (
    AUDIT_FILE,
    CHUNKS_FILE,
    PAGE_FILE,
    audit_json,
    write_audit_page,
)
from analysis.unlearning_audit.settings import ChunkAudit
from detect.generation.continuations import CONTINUATIONS_FILE, read_continuations
from detect.scores.table import read_scores
from inject.examples.example import read_examples
from inject.examples.forget_set import forgotten_rows
from inject.examples.parts import UNSPLIT
from inject.settings import plain
from inject.step import Step, StepContext, StepGroup, numbered_folders, numbered_inputs
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts
from inject.tables import read_parquet

AUDITS_FILE = "unlearning_audits.parquet"
LOSS = {"detector": "loss"}
"""Whose scores say whether a model still works; audits of experiments without it do not."""
PAGES = "audits"
"""Folder of the pages, one an unlearned model."""


def audit_step(
    inputs: Mapping[str, Step],
    settings: ChunkAudit,
    *,
    method: str,
    arm: str,
    scored: tuple[str, str],
) -> Step:
    """Audit one unlearned model.

    Args:
        inputs: `examples`, `membership` (the sides that hold for the retrained model), `exposures`
            (the original model), and `MODEL-scores` and `MODEL-written` of each of `MODELS`.
        settings: of the audit.
        method: the method setting's label.
        arm: the arm's label.
        scored: the detector and its setting whose scores the ratio is of.
    """
    detector, setting = scored
    return Step(
        kind="unlearning_audit",
        label=f"{method}-{arm}",
        function=f"{__name__}:build_audit",
        settings={
            "method": method,
            "arm": arm,
            "audit": plain(settings),
            "detector": detector,
            "setting": setting,
        },
        inputs=inputs,
        reads={"examples": UNSPLIT, "membership": UNSPLIT, "exposures": EXPOSURES},
    )


def build_audit(context: StepContext) -> None:
    """Audit the model, and write tables, findings and page."""
    given, out = context.inputs, context.out
    asked = ChunkAudit.model_validate(context.settings["audit"])
    method, arm = context.settings["method"], context.settings["arm"]
    wanted = {name: context.settings[name] for name in ("detector", "setting")}
    band = Band(*asked.band)
    pool = read_examples(given["examples"])
    copies = seen_copy_counts(read_exposures(given["exposures"]))
    rows = [
        row
        for row in forgotten_rows(pool, read_examples(given["membership"]))
        if copies.get(row.example_id)
    ]
    scores = {name: _scores(given[f"{name}-scores"], wanted) for name in MODELS}
    written = {name: read_continuations(given[f"{name}-written"]) for name in MODELS}
    losses = {name: _scores(given[f"{name}-scores"], LOSS) for name in MODELS}
    others = [row for row in pool if row.side == "nonmember"]
    found = audit_forgotten(
        rows,
        others,
        AuditedModel(scores, losses if all(losses.values()) else {}, written),
        band=band,
        rate=asked.false_alarms,
    )
    holdout = holdout_table(others, scores, band)
    seen = pa.array([copies[chunk.text_id] for chunk in found.chunks], pa.int64())
    pq.write_table(found.chunk_table.append_column("copies", seen), out / CHUNKS_FILE)
    pq.write_table(found.continuations, out / CONTINUATIONS_FILE)
    pq.write_table(holdout, out / HOLDOUT_FILE)
    table = audit_rows(method, found.findings, flagged_holdout(holdout), len(found.chunks))
    pq.write_table(pa.Table.from_pylist(table, schema=pa.schema(SCHEMA)), out / AUDITS_FILE)
    record = audit_json(found, {**plain(asked), "method": method, "arm": arm})
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (out / AUDIT_FILE).write_text(text + "\n", encoding="utf-8")
    write_audit_page(
        out / PAGE_FILE,
        found,
        title=f"Audit of {method}, {arm}",
        about={"Unlearned": method, "Arm": arm},
        detector=f"{wanted['detector']}, {wanted['setting']}",
        hide_texts=False,
    )


def audits_step(audits: Sequence[StepGroup], axes: Sequence[str], *, label: str) -> Step:
    """Gather the audits of an experiment.

    Args:
        audits: their values are `axes` (pairs), `seed`, `method` and `page`, a file's name; their
            step is `audit`.
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
    """Write one table of all audits, pooled over seeds, too, and copy the pages."""
    rows: list[dict[str, Any]] = []
    several: dict[str, list[Path]] = {}
    (context.out / PAGES).mkdir()
    for number, place in enumerate(context.settings["places"]):
        folder = numbered_folders(context.inputs, number)["audit"]
        axes = {axis_column(axis): value for axis, value in place["axes"]}
        table = read_parquet(folder / AUDITS_FILE).to_pylist()
        rows += [{**axes, "seed": place["seed"], **row} for row in table]
        shutil.copyfile(folder / PAGE_FILE, context.out / PAGES / _safe(place["page"]))
        arm = json.dumps({**axes, "method": place["method"]})
        several.setdefault(arm, []).append(folder)
    for arm, folders in several.items():
        if len(folders) > 1:
            pooled = pooled_rows([read_seed(folder) for folder in folders])
            rows += [{**json.loads(arm), "seed": None, **row} for row in pooled]
    columns = [(axis_column(axis), pa.string()) for axis in context.settings["axes"]]
    schema = pa.schema([*columns, ("seed", pa.int64()), *SCHEMA])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), context.out / AUDITS_FILE)


def _scores(folder: Path, wanted: Mapping[str, str]) -> dict[str, float]:
    table = read_scores(folder, columns=["example_id", "detector", "setting", "score"])
    return {
        row["example_id"]: row["score"]
        for row in table.to_pylist()
        if all(row[key] == value for key, value in wanted.items())
    }


def _safe(name: str) -> str:
    return "".join(
        sign if sign.isalnum() or sign in "-_.=," else "-" for sign in name.replace(", ", ",")
    )
