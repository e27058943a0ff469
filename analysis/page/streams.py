"""The training streams of a run: their audits, how long they are, and which copies were read.

A copy counts as read when the model saw all of its tokens; the sentences that follow the table
account for the others, so that planned and read copies always add up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.arm import Cohort, arm_label
from analysis.arm_labels import arm_words
from analysis.findings import group_by
from analysis.page.inputs import ModelStream
from analysis.page.table import Table, listing
from inject.stream.audit_report import AuditReport, read_audit
from inject.stream.exposures import CopyOutcomes, copy_outcomes, read_exposures

_HIGH_SHARE = 0.05
"""A larger share of copies than this gets a sentence of its own."""
_SHORT_DIGEST = 12
"""Digits at the end of the name of an artifact's folder."""


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """One model that was trained on a stream, and the artifacts that record it."""

    label: str
    digest: str
    """Tells models of one label apart."""
    axes: Mapping[str, str] | None = None
    """Swept axis → its value, of an arm; None for a twin, which is named by its label."""
    seed: int | None = None
    """Of an arm."""
    folder: Path
    """Of the model."""
    audit: Path | None
    """The folder of its stream's audit; None if the stream has none."""


def stream_audits(models: Iterable[tuple[str, Path]]) -> dict[str, AuditReport]:
    """Return the audit of every stream once, by the models that were trained on it.

    The page and `spikein audit` both read the audits of a run here, so they show the same ones. If
    the labels of two models are equal, the digest of the audit distinguishes their streams.

    Args:
        models: the label of each trained model, and the folder of the audit of its stream.
    """
    users = group_by(models, lambda model: model[1])
    names = {
        path: "; ".join(dict.fromkeys(label for label, _ in own)) for path, own in users.items()
    }
    shared = Counter(names.values())
    return {
        name if shared[name] == 1 else f"{name} (audit {path.name[-_SHORT_DIGEST:]})": read_audit(
            path
        )
        for path, name in names.items()
    }


def audit_facts(
    models: Iterable[TrainedModel], *, several_seeds: bool
) -> dict[str, dict[str, object]]:
    """Return the report of each stream's audit, by a unique label.

    Args:
        models: all models that were trained on a stream with an audit.
        several_seeds: whether the experiment has more than one seed, so that labels name it.
    """
    users = group_by(models, lambda model: model.audit)
    audits = stream_audits(
        (label, path)
        for path, models_of_stream in users.items()
        if path is not None
        for label in _stream_labels(models_of_stream, several_seeds=several_seeds)
    )
    return {
        label: {
            "passed": audit.passed,
            "copies planned": audit.copies_expected,
            "copies found": audit.copies_found,
            "members that drew no copy": audit.zero_copy_members,
            "non-members found": len(audit.nonmembers_found),
            "copies not at their planned position": len(audit.displaced),
            "examples found in the background": len(audit.background_hits),
            "member and non-member pairs that share a run of words": len(audit.between_sides),
            **({"held-out rows also searched for": audit.held_out} if audit.held_out else {}),
            "tokens searched": audit.tokens_searched,
        }
        for label, audit in audits.items()
    }


def _stream_labels(models: Sequence[TrainedModel], *, several_seeds: bool) -> list[str]:
    """Name one stream: twins by their labels, arms by the axes on which all of them agree."""
    arms = [model for model in models if model.axes is not None]
    labels = [model.label for model in models if model.axes is None]
    if arms:
        agreed = [
            (axis, text)
            for axis, text in (arms[0].axes or {}).items()
            if all((arm.axes or {})[axis] == text for arm in arms)
        ]
        seed = arms[0].seed if several_seeds or not agreed else None
        labels.insert(0, arm_label(agreed, seed))
    return labels


def copies_by_model(models: Iterable[TrainedModel]) -> dict[str, CopyOutcomes]:
    """Return the outcomes of the copies of each model whose stream contains any, by its label."""
    outcomes: dict[str, CopyOutcomes] = {}
    for model in models:
        copies = copy_outcomes(read_exposures(model.folder))
        if copies.planned:
            # Twins of streams of several lengths share their label.
            short = model.digest[:_SHORT_DIGEST]
            label = f"{model.label} ({short})" if model.label in outcomes else model.label
            outcomes[label] = copies
    return outcomes


def stream_listing(streams: Sequence[ModelStream]) -> Table | None:
    """Return one row per model and arm, summed over its seeds, in order of first appearance."""
    cohorts = group_by(streams, lambda stream: Cohort(tuple(stream.axes.items()), stream.model))
    return listing(
        "Training streams",
        ("Arm", "Model", "Seed", "Tokens", "Copies planned", "Read", "Share of copies"),
        [
            (
                arm_words(cohort.axes) or "single arm",
                cohort.model,
                ", ".join(str(stream.seed) for stream in cohort_streams),
                # Seeds differ in nothing else, hence not in the length of their stream.
                f"{cohort_streams[0].tokens:,}",
                f"{sum(stream.copies.planned for stream in cohort_streams):,}",
                f"{sum(stream.copies.whole for stream in cohort_streams):,}",
                _shares(cohort_streams),
            )
            for cohort, cohort_streams in cohorts.items()
        ],
        "Copies are summed over seeds; their share is that of the stream's tokens.",
    )


def stream_sentences(streams: Sequence[ModelStream]) -> list[str]:
    """Return sentences on copies that were not read and why, and on the share of copies."""
    planned = sum(stream.copies.planned for stream in streams)
    lost = {
        "not reached, because training ends with the last whole window of an epoch": sum(
            stream.copies.never for stream in streams
        ),
        "cut by the end of the last whole window and read in part": sum(
            stream.copies.partly for stream in streams
        ),
        "read with tokens other than planned": sum(stream.copies.altered for stream in streams),
    }
    reasons = ", ".join(f"{count:,} {outcome}" for outcome, count in lost.items() if count)
    if not reasons:
        return []
    return [
        f"Of {planned:,} planned copies {planned - sum(lost.values()):,} were read whole: "
        f"{reasons}. Members are counted by the copies that were read."
    ]


def share_sentence(streams: Sequence[ModelStream]) -> str:
    """Return the page's warning about a large share of copies; empty for a small share."""
    spiked = [stream for stream in streams if stream.payload]
    if max((stream.share for stream in spiked), default=0.0) <= _HIGH_SHARE:
        return ""
    return (
        f"Copies are {_shares(spiked)} of the training tokens, far more than a benchmark's share "
        "of a real corpus. These AUCs compare detectors and settings with each other; they do not "
        "measure how detectable a text is in a large corpus."
    )


def _shares(streams: Sequence[ModelStream]) -> str:
    ends = min(stream.share for stream in streams), max(stream.share for stream in streams)
    return " to ".join(dict.fromkeys(_percent(share) for share in ends))


def _percent(share: float) -> str:
    """Return a share with two digits that count: `52 %`, `0.31 %`."""
    return f"{100 * share:.0f} %" if share >= 0.1 or not share else f"{100 * share:.2g} %"
