"""Guesses of masked words by the model to test, and the models that choose the words."""

from collections.abc import Sequence
from dataclasses import replace

from detect.evidence.needs import Guesses
from detect.generation.guesses import (
    GuessedText,
    GuessRequest,
    MaskedText,
    TextToMask,
    guess,
    known_parts,
    mask_text,
)
from detect.generation.word_statistics import open_reference, word_statistics
from detect.generation.words import WordStatistics
from detect.score_file.evidence.continuations import lets_models_write
from detect.score_file.evidence.provider import Provider, Work, check_model
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.targets.text_model import TextModel


class _Guesses(Provider[Guesses]):
    hint = (
        "Let the model write (--generate, or name the detector), and name a model that says which "
        "words surprise (--word-reference or --reference PATH) and, for filtered=true, one whose "
        "guesses are left out (--knowledge-filter PATH)."
    )
    hint_in_code = (
        "Let the model write (ScoringOptions(generate=True), or name the detector), and name a "
        "model that says which words surprise (reference, or ScoringOptions(word_reference=PATH)) "
        "and, for filtered=true, one whose guesses are left out (knowledge_filter=PATH)."
    )

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return lets_models_write(request)

    def meets(self, need: Guesses, request: ScoringRequest, rows: LabelledRows) -> object:
        return (
            lets_models_write(request)
            and (not need.request.asks_reference or _word_reference(request) is not None)
            and (not need.request.filtered or request.knowledge_filter is not None)
        )

    def optional(self, request: ScoringRequest) -> str | None:
        return request.word_reference or request.knowledge_filter

    def check(self, request: ScoringRequest) -> None:
        check_model(request.model, request, revision=request.revision)
        if request.knowledge_filter is not None:
            check_model(request.knowledge_filter, request)

    def meet(self, needs: Sequence[Guesses], work: Work) -> None:
        words: Sequence[Sequence[WordStatistics]] = [()] * len(work.rows.texts)
        if any(need.request.asks_reference for need in needs):
            work.release_target()
            words = _words(work)
        texts = [
            TextToMask(text, words=own) for text, own in zip(work.rows.texts, words, strict=True)
        ]
        masked = {need.request: [mask_text(one, need.request) for one in texts] for need in needs}
        known = _known(masked, work)
        work.fields["guesses"] = {
            request: _guessed(work, work.text_model(), request, masked[request], known.get(request))
            for request in masked
        }


GUESSES: Provider[Guesses] = _Guesses()
"""The need of guesses is met by the model to test, where models may write."""


def _word_reference(request: ScoringRequest) -> str | None:
    return request.word_reference or request.reference


def _words(work: Work) -> list[list[WordStatistics]]:
    model = open_reference(
        _word_reference(work.request) or "", load_causal=work.load, device=work.request.device
    )
    return word_statistics(
        model,
        work.rows.texts,
        batch_tokens=work.request.batch_tokens,
        progress=lambda done, total: work.on_progress("words", done, total),
    )


def _known(
    masked: dict[GuessRequest, list[MaskedText]], work: Work
) -> dict[GuessRequest, list[list[bool]]]:
    """Return, for requests that are filtered, which parts the knowledge filter guesses."""
    from detect.targets.local import LocalTextModel

    filtered = [request for request in masked if request.filtered]
    if not filtered:
        return {}
    work.release_target()
    model = LocalTextModel(work.load(work.request.knowledge_filter or ""))
    found = {}
    for request in filtered:
        single, lists = (
            _guessed(work, model, replace(request, prompt=name, filtered=False), masked[request])
            for name in ("filter", "filter_100")
        )
        found[request] = known_parts(single, lists)
    return found


def _guessed(
    work: Work,
    model: TextModel,
    request: GuessRequest,
    masked: Sequence[MaskedText],
    known: Sequence[Sequence[bool]] | None = None,
) -> list[GuessedText]:
    return guess(
        model,
        masked,
        request,
        known=known,
        progress=lambda done, total: work.on_progress("guesses", done, total),
    )
