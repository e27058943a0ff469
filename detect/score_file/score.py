"""Scores of any rows under any model, from a file (`spikein detect`) or from memory; no experiment
is needed.

Everything that can be wrong with the input (rows, labels, the place of the output, detectors
without what they need) is found before a model is loaded. AUCs are the analysis' business:
the result holds scores and labels. Errors name the command's flags, or the function's arguments.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from detect.evidence import Evidence, Frequency, Need, Reference, Shadows, Sides
from detect.policy import ScoringPolicy
from detect.registry import DetectorSetting, names_all, parse_detectors
from detect.score_file.labelled_rows import LabelledRows, read_labelled
from detect.score_file.output import check_suffix, write_score_file
from detect.scoring import SCORES_FILE, needed_views, needs, runnable, score_rows
from detect.settings import CompileMode, Dtype
from detect.token_statistics import TokenStatistics
from detect.views import view_text
from inject.errors import InputError
from inject.reading.rows import source_files

_FLAG_HINTS: Mapping[str, str] = {
    "reference model": "Name a reference model (--reference PATH).",
    "token frequencies": "Name texts to count token frequencies in (--frequency FILE).",
    "labels": "Give every row a label, 1 for members and 0 for non-members.",
    "shadow models": "Shadow models are trained by experiments alone (`spikein run`).",
}
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

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, tokens done, tokens in all)."""


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """How a model is asked for scores."""

    policy: ScoringPolicy = field(default_factory=ScoringPolicy)
    """Start token, first token, long texts."""
    batch_tokens: int | None = None
    """Padded tokens in one batch; chosen for the device when None. No influence on the scores."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda:1` …"""
    dtype: Dtype = "auto"
    """Number format of the model; statistics are float32 in any case."""
    compile: CompileMode = "auto"
    """Whether the statistics of the vocabulary are compiled."""
    revision: str | None = None
    """Of the model, on the hub."""
    trust_remote_code: bool = False
    """Run code that the model's repository brings along."""
    cache: Path | None = None
    """Folder for counted frequencies; by default the user's cache folder."""


@dataclass(frozen=True, kw_only=True)
class ScoringRequest(ScoringOptions):
    """Which model scores, with which detectors, and what they are given."""

    model: str
    """A folder or a hub id."""
    reference: str | None = None
    """A model with its own tokenizer, for `reference`."""
    frequency: str | None = None
    """Any file, folder or glob of texts, for `dc_pdd`."""
    detectors: str | Sequence[str] = "all"
    """`all`, `min_k:k=0.2,zlib`, or a list of such parts."""


@dataclass(frozen=True, kw_only=True)
class DetectFileRequest(ScoringRequest):
    """What `spikein detect` was asked for."""

    examples: str
    """A file, folder or glob of rows: `text` or `input`, optional `id`, `label`, `group`."""
    out: Path


class LabelledScores(NamedTuple):
    """The scores of rows."""

    scores: pa.Table
    """See `detect.scoring.SCHEMA`."""
    notes: tuple[str, ...]
    record: Mapping[str, Any]
    """How they were made, as plain JSON values."""


class DetectFileResult(NamedTuple):
    """What was written, and what a table of it needs."""

    scores: pa.Table
    rows: LabelledRows
    notes: tuple[str, ...]
    out: Path


def detect_file(request: DetectFileRequest, progress: Progress | None = None) -> DetectFileResult:
    """Score every row with every detector asked for, and write `request.out`.

    Raises:
        InputError: unreadable rows, wrong labels, an output that cannot be written, unknown
            detectors, a detector named without what it needs, a model that cannot be loaded;
            in the words of the command's flags.
    """
    try:
        return _detect(request, progress or (lambda what, done, total: None))
    except InputError as error:
        told = _in_flags(error)
        if str(told) == str(error):
            raise
        raise told from error


def _detect(request: DetectFileRequest, progress: Progress) -> DetectFileResult:
    parse_detectors(request.detectors)
    _check_writable(request.out)
    rows = read_labelled(request.examples)
    found = score_labelled_rows(rows, request, progress, hints=_FLAG_HINTS)
    write_score_file(request.out, found.scores, record=found.record)
    return DetectFileResult(found.scores, rows, found.notes, request.out)


