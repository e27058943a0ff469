"""`spikein detect`: score any file of rows with any model; no experiment is needed.

Everything that can be wrong with the input (rows, labels, the place of the output, detectors
without what they need) is found before a model is loaded. AUCs are the analysis' business:
the result holds scores and labels. Errors name the command's flags, or the function's arguments.
"""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from detect.detector_settings import (
    DetectorSetting,
    needs_of,
    parse_detectors,
    plugin_digests,
    repeated_detectors,
    with_control,
)
from detect.named_entities.tagger import tagger_record
from detect.score_file.benchmarks import get_benchmark
from detect.score_file.calibration import Calibration, calibrate, calibrated_by, held_out_need
from detect.score_file.evidence.provider import Progress, Work
from detect.score_file.evidence.providers import check_needs, read_evidence, unmet
from detect.score_file.held_out_file import read_held_out_file
from detect.score_file.labelled_rows import LabelledRows, read_labelled, rows_notes
from detect.score_file.output import check_suffix, write_score_file
from detect.score_file.request import DetectFileRequest, ScoringRequest
from detect.score_file.served import (
    check_served,
    estimate_requests,
    open_server,
    served_detectors,
)
from detect.scores.table import SCORES_FILE
from detect.scoring import runnable, score_rows
from detect.settings import names_all
from inject.errors import InputError
from inject.server.client import Estimate

OnEstimate = Callable[[Estimate], None]

# What other parts call by the keys of an experiment file has a flag here.
_FLAGS = (
    (re.compile(r"\b(bos|long|score_first)=(\w+)"), r"--\1 \2"),
    (re.compile(r"--score_first"), "--score-first"),
    (re.compile(r"\bSet model\.trust_remote_code\b"), "Give --trust-remote-code"),
    (re.compile(r"`detectors`"), "--detectors"),
    (
        re.compile(r"Give a smaller context, a 16-bit dtype, or another device\."),
        "Give --dtype bfloat16, or another --device.",
    ),
)


class LabelledScores(NamedTuple):
    """The scores of rows."""

    scores: pa.Table
    """See `detect.scores.table.SCHEMA`."""
    notes: tuple[str, ...]
    record: Mapping[str, Any]
    """How they were made, as plain JSON values."""
    calibration: Calibration | None = None
    """Scores of held-out rows; None where none were given, or no detector can score them."""


class DetectFileResult(NamedTuple):
    """What was written, and what a table of it needs."""

    scores: pa.Table
    rows: LabelledRows
    notes: tuple[str, ...]
    out: Path
    calibration: Calibration | None = None
    """Scores of held-out rows, which calibrate decisions about the others."""


def detect_file(
    request: DetectFileRequest,
    on_progress: Progress | None = None,
    on_estimate: OnEstimate | None = None,
) -> DetectFileResult:
    """Score every row with every detector asked for, and write `request.out`.

    Args:
        request: rows, model, detectors.
        on_progress: called with what is being done, and how far it is.
        on_estimate: called before a server is asked, with what that will take.

    Raises:
        InputError: unreadable rows, wrong labels, an output that cannot be written, unknown
            detectors, a detector named without what it needs, a model that cannot be loaded;
            in the words of the command's flags.
    """
    try:
        return _detect(request, on_progress or _silent, on_estimate)
    except InputError as error:
        in_flags = _in_flags(error)
        if str(in_flags) == str(error):
            raise
        raise in_flags from error


def _silent(what: str, done: int, total: int) -> None:
    pass


def _detect(
    request: DetectFileRequest, on_progress: Progress, on_estimate: OnEstimate | None
) -> DetectFileResult:
    parse_detectors(request.detectors)
    benchmark = None if request.benchmark is None else get_benchmark(request.benchmark)
    _check_writable(request.out)
    rows = (benchmark.read if benchmark else read_labelled)(request.examples)
    found = score_labelled_rows(
        rows,
        request,
        on_progress,
        on_estimate=on_estimate,
        control=benchmark is not None,
    )
    write_score_file(request.out, found.scores, record=found.record)
    notes = (f"{benchmark.name}: {benchmark.warning}.",) if benchmark else ()
    return DetectFileResult(
        found.scores,
        rows,
        (*notes, *found.notes),
        request.out,
        found.calibration,
    )


