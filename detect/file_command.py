"""`spikein detect`: score any file of rows with any model; no experiment is needed.

Everything that can be wrong with the input (rows, labels, the place of the output, detectors
without what they need) is found before a model is loaded. AUCs are the analysis' business:
the result holds scores and labels.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from detect.evidence import Evidence, Frequency, Need, Reference, Shadows, Sides
from detect.policy import ScoringPolicy
from detect.registry import DetectorSetting, names_all, parse_detectors
from detect.scoring import needed_views, needs, runnable, score_rows, write_scores
from detect.settings import CompileMode, Dtype
from detect.statistics import TokenStatistics
from detect.views import view_text
from inject.errors import InputError
from inject.example import example_id
from inject.rows import read_rows, source_files

_TEXT_FIELDS = ("text", "input")
_LABELS = {0: False, 1: True, "0": False, "1": True, "true": True, "false": False}

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


class LabelledRows(NamedTuple):
    """The rows of a file of examples; lists of one length."""

    texts: list[str]
    ids: list[str]
    """The row's own `id`, else the hash of its text; equal ids are separate rows."""
    labels: list[bool] | None
    """True for members; None where the file has no labels."""
    groups: list[str] | None


class DetectFileResult(NamedTuple):
    """What was written, and what a table of AUCs needs."""

    scores: pa.Table
    rows: LabelledRows
    notes: tuple[str, ...]
    out: Path


def detect_file(request: DetectFileRequest, progress: Progress | None = None) -> DetectFileResult:
    """Score every row with every detector asked for, and write `request.out` (Parquet).

    Raises:
        InputError: unreadable rows, wrong labels, an output that cannot be written, unknown
            detectors, a detector named without what it needs, a model that cannot be loaded.
    """
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
    settings, left_out = runnable(asked, missing, leave_out=names_all(request.detectors))
    unused = _check_needs(request, settings)
    evidence = _evidence(request, rows, settings, progress or (lambda what, done, total: None))
    table, notes = score_rows(rows.ids, evidence, settings)
    record = {
        "model": request.model,
        "revision": request.revision,
        "reference": request.reference,
        "dtype": request.dtype,
        "policy": request.policy.record(),
        "frequency": dict(evidence.frequency.identity) if evidence.frequency else None,
    }
    write_scores(request.out, table, record=record)
    return DetectFileResult(table, rows, (*left_out, *unused, *notes), request.out)


def read_labelled(pattern: str) -> LabelledRows:
    """Read rows of `text` (or `input`), optional `id`, `label` and `group`.

    Raises:
        InputError: naming file and line: a row without text, a label that is none of 0, 1,
            true, false, or labels on some rows only.
    """
    texts, ids, labels, groups = [], [], [], []
    unlabelled = None
    for place, values in read_rows(pattern, what="examples"):
        text = _text(values, place)
        texts.append(text)
        own = values.get("id")
        ids.append(example_id(text) if own in (None, "") else str(own))
        label = _label(values.get("label"), place)
        if label is None:
            unlabelled = unlabelled or place
        else:
            labels.append(label)
        group = values.get("group")
        groups.append(text if group in (None, "") else f"group {group}")
        if labels and unlabelled:
            raise InputError(
                "this row has no label, and others have one",
                where=unlabelled,
                allowed="a label on every row, or on none",
            )
    grouped = any(group != text for group, text in zip(groups, texts, strict=True))
    return LabelledRows(texts, ids, labels or None, groups if grouped else None)


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
        from detect.frequency import count_files
        from detect.target import load_target

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
        from detect.target import load_target

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
    from detect.engine import token_statistics

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


def _text(values: Mapping[str, Any], place: str) -> str:
    name = next((name for name in _TEXT_FIELDS if name in values), None)
    if name is None:
        raise InputError(
            f"the row has no text, only {', '.join(values) or 'no fields at all'}",
            where=place,
            allowed=" or ".join(f"a field {name!r}" for name in _TEXT_FIELDS),
        )
    value = values[name]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{name!r} holds {type(value).__name__}, not a string", where=place)
    return value


def _label(value: Any, place: str) -> bool | None:
    if value is None or value == "":
        return None
    key = value.strip().lower() if isinstance(value, str) else value
    if not isinstance(key, int | float | str) or key not in _LABELS:
        raise InputError(
            f"label {value!r} is neither member nor non-member",
            where=place,
            allowed="1 or true for members, 0 or false for non-members",
        )
    return _LABELS[key]


def _check_needs(request: DetectFileRequest, settings: list[DetectorSetting]) -> tuple[str, ...]:
    """Find out before the work whether models and texts are there; say what is not used."""
    from train.pretrained import find_model

    notes = []
    if needed_views(settings):
        find_model(
            request.model,
            revision=request.revision,
            trust_remote_code=request.trust_remote_code,
        )
    for need, given in ((Reference(), request.reference), (Frequency(), request.frequency)):
        if given and not needs(settings, need):
            notes.append(f"{given} is not used: no detector asked for needs {need}")
        elif given and isinstance(need, Reference):
            find_model(given, trust_remote_code=request.trust_remote_code)
        elif given:
            source_files(given, what="frequency")
    return tuple(notes)


def _check_writable(out: Path) -> None:
    """Find out before the work whether its result can be written."""
    if out.is_dir():
        raise InputError("is a folder; name a file", where=str(out), allowed="scores.parquet")
    if not out.parent.is_dir():
        raise InputError("the folder for the scores does not exist", where=str(out.parent))
    if not os.access(out.parent, os.W_OK):
        raise InputError("the folder for the scores cannot be written to", where=str(out.parent))
