"""What each model writes after the first words of chunks, held against what stands there.

One model is loaded at a time, and writes all it is asked for: continuations of chunks, and answers
to questions. What it writes depends on the prompt's text, the number of the sample and the seed.
Continuations are equally long under all models and on all chunks, those of a holdout included: a
longer one has more runs of words in common by chance, and a control must not.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from analysis.unlearning_audit.audit_tables import CONTINUATIONS, compared
from analysis.unlearning_audit.questions import Question
from analysis.unlearning_audit.text_chunks import Chunk
from detect.generation.text_overlap import rouge_l_recall
from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError
from spikein.unlearning_audit.meaning import with_meaning
from spikein.unlearning_audit.request import AuditSettings, Progress

_MOST_TOKENS = 512
_LEAST_TOKENS = 8
_ANSWER = "Question: {question}\nAnswer:"


class Written(NamedTuple):
    """What the models wrote."""

    continuations: pa.Table
    """As `analysis.unlearning_audit.audit_tables.CONTINUATIONS`; embedding and judge are null where
    nobody asked."""
    recall: list[float]
    """Mean ROUGE-L recall of the unlearned model's answers to each question."""
    answers: list[list[str]]
    notes: tuple[str, ...]


def write_all(
    settings: AuditSettings,
    asked: Mapping[str, Sequence[Chunk]],
    questions: Sequence[Question],
    progress: Progress,
) -> Written:
    """Let the models write.

    Args:
        settings: of the audit.
        asked: by model, the chunks that it continues.
        questions: which the unlearned model answers.
        progress: called with what is being done, prompts done and in all.

    Raises:
        InputError: a context too small for the prompts; a model that cannot be loaded.
    """
    tables, notes = [CONTINUATIONS.empty_table()], []
    answers: list[list[str]] = []
    length, remarks = _longest(settings, asked)
    notes += remarks
    for name in settings.models:
        chunks = asked.get(name, ())
        answering = questions if name == "unlearned" else ()
        if not settings.samples or not (chunks or answering):
            continue
        target = _target(settings, name)
        if chunks:
            prompts = [chunk.prompt for chunk in chunks]
            texts = _sample(settings, target, prompts, length, progress, f"{name} continues")
            tables.append(compared(name, chunks, texts))
        if answering:
            prompts = [_ANSWER.format(question=one.question) for one in answering]
            longest = settings.answer_tokens
            answers = _sample(settings, target, prompts, longest, progress, f"{name} answers")
        del target
    recall = [
        sum(rouge_l_recall(text, question.answer, whole=True) for text in texts) / len(texts)
        for question, texts in zip(questions, answers, strict=False)
    ]
    table = pa.concat_tables(tables).combine_chunks()
    rests = {chunk.chunk: chunk.rest for chunks in asked.values() for chunk in chunks}
    table, further = with_meaning(settings, table, rests, progress)
    return Written(table, recall, answers, (*notes, *further))


def _target(settings: AuditSettings, name: str) -> Any:
    from detect.engine.target import load_target

    return load_target(
        settings.models[name],
        revision=getattr(settings.revisions, name),
        trust_remote_code=settings.trust_remote_code,
        device=settings.device,
        dtype=settings.dtype,
        device_map=settings.device_map,
    )


def _sample(
    settings: AuditSettings,
    target: Any,
    prompts: Sequence[str],
    max_tokens: int,
    progress: Progress,
    what: str,
) -> list[list[str]]:
    from detect.generation.sampled_continuations import sample_continuations

    return sample_continuations(
        target,
        prompts,
        max_tokens=max_tokens,
        samples=settings.samples,
        temperature=settings.temperature,
        top_p=settings.top_p,
        seed=settings.seed,
        progress=lambda done, total: progress(what, done, total),
    )


def _longest(
    settings: AuditSettings, asked: Mapping[str, Sequence[Chunk]]
) -> tuple[int, list[str]]:
    """Return how many tokens any continuation may have, and a note where a context allows fewer."""
    from detect.engine.target import load_tokenizer_and_context

    chunks = {chunk.chunk: chunk for own in asked.values() for chunk in own}.values()
    if not settings.samples or not chunks:
        return 0, []
    wanted, prompt = 0, 0
    contexts: dict[str, int] = {}
    for name, model in settings.models.items():
        tokenizer, context = load_tokenizer_and_context(
            model,
            revision=getattr(settings.revisions, name),
            trust_remote_code=settings.trust_remote_code,
        )
        rests = encode_texts(tokenizer, [chunk.rest for chunk in chunks], added=True)
        prompts = encode_texts(tokenizer, [chunk.prompt for chunk in chunks], added=True)
        wanted = max(wanted, *map(len, rests))
        prompt = max(prompt, *map(len, prompts))
        if context is not None:
            contexts[model] = context
    wanted = settings.max_tokens or min(wanted, _MOST_TOKENS)
    if not contexts:
        return wanted, []
    smallest = min(contexts, key=lambda model: contexts[model])
    context = contexts[smallest]
    room = context - prompt
    if room < min(wanted, _LEAST_TOKENS):
        raise InputError(
            f"prompts of up to {prompt:,} tokens leave {max(room, 0):,} of its {context:,} "
            "positions to continue",
            where=smallest,
            hint="Give fewer --prompt-words.",
        )
    if room < wanted:
        return room, [
            f"continuations have up to {room:,} tokens, not {wanted:,}: {smallest} has "
            f"{context:,} positions"
        ]
    return wanted, []
