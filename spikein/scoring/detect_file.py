"""`spikein detect`: score any file of rows with any model; no experiment is needed.

Problems of the input are found before a model is loaded. AUCs are computed from the result, which
contains scores and labels.

A dry run scores no text and sends none. It estimates time like `spikein plan`: by the operations of
a pass, and the rate at which this machine trains a model of the sizes, which takes some seconds to
measure. Steps in which a model generates text have no estimate. A few short requests, without any
text of the rows, determine what a server supports.
"""

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from detect.detector_settings import parse_detectors
from detect.scores.table import write_score_table
from detect.user_rows.benchmarks import get_benchmark
from detect.user_rows.labelled_rows import read_labelled
from detect.user_rows.row_settings import RowSettings
from inject.errors import InputError, first_names
from inject.files import write_text
from inject.hub.address import parse_address
from inject.hub.resolver import resolve_commit
from inject.reading.rows import source_files
from inject.server.client import RequestEstimate
from inject.step import Step
from inject.tables import csv_text
from spikein.config.hub_files import local_path
from spikein.estimates.step_times import OTHER_SECONDS, pass_seconds, reading_rate
from spikein.executors.user_model_graphs import open_store
from spikein.pipeline.graph import Graph
from spikein.pipeline.graph import plan as plan_steps
from spikein.progress import Progress
from spikein.scoring.benchmark_files import check_commit
from spikein.scoring.options import ScoringOptions
from spikein.scoring.scored_rows import RowsPlan, ScoredRows, plan_rows, score_rows
from spikein.store.filesystem import check_file, writing
from train.models.model_sizes import sizes_of_config
from train.models.pretrained import find_model

_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-]+")
_MOST_NAMED = 5
_WITH_SUBSETS = "--benchmark toaa, --benchmark hubble"
SUFFIXES = (".parquet", ".csv", ".jsonl")
_READS = {"statistics": 1, "gradients": 3}
"""Kinds of step in which a model reads each text, and their cost in forward passes."""
_TEXTLESS = ("examples", "scores")
_BYTES_A_TOKEN = 4


def plan_file(
    examples: str,
    model: str,
    out: Path,
    options: ScoringOptions,
    *,
    benchmark: str | None = None,
) -> RowsPlan:
    """Read the rows of a file, and return the plan to score them.

    Args:
        examples: a file, folder or glob of rows, or a dataset of the hub: `text` or `input`,
            optional `id`, `label`, `group`.
        model: a folder, a hub id, or the model's name on a server.
        out: the file of scores.
        options: rows and columns, detectors and their inputs, and how the model is queried.
        benchmark: the benchmark of the rows (`detect.user_rows.benchmarks`); None for others.

    Raises:
        InputError: for unreadable rows, wrong labels, an output that cannot be written, unknown
            detectors, a named detector without its requirements, a model that cannot be loaded,
            rows of another commit than the benchmark's.
    """
    parse_detectors(options.detectors)
    known_benchmark = None if benchmark is None else get_benchmark(benchmark)
    if options.subset is not None and not (known_benchmark and known_benchmark.has_subsets):
        raise InputError("a subset is part of a benchmark", where="subset", allowed=_WITH_SUBSETS)
    _check_writable(out)
    path = _rows_path(examples)
    _check_no_input(out, path, options)
    address = parse_address(examples)
    origin = None
    if address is not None:
        origin = (address.id, resolve_commit("dataset", address.id, address.revision))
    if known_benchmark is not None:
        check_commit(known_benchmark, path, origin)
    rows = (known_benchmark.read if known_benchmark else read_labelled)(path, options)
    plan = plan_rows(rows, model, options, control=known_benchmark is not None)
    read = {"file": examples, **options.model_dump(include=set(RowSettings.model_fields))}
    notes = (f"{known_benchmark.name}: {known_benchmark.warning}.",) if known_benchmark else ()
    if origin is not None:
        read["commit"] = origin[1]
        notes = (*notes, _hub_note(path, origin[1]))
    return replace(plan, record={**plan.record, "examples": read}, notes=(*notes, *plan.notes))


def _rows_path(examples: str) -> str:
    """Return the path of the rows; fetch those of the hub."""
    if _HUB_ID.fullmatch(examples) and not Path(examples).exists():
        raise InputError(
            "no such file or folder",
            where=examples,
            hint=f"A dataset of the hub is written hf://datasets/{examples}.",
        )
    return local_path(examples)


def _hub_note(path: str, commit: str) -> str:
    """Return the files of a dataset that were read, and their commit."""
    names = first_names([file.name for file in source_files(path)], _MOST_NAMED)
    return f"Read at commit {commit}: {names}."