def score_labelled_rows(
    rows: LabelledRows,
    request: ScoringRequest,
    progress: Progress,
    *,
    hints: Mapping[str, str],
) -> LabelledScores:
    """Score every row with every detector asked for.

    Args:
        rows: texts, and their labels and groups where they are known.
        request: the model, the detectors, and what they are given.
        progress: called with what is being done, tokens done, and tokens in all.
        hints: what to do about each need that is not met, in the words of whoever asks.

    Raises:
        InputError: unknown detectors, a detector named without what it needs, or a model that
            cannot be loaded.
    """
    asked = parse_detectors(request.detectors)
    given: Mapping[Need, object] = {
        Reference(): request.reference,
        Frequency(): request.frequency,
        Sides(): rows.labels,
        Shadows(): None,
    }
    missing = [need for need, value in given.items() if not value]
    settings, left_out = runnable(
        asked, missing, leave_out=names_all(request.detectors), hints=hints
    )
    unused = _check_needs(request, settings)
    evidence = _evidence(request, rows, settings, progress)
    table, notes = score_rows(rows.ids, evidence, settings)
    record = {
        "model": request.model,
        "revision": request.revision,
        "reference": request.reference,
        "dtype": request.dtype,
        "policy": request.policy.record(),
        "frequency": dict(evidence.frequency.identity) if evidence.frequency else None,
    }
    return LabelledScores(table, (*left_out, *unused, *notes), record)


def _evidence(
    request: ScoringRequest,
    rows: LabelledRows,
    settings: list[DetectorSetting],
    progress: Progress,
) -> Evidence:
    views = needed_views(settings)
    wants_frequency = needs(settings, Frequency())
    statistics: dict[str, list[TokenStatistics]] = {}
    frequency = reference = None
    if views:
        from detect.engine.target import load_target
        from detect.token_frequency import count_files

        target = load_target(
            request.model,
            revision=request.revision,
            trust_remote_code=request.trust_remote_code,
            device=request.device,
            dtype=request.dtype,
        )
        if wants_frequency and request.frequency:
            cache = request.cache or default_cache()
            frequency = count_files(target.tokenizer, request.frequency, cache=cache)
        for view in views:
            shown = [view_text(view, text) for text in rows.texts]
            statistics[view] = _statistics(target, shown, request, f"view {view}", progress)
        del target
    if request.reference and needs(settings, Reference()):
        from detect.engine.target import load_target

        other = load_target(
            request.reference,
            trust_remote_code=request.trust_remote_code,
            device=request.device,
            dtype=request.dtype,
        )
        reference = _statistics(other, rows.texts, request, "reference model", progress)
    return Evidence(
        texts=rows.texts,
        statistics=statistics,
        reference=reference,
        frequency=frequency,
        members=rows.labels,
        groups=rows.groups,
    )


def _statistics(
    target: Any, texts: list[str], request: ScoringRequest, what: str, progress: Progress
) -> list[TokenStatistics]:
    from detect.engine.forward_pass import token_statistics

    return token_statistics(
        target,
        texts,
        request.policy,
        batch_tokens=request.batch_tokens,
        compile_mode=request.compile,
        progress=lambda done, total: progress(what, done, total),
    )


def default_cache() -> Path:
    """Return the folder for counted frequencies, below `XDG_CACHE_HOME` or `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "spikein" / "frequency"


def _check_needs(request: ScoringRequest, settings: list[DetectorSetting]) -> tuple[str, ...]:
    """Find out before the work whether models and texts are there; say what is not used."""
    from train.models.pretrained import code_options, find_model
    from train.models.weight_check import check_causal

    def check(name: str, revision: str | None) -> None:
        trusted = request.trust_remote_code
        found = find_model(name, revision=revision, trust_remote_code=trusted)
        check_causal(found.path, name, code_options(found, name, trust_remote_code=trusted))

    notes = []
    if needed_views(settings):
        check(request.model, request.revision)
    for need, given in ((Reference(), request.reference), (Frequency(), request.frequency)):
        if given and not needs(settings, need):
            notes.append(f"{given} is not used: no detector asked for needs {need}")
        elif given and isinstance(need, Reference):
            check(given, None)
        elif given:
            source_files(given, what="frequency")
    return tuple(notes)


def _in_flags(error: InputError) -> InputError:
    def said(text: str | None) -> str | None:
        for pattern, flag in _FLAGS:
            text = pattern.sub(flag, text) if text else text
        return text

    where = "--device" if error.where == "device" else error.where
    return InputError(
        said(error.problem) or "", where=where, allowed=said(error.allowed), hint=said(error.hint)
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
