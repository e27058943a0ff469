"""The audit from settings to findings: texts, scores, ratios, continuations, numbers.

Everything that can be wrong with the input is found before a model is asked, as far as it can be:
texts, columns, tokenizers, shapes, what a retrained model was fed, the judge's key, the embedder.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.unlearning_audit.audit_tables import (
    QUESTIONS,
    Audit,
    Scored,
    chunk_table,
    without_protected,
)
from analysis.unlearning_audit.checks import LOSS_RUN, Evidence, judge
from analysis.unlearning_audit.estimates import clusters_of, null
from analysis.unlearning_audit.findings import Ratioed, find
from analysis.unlearning_audit.questions import Question, question_findings
from analysis.unlearning_audit.ratio import Mask, Ratios, checked_band, score_ratios
from analysis.unlearning_audit.remembered import Sampled
from analysis.unlearning_audit.text_chunks import Chunk, SourceText, cut_chunks
from inject.errors import InputError
from inject.keyed import Stream, item_keys, words
from spikein.unlearning_audit.comparable import (
    check_comparable,
    check_never_fed,
    compare_weights,
)
from spikein.unlearning_audit.continuing import Written, write_all
from spikein.unlearning_audit.meaning import check_meaning
from spikein.unlearning_audit.request import AuditSettings, Progress
from spikein.unlearning_audit.scores import ModelScores, Named, one_detector, score_models
from spikein.unlearning_audit.texts import read_questions, read_texts


class _Given(NamedTuple):
    texts: list[SourceText]
    audited: list[Chunk]
    held_out: list[Chunk]
    questions: list[Question]
    notes: list[str]

    @property
    def chunks(self) -> list[Chunk]:
        return [*self.audited, *self.held_out]


def audit_models(settings: AuditSettings, progress: Progress) -> Audit:
    """Audit an unlearned model.

    Args:
        settings: what is audited, and how.
        progress: called with what is being done, units done and in all.

    Raises:
        InputError: texts that cannot be read or are too short, models that cannot be compared or
            have diverged, a retrained model that was fed a text, scores without any ratio, a judge
            without its key, a model for sentences that is not there.
    """
    one_detector(settings.detector)
    band = checked_band(*settings.band)
    given = _read(settings)
    if settings.judge is not None and any(chunk.protected for chunk in given.chunks):
        raise InputError(
            "a text is protected, and the judge's server would be sent it",
            where=settings.judge.base_url,
            hint="Leave protected texts out, or audit without a judge.",
        )
    if settings.samples:
        check_meaning(settings)
    if settings.retrained is not None:
        check_never_fed(settings.retrained, given.texts, given.audited)
    remarks, vocabulary = check_comparable(settings, given.chunks)
    notes = [*given.notes, *remarks]
    weights = compare_weights(settings)
    named = [_named(chunk) for chunk in given.chunks]
    asked = [Named(f"the question at {one.place}", one.text, one.group) for one in given.questions]
    scores = score_models(settings, [*named, *asked], progress)
    notes += [note for one in scores.values() for note in one.notes]
    ratios = _ratios(scores, "unlearned")
    retrained = _ratios(scores, "retrained") if "retrained" in scores else None
    count = len(given.audited)
    _check_any(ratios, count, settings)
    flags = band.holds(ratios.values)
    others = None if settings.all_chunks else settings.others
    sampled = select_chunks(given.audited, flags[:count], others=others, seed=settings.seed)
    written = write_all(settings, _continued(settings, given, sampled), given.questions, progress)
    notes += written.notes
    ends = slice(0, count)
    held = slice(count, len(given.chunks))
    found = find(
        Ratioed(
            given.audited,
            ratios.values[ends],
            None if retrained is None else retrained.values[ends],
        ),
        Ratioed(given.held_out, ratios.values[held], None) if given.held_out else None,
        written.continuations,
        band=band,
        rate=settings.false_alarms,
        sampled=sampled,
    )
    losses = {name: one.losses for name, one in scores.items()}
    judgement = judge(
        Evidence(
            audited={name: one[ends] for name, one in losses.items()},
            clusters=clusters_of(given.audited, least_run=LOSS_RUN),
            control={name: one[held] for name, one in losses.items()} if given.held_out else {},
            control_clusters=clusters_of(given.held_out, least_run=LOSS_RUN),
            guessing=log(vocabulary),
            weights=weights,
        ),
        found,
    )
    asked_about = None
    if given.questions and settings.samples:
        asked_about = question_findings(
            given.questions, ratios.values[held.stop :], np.array(written.recall), band
        )
    return Audit(
        chunks=given.chunks,
        chunk_table=chunk_table(
            given.chunks,
            Scored(
                {name: one.values for name, one in scores.items()}, losses, ratios, retrained, flags
            ),
            found.written,
            audited=count,
            continued={given.audited[place].chunk for place in sampled.places if settings.samples},
        ),
        continuations=without_protected(written.continuations, given.chunks),
        questions=_question_table(given, scores, ratios, flags, written),
        findings=found,
        question_findings=asked_about,
        judgement=judgement,
        notes=tuple(dict.fromkeys(notes)),
    )


def _read(settings: AuditSettings) -> _Given:
    texts, notes = read_texts(settings.texts, column=settings.text_column)
    size, prompt = settings.chunk_words, settings.prompt_words
    audited = cut_chunks(texts, words=size, prompt_words=prompt)
    held_out: list[Chunk] = []
    if settings.holdout is not None:
        others, more = read_texts(settings.holdout, column=settings.text_column, what="holdout")
        notes += more
        twice = {one.text for one in texts} & {one.text for one in others}
        if twice:
            place = next(one.place for one in others if one.text in twice)
            raise InputError("holdout: this text is audited, too", where=place)
        cut = cut_chunks(others, words=size, prompt_words=prompt)
        held_out = [chunk._replace(chunk=chunk.chunk + len(audited)) for chunk in cut]
    questions = read_questions(settings.questions) if settings.questions is not None else []
    return _Given(texts, audited, held_out, questions, notes)


def _named(chunk: Chunk) -> Named:
    name = f"chunk {chunk.chunk} ({chunk.text_id}, characters {chunk.start} to {chunk.stop})"
    return Named(name, chunk.text, chunk.group)


def _ratios(scores: Mapping[str, ModelScores], name: str) -> Ratios:
    found = score_ratios(scores["original"].values, scores[name].values, name=name)
    own = [
        scores["original"].reasons[at] or scores[name].reasons[at] or reason
        for at, reason in enumerate(found.reasons)
    ]
    return Ratios(found.values, own)


def _check_any(ratios: Ratios, count: int, settings: AuditSettings) -> None:
    if not np.isfinite(ratios.values[:count]).any():
        raise InputError(
            f"no chunk has a ratio; of the first one: {ratios.reasons[0]}",
            where=f"--detector {settings.detector}",
            hint="The ratio is of means of log-probabilities, which are negative: min_k and loss "
            "give such scores.",
        )


def select_chunks(
    chunks: Sequence[Chunk], suspicious: Mask, *, others: int | None, seed: int
) -> Sampled:
    """Return which chunks are continued: the suspicious ones, and a keyed sample of the others.

    The sample is drawn by the key of (seed, text, place), so that another text adds its own chunks
    and moves no other.

    Args:
        chunks: all of them.
        suspicious: which are; all of these are continued.
        others: how many of the rest; None for all.
        seed: of the draw.
    """
    rest = np.flatnonzero(~suspicious)
    drawn = rest
    if others is not None and others < len(rest):
        names = [f"audited chunk {chunks[at].text_id} {chunks[at].start}" for at in rest.tolist()]
        order = words(seed, Stream.CONTINUATION, item_keys(names))
        drawn = np.sort(rest[np.argsort(order, kind="stable")[:others]])
    weights = np.ones(len(chunks))
    if len(drawn):
        weights[drawn] = len(rest) / len(drawn)
    places = np.sort(np.concatenate([np.flatnonzero(suspicious), drawn]))
    return Sampled(tuple(int(place) for place in places), weights[places], len(rest) - len(drawn))


def _continued(
    settings: AuditSettings, given: _Given, sampled: Sampled
) -> dict[str, Sequence[Chunk]]:
    """Return which chunks each model continues: the holdout's are the unlearned model's alone."""
    audited = [given.audited[place] for place in sampled.places]
    held_out = given.held_out
    if not settings.all_chunks:
        # As many as are drawn of the audited ones: enough to set a level.
        drawn = select_chunks(
            held_out, np.zeros(len(held_out), bool), others=settings.others, seed=settings.seed
        )
        held_out = [held_out[place] for place in drawn.places]
    return {
        name: [*audited, *held_out] if name == "unlearned" else audited for name in settings.models
    }


def _question_table(
    given: _Given,
    scores: Mapping[str, ModelScores],
    ratios: Ratios,
    flags: Mask,
    written: Written,
) -> pa.Table | None:
    if not given.questions:
        return None
    first = len(given.chunks)
    rows = [
        {
            "question": one.question,
            "answer": one.answer,
            **{name: null(scores[name].values[first + at]) for name in ("original", "unlearned")},
            "ratio": null(ratios.values[first + at]),
            "kept": bool(flags[first + at]),
            "recall": written.recall[at] if written.recall else None,
            "answers": written.answers[at] if written.answers else [],
            "reason": ratios.reasons[first + at],
        }
        for at, one in enumerate(given.questions)
    ]
    return pa.Table.from_pylist(rows, schema=QUESTIONS)
