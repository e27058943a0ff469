"""The score of every chunk under every model, by any detector, with its needs met.

The same code as `spikein detect` (`spikein.scoring`). A model that gives no numbers has diverged,
and is refused with the chunk.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.unlearning_audit.ratio import Floats
from detect.detector_settings import DetectorSetting, parse_detectors
from detect.settings import names_all
from detect.user_rows.labelled_rows import LabelledRows
from inject.errors import InputError
from spikein.progress import Progress as RunProgress
from spikein.scoring.scored_rows import ScoringRequest, score_labelled_rows
from spikein.unlearning_audit.request import AuditSettings, Progress

_LOSS = "loss"


class ModelScores(NamedTuple):
    """One model's scores of all texts that are scored."""

    values: Floats
    losses: Floats
    """Mean negative log-probability, nats a token; NaN where there is none."""
    reasons: list[str | None]
    notes: tuple[str, ...]


class Named(NamedTuple):
    """A text that is scored, and what it is called in messages."""

    name: str
    text: str
    group: str


def one_detector(given: str) -> DetectorSetting:
    """Return the detector of an audit.

    Raises:
        InputError: none, several, or `all`.
    """
    found = parse_detectors(given)
    if names_all(given) or len(found) != 1:
        raise InputError(
            f"{given!r} are {len(found)} detectors, and a ratio is of one",
            where="--detector",
            allowed="one, such as min_k:k=0.2, loss or FILE.py:NAME",
        )
    return found[0]


def score_models(
    settings: AuditSettings, texts: Sequence[Named], progress: Progress
) -> Mapping[str, ModelScores]:
    """Score all texts under each model of an audit.

    Raises:
        InputError: a model that cannot be loaded or has diverged; a detector without what it needs.
    """
    return {name: _score(settings, name, texts, progress) for name in settings.models}


def _score(
    settings: AuditSettings, name: str, texts: Sequence[Named], progress: Progress
) -> ModelScores:
    model, setting = settings.models[name], one_detector(settings.detector)
    asked = settings.detector if setting.name == _LOSS else f"{settings.detector},{_LOSS}"
    grouped = [one.group for one in texts]
    rows = LabelledRows([one.text for one in texts], [one.name for one in texts], None, grouped)
    request = ScoringRequest(
        model=model,
        revision=getattr(settings.revisions, name),
        reference=settings.reference,
        frequency=settings.frequency,
        held_out=settings.held_out,
        detectors=asked,
        # Naming a detector that reads what a model writes is leave to let it write.
        generate=True,
        trust_remote_code=settings.trust_remote_code,
        device=settings.device,
        dtype=settings.dtype,
        device_map=settings.device_map,
        batch_tokens=settings.batch_tokens,
    )

    class Shown(RunProgress):
        def step_advanced(
            self, step: str, done: float, total: float | None, unit: str, note: str
        ) -> None:
            progress(f"{name}: {step}", int(done), int(total or done))

    found = score_labelled_rows(rows, request, Shown())
    values, losses = np.full(len(texts), math.nan), np.full(len(texts), math.nan)
    reasons: list[str | None] = [None] * len(texts)
    for row in found.scores.to_pylist():
        if row["detector"] == setting.name:
            values[row["row"]], reasons[row["row"]] = row["score"], row["reason"]
        if row["detector"] == _LOSS:
            losses[row["row"]] = -row["score"]
    _check_numbers(model, texts, values, reasons)
    return ModelScores(values, losses, reasons, found.notes)


def _check_numbers(
    model: str, texts: Sequence[Named], values: Floats, reasons: Sequence[str | None]
) -> None:
    for text, value, reason in zip(texts, values, reasons, strict=True):
        if math.isinf(value) or (math.isnan(value) and (reason is None or "number" in reason)):
            raise InputError(
                f"the model has diverged: its score of {text.name} is no number"
                + (f" ({reason})" if reason else ""),
                where=model,
                hint="Look at the log of its training: the loss of such a model is NaN or huge.",
            )
