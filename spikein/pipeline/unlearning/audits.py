"""The audits of unlearned models: what each still writes of the forget set, and the ratio rule.

Continuations are a step a model, so that all methods share those of the original and of the
retrained model; scores are those that the experiment made. One step gathers all audits of an
experiment.
"""

import json
import shutil
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arm import axis_column
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
from detect.detector_settings import DetectorSetting, parse_detectors
from detect.generation.beginning import Beginning
from detect.generation.continuations import (
    CONTINUATIONS_FILE,
    ContinuationRequest,
    continue_texts,
    read_continuations,
    request_record,
    write_continuations,
)
from detect.scoring import read_scores
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.examples.forget_set import forgotten_rows
from inject.examples.parts import UNSPLIT
from inject.settings import plain
from inject.source_digest import root
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts
from inject.tables import read_parquet
from spikein.config.unlearning_section import ChunkAudit
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.inputs import numbered_folders, numbered_inputs
from spikein.pipeline.steps.scores import asked_settings
from spikein.pipeline.steps.statistics import model_libraries, open_target
from spikein.pipeline.steps.training import ModelNode
from spikein.pipeline.unlearning.nodes import UnlearnedModel, UnlearningNodes

AUDITS_FILE = "unlearning_audits.parquet"
LOSS = {"detector": "loss"}
"""Whose scores say whether a model still works; audits of experiments without it do not."""
PAGES = "audits"
"""Folder of the pages, one an unlearned model."""


def audits_step(arms: Sequence[UnlearningNodes], settings: ChunkAudit, *, label: str) -> Step:
    """Audit all unlearned models of an experiment, and gather what was found.

    Args:
        arms: of all axes and seeds.
        settings: of the audits.
        label: for people.

    Raises:
        InputError: the detector is not among those of the experiment.
    """
    audited = [(arm, one) for arm in arms for one in arm.unlearned]
    steps = [{"audit": _audit_step(arm, one, settings)} for arm, one in audited]
    inputs = numbered_inputs(steps)
    axes = list(dict.fromkeys(axis for arm in arms for axis in arm.arm.labels))
    places: list[dict[str, Any]] = [
        {
            "axes": {axis_column(axis): str(value) for axis, value in arm.arm.labels.items()},
            "seed": arm.arm.seed,
            "method": one.setting.label,
            "page": f"{one.setting.label}, {arm.arm.label}.html",
        }
        for arm, one in audited
    ]

    def build(context: StepContext) -> None:
        rows: list[dict[str, Any]] = []
        several: dict[str, list[Path]] = {}
        (context.out / PAGES).mkdir()
        for number, place in enumerate(places):
            folder = numbered_folders(context.inputs, number)["audit"]
            table = read_parquet(folder / AUDITS_FILE).to_pylist()
            rows += [{**place["axes"], "seed": place["seed"], **row} for row in table]
            shutil.copyfile(folder / PAGE_FILE, context.out / PAGES / _safe(place["page"]))
            arm = json.dumps({**place["axes"], "method": place["method"]})
            several.setdefault(arm, []).append(folder)
        for arm, folders in several.items():
            if len(folders) > 1:
                pooled = pooled_rows([read_seed(folder) for folder in folders])
                rows += [{**json.loads(arm), "seed": None, **row} for row in pooled]
        columns = [(axis_column(axis), pa.string()) for axis in axes]
        schema = pa.schema([*columns, ("seed", pa.int64()), *SCHEMA])
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), context.out / AUDITS_FILE)

    return Step(
        kind="unlearning_audits",
        label=label,
        settings={"places": places, "axes": axes},
        inputs=inputs,
        code=(root(build),),
        build=build,
    )


