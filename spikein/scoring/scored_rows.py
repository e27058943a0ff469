"""Rows of a user scored by a given model: what `spikein detect` and `spikein.score_texts` do.

The rows become an examples artifact, each need of the detectors is met by the step that meets it in
an experiment, and the scores are a step, too. Everything that can be wrong with the input is found
before a model is loaded. Errors name the command's flags, or the function's arguments.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.decisions.flagged_file import Calibration
from detect.access import Access
from detect.detector_settings import (
    DetectorSetting,
    needs_of,
    parse_detectors,
    plugin_digests,
    repeated_detectors,
    with_control,
)
from detect.evidence.entities import tagger_record
from detect.evidence.frequency import Frequency
from detect.evidence.held_out import HeldOut
from detect.evidence.needs import EvidenceSources, Need, Scored, every_kind, unmet
from detect.evidence.reference import Reference
from detect.evidence.token_counts import file_frequency_step
from detect.evidence.views import InverseTemperature, View
from detect.policy import ScoringPolicy
from detect.scores.table import HELD_OUT_SCORES, read_scores, score_notes
from detect.scores_step import settings_step
from detect.scoring import runnable
from detect.settings import (
    CompileMode,
    DetectSettings,
    DeviceMap,
    Dtype,
    NeighbourSettings,
    detector_parts,
    names_all,
)
from detect.user_rows.labelled_rows import KnownTexts, LabelledRows, read_held_out_file, rows_notes
from detect.user_rows.rows_step import rows_step
from detect.views import TEXT
from inject.errors import InputError
from inject.reading.rows import source_files
from inject.server.address import Server
from inject.server.client import Estimate
from inject.step import Step
from spikein.executors.given_models import build_steps, cache_folder, given_model, open_store
from spikein.progress import Progress
from spikein.scoring.served_rows import Served, check_protected
from train.device import default_device
from train.models.model_node import ModelNode

OnEstimate = Callable[[Estimate], None]


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
    device_map: DeviceMap = "none"
    """`auto` spreads a large model over all devices."""
    compile: CompileMode = "auto"
    """Whether the statistics of the vocabulary are compiled."""
    revision: str | None = None
    """Of the model, on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with the model's repository."""
    held_out: str | None = None
    """A file, folder or glob of further texts, none of them scored, which the model has not seen:
    shots and populations for `recall`, `codec` and the like. Rows with label 1 are known members,
    for `con_recall`."""
    generate: bool = False
    """Let the model write, for the detectors of `all` that read what a model writes: dear, as a
    token is written at a time. A detector that is named needs no leave."""
    word_reference: str | None = None
    """A model that says which words surprise, for `info_probe`; None: the reference."""
    knowledge_filter: str | None = None
    """A model whose guesses `info_probe:filtered=true` leaves out."""
    tagger: str | None = None
    """A spaCy pipeline, installed or a folder, that finds named entities, for
    `tag_tab:entities=one_word`."""
    neighbours: str | None = None
    """A masked language model, a folder or a hub id, for `neighbour`."""
    store: str | Path | None = None
    """Folder of the artifacts that scores are made of; by default in the cache folder."""
    executor: str | None = None
    """Where they are made, by name; in this process when None."""
    cache: Path | None = None
    """Folder for a server's replies; by default the user's cache folder."""
    server: Server | None = None
    """Where the model is served; None for a model on this machine."""
    send_protected: tuple[str, ...] = ()
    """Protected datasets, by name, whose texts may be sent to the server."""


@dataclass(frozen=True, kw_only=True)
class ScoringRequest(ScoringOptions):
    """Which model scores, with which detectors, and what they are given."""

    model: str
    """A folder or a hub id."""
    reference: str | None = None
    """A model with its own tokenizer, for `reference`."""
    frequency: str | None = None
    """Any file, folder or glob of texts, for `dc_pdd` and `tag_tab`."""
    detectors: str | Sequence[str] = "all"
    """`all`, `min_k:k=0.2,zlib`, or a list of such parts."""


class LabelledScores(NamedTuple):
    """The scores of rows."""

    scores: pa.Table
    """See `detect.scores.table.SCHEMA`."""
    notes: tuple[str, ...]
    record: Mapping[str, Any]
    """How they were made, as plain JSON values."""
    calibration: Calibration | None = None
    """Scores of held-out rows; None where none were given, or no detector can score them."""


