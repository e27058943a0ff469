"""Score a user's rows under any model, for `spikein detect` and `spikein.score_texts`.

The rows become an examples artifact. The same steps as in an experiment provide the detectors'
evidence, and the scores are also a step. Problems of the input are found before a model is loaded.
Errors name keys of `ScoringOptions`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.decisions.flagged import Calibration
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
from detect.evidence.needs import (
    EvidenceSources,
    Need,
    Scored,
    every_kind,
    evidence_inputs,
    unmet,
)
from detect.evidence.prefixed import Prefixed
from detect.evidence.token_counts import file_frequency_step
from detect.evidence.views import InverseTemperature, Reference, View
from detect.scores.table import HELD_OUT_SCORES, read_scores, score_notes
from detect.scores_step import settings_step
from detect.scoring import runnable
from detect.settings import DetectSettings, NeighbourSettings
from detect.user_rows.labelled_rows import KnownTexts, LabelledRows, read_held_out_file, rows_notes
from detect.user_rows.rows_step import rows_step
from detect.views import TEXT
from inject.errors import InputError
from inject.reading.rows import source_files
from inject.server.client import RequestEstimate
from inject.step import Step
from spikein.config.hub_files import local_path
from spikein.executors.user_model_graphs import build_steps, given_model, open_store
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.scoring.id_rows import check_ids, of_ids
from spikein.scoring.options import ScoredServer, ScoringOptions
from spikein.scoring.served_rows import RemoteTarget, check_protected
from spikein.store.store import Store
from train.device import default_device
from train.models.model_node import ModelNode

_OF_LOCAL_TARGETS = ("bos", "long", "score_first", "inverse_temperatures", "context", "revision")
_OF_LOCAL_MODELS = ("trust_remote_code", "dtype", "device", "device_map", "batch_tokens")
"""Options that a local reference model can use while the target is on a server."""


class ScoredRows(NamedTuple):
    """The scores of rows."""

    rows: LabelledRows
    scores: pa.Table
    """See `detect.scores.table.SCHEMA`."""
    notes: tuple[str, ...]
    record: Mapping[str, Any]
    """Their origin, as plain JSON values."""
    calibration: Calibration | None = None
    """Scores of held-out rows; None if none were given, or no detector can score them."""


@dataclass(frozen=True, kw_only=True)
class RowsPlan:
    """The plan to score rows; nothing is scored yet."""

    rows: LabelledRows
    options: ScoringOptions
    settings: tuple[DetectorSetting, ...]
    """The detectors that will run."""
    step: Step
    """The scores."""
    detectors_of: Mapping[str, tuple[str, ...]]
    """Digest of each step to the detectors that need it."""
    served: tuple[RemoteTarget, ...]
    """The servers of the target and of the reference model."""
    calibration_groups: tuple[str, ...] | None
    """Scores of the held-out rows, if they are also scored."""
    record: Mapping[str, Any]
    notes: tuple[str, ...]


def plan_rows(
    rows: LabelledRows, model: str, options: ScoringOptions, *, control: bool = False
) -> RowsPlan:
    """Return the plan to score every row with every requested detector.

    Args:
        rows: texts, with their labels and groups if known.
        model: a folder, a hub id, or the model's name on a server.
        options: the detectors, their inputs, and how the model is queried.
        control: always score labelled rows with `blind` as well.

    Raises:
        InputError: for unknown detectors, a named detector without its requirements, a model that
            cannot be loaded, or a server that does not answer.
    """
    requested = _requested_detectors(options)
    if control and rows.labels is not None:
        requested = with_control(requested)
    of_texts: tuple[str, ...] = ()
    if rows.highest_id is not None:
        check_ids(rows.highest_id, model, options)
        requested, of_texts = of_ids(requested, leave_out=options.leave_out)
    # Unreadable held-out rows are refused now, whether or not a detector needs them.
    held_out = None
    if options.held_out:
        held_out = read_held_out_file(local_path(options.held_out), rows, options)
    notes = [*repeated_detectors(options.detectors), *rows_notes(rows), *of_texts]
    _check_served(options, rows, held_out)
    served = _served_target(options.server, model)
    referred = _served_target(options.reference_server, options.reference or "")
    if served is not None:
        requested, beyond = served.detectors(requested, leave_out=options.leave_out)
        notes += beyond
    sources = _sources(rows, held_out, options)
    if referred is not None:
        sources = replace(sources, served_reference=referred.node)
    settings, lacking = runnable(requested, unmet(sources), leave_out=options.leave_out)
    needs = needs_of(settings)
    notes += [*lacking, *_unused_inputs(needs, sources.detect)]
    _check_reference(needs, options, referred)
    node = served.node if served else _local_model(needs, model, options)
    if any(isinstance(need, Frequency) for need in needs):
        pattern = local_path(options.frequency or "")
        source_files(pattern, purpose="frequency")
        sources = replace(sources, frequency=file_frequency_step(pattern, node))
    calibrated = _calibrated_settings(settings) if sources.held_out else []
    if calibrated or any(isinstance(need, HeldOut | Prefixed) for need in needs):
        for server in options.servers:
            check_protected(server, rows, held_out, read=True)
    groups = None
    if calibrated and held_out is not None:
        groups = tuple(row.group for row in held_out.nonmembers)
        notes += _uncalibrated_note(settings, calibrated)
    scored = Scored(node, "arm")
    return RowsPlan(
        rows=rows,
        options=options,
        settings=tuple(settings),
        step=settings_step(settings, scored, sources, calibrated=calibrated),
        detectors_of=_detectors_of(settings, sources, scored),
        served=tuple(remote for remote in (served, referred) if remote is not None),
        calibration_groups=groups,
        record=_record(model, options, settings, sources),
        notes=tuple(notes),
    )


def score_rows(plan: RowsPlan, progress: Progress | None = None) -> ScoredRows:
    """Score the rows of a plan.

    Args:
        plan: of `plan_rows`.
        progress: receives the events of the run.

    Raises:
        InputError: as a step raises, or for a server that does not answer.
    """
    notes, step = list(plan.notes), plan.step
    with _open_builder(plan.options, progress) as (store, build):
        stored = [served.stored(step, store) for served in plan.served]
        [folder] = build(step)
        for served, before in zip(plan.served, stored, strict=True):
            notes += served.notes(step, build, before)
        table = _restore_ids(read_scores(folder), plan.rows.ids)
        calibration = None
        if plan.calibration_groups is not None:
            calibration = Calibration(
                pq.read_table(folder / HELD_OUT_SCORES), plan.calibration_groups
            )
        notes += score_notes(folder)
    return ScoredRows(plan.rows, table, tuple(dict.fromkeys(notes)), plan.record, calibration)


def count_requests(
    plan: RowsPlan, progress: Progress | None = None
) -> list[tuple[ScoredServer, dict[str, RequestEstimate]]]:
    """Return each step's requests to each server, by digest; build the inputs of steps.

    Raises:
        InputError: as `score_rows`.
    """
    if not plan.served:
        return []
    with _open_builder(plan.options, progress) as (_, build):
        return [(served.settings, served.requests(plan.step, build)) for served in plan.served]


@contextmanager
def _open_builder(
    options: ScoringOptions, progress: Progress | None
) -> Iterator[tuple[Store, Callable[..., list[Path]]]]:
    """Open the store, and yield it with a function that builds steps in it."""
    with open_store(options.store) as store:

        def build(*goals: Step) -> list[Path]:
            return build_steps(goals, store, executor=options.executor, progress=progress)

        yield store, build


def _detectors_of(
    settings: Sequence[DetectorSetting], sources: EvidenceSources, scored: Scored
) -> dict[str, tuple[str, ...]]:
    by_digest: dict[str, dict[str, None]] = {}
    for setting in settings:
        inputs, _ = evidence_inputs(setting.needs, sources, scored)
        for step in Graph(goals=tuple(inputs.values())).steps if inputs else ():
            by_digest.setdefault(step.digest, {})[setting.name] = None
    return {digest: tuple(names) for digest, names in by_digest.items()}


def _served_target(server: ScoredServer | None, model: str) -> RemoteTarget | None:
    return None if server is None else RemoteTarget(server, model)


def _check_served(options: ScoringOptions, rows: LabelledRows, held_out: KnownTexts | None) -> None:
    """Refuse options that a server cannot use, and texts that must not be sent to it."""
    local_reference = options.reference is not None and options.reference_server is None
    useless = (*_OF_LOCAL_TARGETS, *(() if local_reference else _OF_LOCAL_MODELS))
    unused = [name for name in useless if name in options.model_fields_set]
    if options.server is not None and unused:
        raise InputError(f"{', '.join(unused)} applies only to a model on this machine")
    for server in options.servers:
        check_protected(server, rows, held_out)


def _requested_detectors(options: ScoringOptions) -> list[DetectorSetting]:
    """Return the requested detectors, each once."""
    requested = parse_detectors(options.detectors)
    names = [setting.name for setting in requested]
    # The settings of a detector are adjacent: they are scored in one call.
    return sorted(requested, key=lambda setting: names.index(setting.name))


def _sources(
    rows: LabelledRows, held_out: KnownTexts | None, options: ScoringOptions
) -> EvidenceSources:
    detect = {name: getattr(options, name) for name in DetectSettings.model_fields}
    detect |= {
        "detectors": "all" if options.leave_out else options.detectors,
        "dtype": default_device().scoring_format(options.dtype, device_kind=options.device),
    }
    if options.server is not None:
        # A server provides nothing else.
        detect |= {"generate": True, "frequency": None}
    return EvidenceSources(
        detect=DetectSettings(**detect),
        examples=rows_step(rows, held_out),
        held_out=len(held_out.nonmembers) if held_out else 0,
        known_members=bool(held_out and held_out.members),
        labelled=rows.labels is not None,
        paraphrased=any(rows.paraphrases or ()),
        of_file=True,
        of_ids=rows.highest_id is not None,
        trust_remote_code=options.trust_remote_code,
    )


def _unused_inputs(needs: Sequence[Need], detect: DetectSettings) -> Iterator[str]:
    """Yield notes on inputs that no detector needs."""
    for kind in every_kind():
        if any(isinstance(need, kind) for need in needs):
            continue
        for key in kind.options:
            value = getattr(detect, key)
            value = value.model if isinstance(value, NeighbourSettings) else value
            if value is not None:
                yield f"{value} is not used: no requested detector needs {kind()}"


def _calibrated_settings(settings: Sequence[DetectorSetting]) -> list[DetectorSetting]:
    """Return the settings that can score held-out rows: they read only a text's tokens.

    Evidence of the others on held-out rows would take further passes, or consists of held-out rows.
    """

    def reads_only_text(need: Need) -> bool:
        return need == View(TEXT) or isinstance(need, Frequency | InverseTemperature)

    return [
        setting
        for setting in settings
        if setting.needs and all(map(reads_only_text, setting.needs))
    ]


def _uncalibrated_note(
    settings: Sequence[DetectorSetting], calibrated: Sequence[DetectorSetting]
) -> list[str]:
    able = {setting.name for setting in calibrated}
    others = dict.fromkeys(setting.name for setting in settings if setting.name not in able)
    if not others:
        return []
    return [
        "no control of the false-discovery rate, since they read more than the token statistics "
        f"of a text: {', '.join(others)}"
    ]


def _check_reference(
    needs: Sequence[Need], options: ScoringOptions, served: RemoteTarget | None
) -> None:
    """Check that the reference model can be used, if it is needed."""
    if options.reference is None or not any(
        isinstance(need, Reference) or (isinstance(need, HeldOut) and need.reference)
        for need in needs
    ):
        return
    if served is not None:
        served.check_reads_texts()
    else:
        given_model(options.reference, trust_remote_code=options.trust_remote_code)


def _local_model(needs: Sequence[Need], model: str, options: ScoringOptions) -> ModelNode:
    """Return the model to test, after a check that it can be used."""
    trusted = options.trust_remote_code
    if not any(need.access > Access.NONE or isinstance(need, Frequency) for need in needs):
        return ModelNode(pretrained=model, identity={})
    return given_model(model, revision=options.revision, trust_remote_code=trusted)


def _restore_ids(scores: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Return scores with the ids of the user's rows."""
    own = pa.array([ids[row] for row in scores["row"].to_pylist()], pa.string())
    return scores.set_column(scores.column_names.index("example_id"), "example_id", own)


def _record(
    model: str,
    options: ScoringOptions,
    settings: Sequence[DetectorSetting],
    sources: EvidenceSources,
) -> dict[str, Any]:
    used = {key for need in needs_of(settings) for key in need.options}
    server, referring = options.server, options.reference_server
    return {
        "model": model,
        "server": server and {"base_url": server.base_url, "api": server.api},
        "revision": options.revision,
        "reference": options.reference,
        "reference_server": referring and {"base_url": referring.base_url},
        "held_out": options.held_out,
        "dtype": options.dtype,
        "policy": options.policy().record(),
        "tagger": tagger_record(options.tagger) if "tagger" in used else None,
        "frequency": dict(sources.frequency.settings) if sources.frequency else None,
        "plugins": plugin_digests(settings),
    }