def _audit_step(nodes: UnlearningNodes, one: UnlearnedModel, settings: ChunkAudit) -> Step:
    detector = _detector(nodes, settings)
    models = {
        "original": (nodes.original, nodes.original_scores),
        "unlearned": (one.trained, one.scores),
        "retrained": (nodes.retrained.trained, nodes.retrained_scores),
    }
    inputs = {"examples": nodes.examples, "membership": nodes.retrained.membership}
    for name, (model, scores) in models.items():
        inputs[f"{name}-scores"] = scores
        inputs[f"{name}-written"] = _written_step(nodes, model, settings)
    inputs["exposures"] = nodes.original
    method, arm = one.setting.label, nodes.arm.label
    wanted = {"detector": detector.name, "setting": detector.text}
    band = Band(*settings.band)

    def build(context: StepContext) -> None:
        given = context.inputs
        pool = read_examples(given["examples"].path)
        copies = seen_copy_counts(read_exposures(given["exposures"].path))
        rows = [
            row
            for row in forgotten_rows(pool, read_examples(given["membership"].path))
            if copies.get(row.example_id)
        ]
        scores = {name: _scores(given[f"{name}-scores"].path, wanted) for name in models}
        written = {name: read_continuations(given[f"{name}-written"].path) for name in models}
        losses = {name: _scores(given[f"{name}-scores"].path, LOSS) for name in models}
        if not all(losses.values()):
            losses = {}
        others = [row for row in pool if row.side == "nonmember"]
        found = audit_forgotten(
            rows,
            others,
            AuditedModel(scores, losses, written),
            band=band,
            rate=settings.false_alarms,
        )
        holdout = holdout_table(others, scores, band)
        seen = pa.array([copies[chunk.text_id] for chunk in found.chunks], pa.int64())
        pq.write_table(found.chunk_table.append_column("copies", seen), context.out / CHUNKS_FILE)
        pq.write_table(found.continuations, context.out / CONTINUATIONS_FILE)
        pq.write_table(holdout, context.out / HOLDOUT_FILE)
        table = audit_rows(method, found.findings, flagged_holdout(holdout), len(found.chunks))
        pq.write_table(
            pa.Table.from_pylist(table, schema=pa.schema(SCHEMA)), context.out / AUDITS_FILE
        )
        record = audit_json(found, {**plain(settings), "method": method, "arm": arm})
        text = json.dumps(record, indent=2, ensure_ascii=False)
        (context.out / AUDIT_FILE).write_text(text + "\n", encoding="utf-8")
        write_audit_page(
            context.out / PAGE_FILE,
            found,
            title=f"Audit of {method}, {arm}",
            about={"Unlearned": method, "Arm": arm},
            detector=f"{detector.name}, {detector.text}",
            hide_texts=False,
        )

    return Step(
        kind="unlearning_audit",
        label=f"{method}-{arm}",
        settings={
            "method": method,
            "arm": arm,
            "audit": plain(settings),
            **wanted,
        },
        inputs=inputs,
        code=(root(build),),
        reads={"examples": UNSPLIT, "membership": UNSPLIT, "exposures": EXPOSURES},
        build=build,
    )


def _written_step(nodes: UnlearningNodes, model: Step, settings: ChunkAudit) -> Step:
    """Let one model continue the forgotten texts."""
    node = ModelNode(step=model)
    detect = nodes.sources.detect
    request = ContinuationRequest(
        beginning=Beginning("share", Decimal(str(settings.prompt))),
        samples=settings.samples,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        seed=nodes.arm.seed,
    )

    def build(context: StepContext) -> None:
        from detect.targets.local import LocalTextModel

        pool = read_examples(context.inputs["examples"].path)
        rows = forgotten_rows(pool, read_examples(context.inputs["membership"].path))
        found = continue_texts(
            LocalTextModel(open_target(node, context.inputs, detect)),
            [row.text for row in rows],
            request,
            answers=context.unfinished,
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
        write_continuations(context.out, [row.example_id for row in rows], found)

    return Step(
        kind="forgotten_continuations",
        label=f"{request.samples}-{node.label}",
        settings={
            "request": request_record(request),
            "dtype": node.dtype_identity(detect.dtype),
            **node.settings("model"),
        },
        inputs={
            **node.inputs("model"),
            "examples": nodes.examples,
            "membership": nodes.retrained.membership,
        },
        libraries=model_libraries(node, detect),
        code=(root(build),),
        reads={"examples": UNSPLIT, "membership": UNSPLIT},
        build=build,
    )


def _detector(nodes: UnlearningNodes, settings: ChunkAudit) -> DetectorSetting:
    asked = parse_detectors(settings.detector)
    scored = {(one.name, one.text) for one in asked_settings(nodes.sources).settings}
    if len(asked) != 1 or (asked[0].name, asked[0].text) not in scored:
        raise InputError(
            f"unlearning.audit.detector: {settings.detector!r} is not among the detectors of the "
            "experiment",
            where="detect.detectors",
            allowed=", ".join(sorted(f"{name}:{text}" for name, text in scored)),
            hint="Add it to detect.detectors, or name one of those.",
        )
    return asked[0]


def _scores(folder: Path, wanted: dict[str, str]) -> dict[str, float]:
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