def score_labelled_rows(
    rows: LabelledRows,
    request: ScoringRequest,
    on_progress: Progress,
    *,
    on_estimate: OnEstimate | None = None,
    in_code: bool = False,
    control: bool = False,
) -> LabelledScores:
    """Score every row with every detector asked for.

    Args:
        rows: texts, and their labels and groups where they are known.
        request: the model, the detectors, and what they are given.
        on_progress: called with what is being done, and tokens (or prompts of a server) done and
            in all.
        on_estimate: called before a server is asked, with what that will take.
        in_code: errors name arguments of `spikein.score_texts`, in place of the command's flags.
        control: score labelled rows with `blind`, too, whatever was asked for.

    Raises:
        InputError: unknown detectors, a detector named without what it needs, a model that cannot
            be loaded, or a server that gives no answer.
    """
    asked = _asked(request)
    if control and rows.labels is not None:
        asked = with_control(asked)
    leave_out = names_all(request.detectors)
    check_served(request, rows, in_code=in_code)
    held_out = None
    if request.held_out is not None:
        # Refused now, whoever needs it.
        held_out = read_held_out_file(request.held_out, rows)
    notes = [*repeated_detectors(request.detectors), *rows_notes(rows)]
    with ExitStack() as opened:
        work = Work(request=request, rows=rows, on_progress=on_progress)
        served = None
        if request.server is not None:
            served = work.asked = opened.enter_context(open_server(request, request.server))
            asked, beyond = served_detectors(asked, served, leave_out=leave_out)
            notes += beyond
        settings, lacking = runnable(
            asked, unmet(request, rows, in_code=in_code), leave_out=leave_out
        )
        needs = needs_of(settings)
        if held_out is not None and held_out.nonmembers and served is None:
            needs = tuple(dict.fromkeys([*needs, *held_out_need(settings)]))
        notes += [*lacking, *check_needs(request, needs)]
        if served is not None and on_estimate is not None:
            on_estimate(estimate_requests(request, rows, needs, served))
        evidence = read_evidence(work, needs)
        if served is not None:
            notes += served.notes()
    protected = bool(rows.protected or (held_out is not None and held_out.protected))
    table, remarks = score_rows(rows.ids, evidence, settings, protected=protected)
    calibration = None
    if held_out is not None and evidence.held_out is not None and calibrated_by(settings):
        calibration, without = calibrate(evidence, settings, held_out.groups)
        notes += without
    record = {
        "model": request.model,
        "server": request.server
        and {"base_url": request.server.base_url, "api": request.server.api},
        "revision": request.revision,
        "reference": request.reference,
        "held_out": request.held_out,
        "dtype": request.dtype,
        "policy": request.policy.record(),
        "tagger": tagger_record(request.tagger) if evidence.entities is not None else None,
        "frequency": dict(evidence.frequency.identity) if evidence.frequency else None,
        "plugins": plugin_digests(settings),
    }
    return LabelledScores(table, (*notes, *remarks), record, calibration)


def _asked(request: ScoringRequest) -> list[DetectorSetting]:
    """Return the detectors asked for, each once."""
    every = {(one.name, one.text): one for one in parse_detectors(request.detectors)}
    # The settings of a detector stand together: they are scored in one call.
    places = {name: at for at, name in enumerate(dict.fromkeys(name for name, _ in every))}
    return sorted(every.values(), key=lambda one: places[one.name])


def _in_flags(error: InputError) -> InputError:
    def in_flags(text: str | None) -> str | None:
        for pattern, flag in _FLAGS:
            text = pattern.sub(flag, text) if text else text
        return text

    where = "--device" if error.where == "device" else error.where
    return InputError(
        in_flags(error.problem) or "",
        where=where,
        allowed=in_flags(error.allowed),
        hint=in_flags(error.hint),
    )


def _check_writable(out: Path) -> None:
    """Find out before the work whether its result can be written."""
    if out.is_dir():
        raise InputError("is a folder; name a file", where=str(out), allowed=SCORES_FILE)
    check_suffix(out)
    if not out.parent.is_dir():
        raise InputError("the folder for the scores does not exist", where=str(out.parent))
    if not os.access(out.parent, os.W_OK):
        raise InputError("the folder for the scores cannot be written to", where=str(out.parent))