def score_labelled_rows(
    rows: LabelledRows,
    request: ScoringRequest,
    progress: Progress | None = None,
    *,
    on_estimate: OnEstimate | None = None,
    in_code: bool = False,
    control: bool = False,
) -> LabelledScores:
    """Score every row with every detector asked for.

    Args:
        rows: texts, and their labels and groups where they are known.
        request: the model, the detectors, and what they are given.
        progress: receives the events of the run.
        on_estimate: called before a server is asked, with what that will take.
        in_code: errors name arguments of `spikein.score_texts`, in place of the command's flags.
        control: score labelled rows with `blind`, too, whatever was asked for.

    Raises:
        InputError: unknown detectors, a detector named without what it needs, a model that cannot
            be loaded, or a server that gives no answer.
    """
    planned = _planned(rows, request, in_code=in_code, control=control)
    notes, step, served = list(planned.notes), planned.step, planned.served
    with open_store(_store(request)) as store:

        def build(*goals: Step) -> list[Path]:
            return build_steps(goals, store, executor=request.executor, progress=progress)

        if served is None:
            [folder] = build(step)
        else:
            if on_estimate is not None:
                on_estimate(served.estimate(step, build))
            stored = served.stored(step, store)
            [folder] = build(step)
            notes += served.notes(step, build, stored)
        table = _with_own_ids(read_scores(folder), rows.ids)
        calibration = None
        if planned.calibration_groups is not None:
            calibration = Calibration(
                pq.read_table(folder / HELD_OUT_SCORES), planned.calibration_groups
            )
        notes += score_notes(folder)
    return LabelledScores(table, tuple(dict.fromkeys(notes)), planned.record, calibration)


class _Planned(NamedTuple):
    step: Step
    """The scores."""
    served: Served | None
    calibration_groups: tuple[str, ...] | None
    """Of the held-out rows, where they are scored, too."""
    record: Mapping[str, Any]
    notes: list[str]


def _planned(
    rows: LabelledRows, request: ScoringRequest, *, in_code: bool, control: bool
) -> _Planned:
    """Return the step of the scores; everything that can be wrong with the input is found."""
    asked = _asked(request)
    if control and rows.labels is not None:
        asked = with_control(asked)
    # Refused now, whoever needs it.
    held_out = read_held_out_file(request.held_out, rows) if request.held_out else None
    leave_out = names_all(request.detectors)
    notes = [*repeated_detectors(request.detectors), *rows_notes(rows)]
    served = _served(request, rows, held_out, in_code=in_code)
    if served is not None:
        asked, beyond = served.detectors(asked, leave_out=leave_out)
        notes += beyond
    sources = _sources(rows, held_out, request)
    settings, lacking = runnable(asked, _hints(sources, in_code=in_code), leave_out=leave_out)
    needs = needs_of(settings)
    notes += [*lacking, *_unused(needs, sources.detect)]
    model = served.node if served else _model(needs, request)
    if any(isinstance(need, Frequency) for need in needs):
        pattern = request.frequency or ""
        source_files(pattern, what="frequency")
        sources = replace(sources, frequency=file_frequency_step(pattern, model))
    calibrated = _calibrated(settings) if sources.held_out and served is None else []
    groups = None
    if calibrated and held_out is not None:
        groups = tuple(row.group for row in held_out.nonmembers)
        notes += _not_calibrated(settings, calibrated)
    step = settings_step(settings, Scored(model, "arm"), sources, calibrated=calibrated)
    return _Planned(step, served, groups, _record(request, settings, sources), notes)


def _served(
    request: ScoringRequest, rows: LabelledRows, held_out: KnownTexts | None, *, in_code: bool
) -> Served | None:
    """Return the server that is asked, if any, and refuse to send it what nobody asked to send."""
    if request.server is None:
        if request.send_protected:
            raise InputError("texts are sent to a server only", where="send_protected")
        return None
    if request.server.model != request.model:
        raise InputError(
            f"the server is asked for the model {request.server.model!r}, and {request.model!r} "
            "is scored",
            where="server",
            hint="Give both one name.",
        )
    check_protected(request.server, rows, held_out, request.send_protected, in_code=in_code)
    return Served(request.server, cache=request.cache or cache_folder())


def _asked(request: ScoringRequest) -> list[DetectorSetting]:
    """Return the detectors asked for, each once."""
    every = {(one.name, one.text): one for one in parse_detectors(request.detectors)}
    # The settings of a detector stand together: they are scored in one call.
    places = {name: at for at, name in enumerate(dict.fromkeys(name for name, _ in every))}
    return sorted(every.values(), key=lambda setting: places[setting.name])


