"""The audit of given models as a small graph: texts, scores, continuations, the audit.

Problems of the input are found before a model runs, as far as possible: texts, columns, tokenizers,
shapes, the training data of a retrained model.
"""

from dataclasses import replace

from analysis.settings import AuditRule
from analysis.unlearning_audit.evidence import AUDITED
from analysis.unlearning_audit.given_models import given_audit_step, weights_step, written_step
from analysis.unlearning_audit.texts import GivenTexts, read_given
from detect.detector_settings import DetectorSetting, needs_of, parse_detectors
from detect.evidence.frequency import Frequency
from detect.evidence.needs import EvidenceSources, Scored, unmet
from detect.evidence.token_counts import file_frequency_step
from detect.scores_step import settings_step
from detect.scoring import runnable
from detect.settings import DetectSettings, names_all
from detect.user_rows.labelled_rows import KnownTexts, LabelledRows, read_held_out_file
from detect.user_rows.rows_step import given_examples_step
from inject.errors import InputError
from inject.reading.rows import source_files
from inject.settings import plain
from inject.step import Step
from spikein.config.hub_files import local_path
from spikein.executors.user_model_graphs import given_model
from spikein.unlearning_audit.comparable import check_comparable, check_never_fed
from spikein.unlearning_audit.request import AuditSettings
from train.device import default_device
from train.models.model_node import ModelNode

_LOSS = "loss"
_SAMPLING = ("samples", "temperature", "top_p", "seed", "max_tokens", "answer_tokens")
_DRAW = ("band", "others", "all_chunks")


def given_audit(settings: AuditSettings) -> Step:
    """Return the step of an audit, with all its inputs.

    Raises:
        InputError: for texts that cannot be read or are too short, models that cannot be compared,
            or a retrained model that was trained on a text.
    """
    detector = _one_detector(settings.detector)
    user_texts = read_given(
        {name: local_path(pattern) for name, pattern in settings.files.items()},
        column=settings.text_column,
        words=settings.chunk_words,
        prompt_words=settings.prompt_words,
        limit=settings.limit,
        delimiter=settings.delimiter,
    )
    if settings.retrained is not None:
        check_never_fed(
            settings.retrained,
            user_texts.texts,
            [chunk for chunk in user_texts.chunks if chunk.dataset == AUDITED],
        )
    models = {
        name: given_model(
            model,
            revision=getattr(settings.revisions, name),
            trust_remote_code=settings.trust_remote_code,
        )
        for name, model in settings.models.items()
    }
    shared = check_comparable(models, user_texts.chunks)
    held_out = _held_out(settings, user_texts)
    texts = given_examples_step(user_texts.chunks, held_out, protected=user_texts.protected)
    detect = _detect(settings, detector)
    scored = [detector.name, detector.text]
    sources = EvidenceSources(
        detect=detect,
        examples=texts,
        held_out=bool(held_out and held_out.nonmembers),
        known_members=bool(held_out and held_out.members),
        labelled=False,
        of_file=True,
        trust_remote_code=settings.trust_remote_code,
    )
    inputs = {"texts": texts}
    for name, model in models.items():
        inputs[f"{name}-scores"] = _scores(model, sources)
    read = {name: inputs[name] for name in ("texts", "original-scores", "unlearned-scores")}
    plain_settings = {name: plain(settings)[name] for name in (*_SAMPLING, *_DRAW)}
    sampling = {**plain_settings, "scored": scored, "context": shared.context}
    if settings.samples:
        for name, model in models.items():
            inputs[f"{name}-written"] = written_step(name, model, read, sampling, detect)
    inputs["weights"] = weights_step(models["original"], models["unlearned"])
    return given_audit_step(
        inputs,
        {
            "method": settings.unlearned,
            "audit": {name: plain(settings)[name] for name in AuditRule.model_fields},
            "scored": scored,
            "guessing": shared.guessing,
            "notes": [*user_texts.notes, *shared.notes],
        },
    )


def _one_detector(text: str) -> DetectorSetting:
    """Return the detector of an unlearning audit.

    Raises:
        InputError: for none, several, or `all`.
    """
    settings = parse_detectors(text)
    if names_all(text) or len(settings) != 1:
        raise InputError(
            f"{text!r} are {len(settings)} detectors, but a ratio needs exactly one",
            where="detector",
            allowed="one, such as min_k:k=0.2, loss or FILE.py:NAME",
        )
    return settings[0]


def _detect(settings: AuditSettings, detector: DetectorSetting) -> DetectSettings:
    """Return the scoring settings: by the detector, and by the loss."""
    alike = ("reference", "frequency", "device", "device_map", "batch_tokens")
    return DetectSettings(
        detectors=(settings.detector, *(() if detector.name == _LOSS else (_LOSS,))),
        # Naming a detector that reads generated text permits generation.
        generate=True,
        dtype=default_device().scoring_format(settings.dtype, device_kind=settings.device),
        **{name: getattr(settings, name) for name in alike},
    )


def _scores(model: ModelNode, sources: EvidenceSources) -> Step:
    """Score all texts under one model.

    Raises:
        InputError: for a detector without its requirements.
    """
    requested = parse_detectors(sources.detect.detectors)
    settings, _ = runnable(requested, unmet(sources), leave_out=False)
    pattern = sources.detect.frequency and local_path(sources.detect.frequency)
    if pattern is not None and any(isinstance(need, Frequency) for need in needs_of(settings)):
        source_files(pattern, purpose="frequency")
        sources = replace(sources, frequency=file_frequency_step(pattern, model))
    return settings_step(settings, Scored(model, "arm"), sources)


def _held_out(settings: AuditSettings, user_texts: GivenTexts) -> KnownTexts | None:
    if settings.held_out is None:
        return None
    texts = [chunk.text for chunk in user_texts.chunks]
    return read_held_out_file(local_path(settings.held_out), LabelledRows(texts, texts, None, None))
