"""`spikein detect`: score any file of rows with any model; no experiment is needed.

Everything that can be wrong with the input (rows, labels, the place of the output, detectors
without what they need) is found before a model is loaded. AUCs are the analysis' business:
the result holds scores and labels. What goes wrong is told in the words of the command's flags.
"""

import os
import re
from collections.abc import Callable, Mapping
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
class DetectFileRequest:
    """What `spikein detect` was asked for."""

    model: str
    examples: str
    """A file, folder or glob of rows: `text` or `input`, optional `id`, `label`, `group`."""
    out: Path
    reference: str | None = None
    """A model with its own tokenizer, for `reference`."""
    frequency: str | None = None
    """Any file, folder or glob of texts, for `dc_pdd`."""
    detectors: str = "all"
    policy: ScoringPolicy = field(default_factory=ScoringPolicy)
    batch_tokens: int | None = None
    device: str = "auto"
    dtype: Dtype = "auto"
    compile: CompileMode = "auto"
    revision: str | None = None
    """Of `model`, on the hub."""
    trust_remote_code: bool = False
    cache: Path | None = None
    """Folder for counted frequencies; by default the user's cache folder."""


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
    asked = parse_detectors(request.detectors)
    _check_writable(request.out)
    rows = read_labelled(request.examples)
    given: Mapping[Need, object] = {
        Reference(): request.reference,
        Frequency(): request.frequency,
        Sides(): rows.labels,
        Shadows(): None,
    }
    missing = [need for need, value in given.items() if not value]
    settings, left_out = runnable(
        asked, missing, leave_out=names_all(request.detectors), hints=_FLAG_HINTS
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
    write_score_file(request.out, table, record=record)
    return DetectFileResult(table, rows, (*left_out, *unused, *notes), request.out)


def _evidence(
    request: DetectFileRequest,
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
    target: Any, texts: list[str], request: DetectFileRequest, what: str, progress: Progress
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


def _check_needs(request: DetectFileRequest, settings: list[DetectorSetting]) -> tuple[str, ...]:
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