def _sources(
    rows: LabelledRows, held_out: KnownTexts | None, request: ScoringRequest
) -> EvidenceSources:
    parts = detector_parts(request.detectors)
    policy = {name: getattr(request.policy, name) for name in ScoringPolicy.__dataclass_fields__}
    neighbours = request.neighbours
    detect = DetectSettings(
        **policy,
        detectors="all" if names_all(parts) else tuple(parts),
        reference=request.reference,
        frequency=None if request.server else request.frequency,
        # Nothing else can be had of a server.
        generate=request.generate or request.server is not None,
        word_reference=request.word_reference,
        knowledge_filter=request.knowledge_filter,
        tagger=request.tagger,
        neighbours=None if neighbours is None else NeighbourSettings(model=neighbours),
        dtype=default_device().scoring_format(request.dtype, where=request.device),
        batch_tokens=request.batch_tokens,
        compile=request.compile,
        device=request.device,
        device_map=request.device_map,
    )
    return EvidenceSources(
        detect=detect,
        examples=rows_step(rows, held_out),
        held_out=bool(held_out and held_out.nonmembers),
        known_members=bool(held_out and held_out.members),
        labelled=rows.labels is not None,
        paraphrased=any(rows.paraphrases or ()),
        of_file=True,
        trust_remote_code=request.trust_remote_code,
    )


def _hints(sources: EvidenceSources, *, in_code: bool) -> Callable[[Need], str | None]:
    hint = unmet(sources)

    def in_words(need: Need) -> str | None:
        text = hint(need)
        return _in_code(text) if in_code and text else text

    return in_words


def _in_code(hint: str) -> str:
    """Return a hint with arguments of `spikein.score_texts` in the place of flags."""

    def argument(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2] or "True"
        if name == "inverse_temperature":
            return f"policy=ScoringPolicy(inverse_temperatures=({value},))"
        of_options = name in {one.name for one in fields(ScoringOptions)}
        return f"options=ScoringOptions({name}={value})" if of_options else f"{name}={value}"

    hint = hint.replace("Give every row a label", "Give every text a label (labels=…)")
    return re.sub(r"--([a-z-]+)(?: ([A-Z]+|[0-9]+))?", argument, hint)


def _unused(needs: Sequence[Need], detect: DetectSettings) -> list[str]:
    """Return notes on what was given for needs that no detector has."""
    notes = []
    for kind in every_kind():
        if any(isinstance(need, kind) for need in needs):
            continue
        for key in kind.options:
            value = getattr(detect, key)
            value = value.model if isinstance(value, NeighbourSettings) else value
            if value is not None:
                notes.append(f"{value} is not used: no detector asked for needs {kind()}")
    return notes


def _calibrated(settings: Sequence[DetectorSetting]) -> list[DetectorSetting]:
    """Return the settings that can score held-out rows: they read no more than a text's tokens.

    The evidence of others on held-out rows would take further passes, or is held-out rows itself.
    """

    def of_the_text(need: Need) -> bool:
        return need == View(TEXT) or isinstance(need, Frequency | InverseTemperature)

    return [one for one in settings if one.needs and all(map(of_the_text, one.needs))]


def _not_calibrated(
    settings: Sequence[DetectorSetting], calibrated: Sequence[DetectorSetting]
) -> list[str]:
    able = {setting.name for setting in calibrated}
    others = dict.fromkeys(one.name for one in settings if one.name not in able)
    if not others:
        return []
    return [
        "no decision with a bound on its errors, as they read more than the token statistics "
        f"of a text: {', '.join(others)}"
    ]


def _model(needs: Sequence[Need], request: ScoringRequest) -> ModelNode:
    """Return the model to test, and find out whether it and the reference can be used."""
    trusted = request.trust_remote_code
    referred = any(
        isinstance(need, Reference) or (isinstance(need, HeldOut) and need.reference)
        for need in needs
    )
    if request.reference is not None and referred:
        given_model(request.reference, trust_remote_code=trusted)
    if not any(need.access > Access.NONE or isinstance(need, Frequency) for need in needs):
        return ModelNode(pretrained=request.model, identity={})
    return given_model(request.model, revision=request.revision, trust_remote_code=trusted)


def _store(request: ScoringRequest) -> str | Path | None:
    if request.store is None and request.cache is not None:
        return request.cache / "store"
    return request.store


def _with_own_ids(scores: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Return scores with the ids of the user's rows."""
    own = pa.array([ids[row] for row in scores["row"].to_pylist()], pa.string())
    return scores.set_column(scores.column_names.index("example_id"), "example_id", own)


def _record(
    request: ScoringRequest, settings: Sequence[DetectorSetting], sources: EvidenceSources
) -> dict[str, Any]:
    used = {key for need in needs_of(settings) for key in need.options}
    server = request.server
    return {
        "model": request.model,
        "server": server and {"base_url": server.base_url, "api": server.api},
        "revision": request.revision,
        "reference": request.reference,
        "held_out": request.held_out,
        "dtype": request.dtype,
        "policy": request.policy.record(),
        "tagger": tagger_record(request.tagger) if "tagger" in used else None,
        "frequency": dict(sources.frequency.settings) if sources.frequency else None,
        "plugins": plugin_digests(settings),
    }