def score_file(plan: RowsPlan, out: Path, *, progress: Progress | None = None) -> ScoredRows:
    """Score the rows of `plan_file`, and write `out`; errors as `score_rows`."""
    scored = score_rows(plan, progress)
    with writing(out.parent, "Give another file by --out.", "the scores"):
        write_score_file(out, scored.scores, record=scored.record)
    return scored


def _check_writable(out: Path) -> None:
    """Check before the work that its result can be written."""
    if not out.parent.is_dir():
        raise InputError("the folder for the scores does not exist", where=str(out.parent))
    check_file(out)
    if out.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"scores cannot be written as {out.suffix or 'a name without an end'!r}",
            where=str(out),
            allowed=", ".join(SUFFIXES),
        )


def _check_no_input(out: Path, path: str, options: ScoringOptions) -> None:
    """Refuse to overwrite input files."""
    if not out.exists():
        return
    for pattern in (path, options.held_out, options.frequency):
        files: list[Path] = []
        # Unreadable files are refused by the code that needs them.
        with suppress(InputError):
            files = source_files(pattern or "")
        if any(out.samefile(file) for file in files):
            raise InputError(
                "the scores would overwrite rows that are read",
                where=str(out),
                hint="Give another file by --out.",
            )


def write_score_file(path: Path, scores: pa.Table, *, record: Mapping[str, Any]) -> None:
    """Write the rows of scores in the format that `path` ends with, whole or not at all.

    Parquet keeps the record of their origin; in CSV a missing score is an empty cell, in JSON Lines
    null. In CSV an id that a spreadsheet would read as a formula gets an apostrophe
    (`inject.tables.csv_text`).
    """
    if path.suffix.lower() == ".parquet":
        write_score_table(path, scores, record=record)
        return
    rows = [
        {**row, "score": None if math.isnan(row["score"]) else row["score"]}
        for row in scores.to_pylist()
    ]
    if path.suffix.lower() == ".jsonl":
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        write_text(path, "".join(f"{line}\n" for line in lines))
        return
    write_text(path, csv_text(scores.column_names, [list(row.values()) for row in rows], end="\n"))


class PlannedStep(NamedTuple):
    """One step of a dry run."""

    kind: str
    label: str
    detectors: tuple[str, ...]
    """That need it."""
    state: str
    """In the store, or to do."""
    to_do: bool
    tokens: int | None
    """That a model reads, roughly: a quarter of the texts' bytes."""
    requests: RequestEstimate | None
    """To a server."""
    seconds: float | None
    """On this machine; None if there is no estimate."""


def planned_steps(plan: RowsPlan, requests: Mapping[str, RequestEstimate]) -> list[PlannedStep]:
    """Return the steps of a plan: which are stored, and the cost of the others.

    Args:
        plan: of `plan_rows`.
        requests: of `count_requests`.
    """
    tokens = sum(-(-len(text.encode()) // _BYTES_A_TOKEN) for text in plan.rows.texts)
    with open_store(plan.options.store) as store:
        steps = plan_steps(Graph(goals=(plan.step,)), store)
    context = max(tokens // max(len(plan.rows.texts), 1), 1)
    return [
        PlannedStep(
            kind=planned.step.kind,
            label=planned.step.label,
            detectors=plan.detectors_of.get(planned.step.digest, ()),
            state=planned.in_words,
            to_do=planned.to_do,
            tokens=tokens if _reads_rows(planned.step) else None,
            requests=requests.get(planned.step.digest),
            seconds=_seconds(planned.step, tokens, context) if planned.to_do else None,
        )
        for planned in steps
    ]


def _reads_rows(step: Step) -> bool:
    return step.kind in _READS and step.settings.get("rows") != "held_out"


def _seconds(step: Step, tokens: int, context: int) -> float | None:
    """Return the seconds that a step takes here; None if that cannot be estimated."""
    if step.kind in _TEXTLESS:
        return OTHER_SECONDS
    model = step.execution.get("model", {})
    if not _reads_rows(step) or not model.get("pretrained"):
        return None
    config = find_model(model["pretrained"], revision=model.get("revision")).path / "config.json"
    sizes = sizes_of_config(json.loads(config.read_text(encoding="utf-8")), source="")
    if sizes is None:
        return None
    context = min(context, sizes.shape.context)
    tokens *= _READS[step.kind]
    return pass_seconds(tokens, sizes=sizes, rate=reading_rate(sizes), context=context)
