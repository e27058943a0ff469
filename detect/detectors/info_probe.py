"""`info_probe`: how many surprising words of a text can the model reconstruct?

Ravichander et al. 2025, "Information-Guided Identification of Training Data Imprint in
(Proprietary) Large Language Models", section 3 and appendices A to C. A reference model finds words
that the context does not reveal (`prob`, equation 2; `rank`, equation 3), or a rule finds names
(`person`); at most ten per text are masked, one at a time, and the model guesses each. The score is
the number of exact reconstructions, or their share; the paper's threshold is two or more. With
`filtered=true`, words that a secondary model guesses are skipped.

By default words are selected as in the authors' code, which uses the thresholds −12 and 2,000: a
word gets as many masks as it has pieces, and its first piece is scored; only nouns and numbers are
masked, each once, except the last in a text. NLTK tags theirs, here a rule finds them
(`detect.generation.masked_parts`); their prompt shows 300 characters on either side, ours the whole
text. `candidates=words` is ours: every word, scored by all its pieces, so that long and rare words
qualify regardless of their first piece.

Prompts: the paper's for passages, its own for test sets, and `plain`, which is ours, for models
that only continue texts. A rule without a tagger finds names, so they include places and firms.
A causal reference model scores words given only the preceding text.
"""

import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Literal

from pydantic import Field

from detect.access import Access
from detect.detector import Column, Detector, Score
from detect.evidence import Evidence
from detect.evidence.guesses import Guesses
from detect.generation.guesses import GuessedText, GuessRequest, Prompt
from detect.generation.masked_parts import EMPTY_TEXT, Candidates
from inject.settings import PositiveInt, Settings

DECISION = 2
"""Exact reconstructions from which a text counts as memorised (appendix A)."""


class InfoProbeParameters(Settings):
    """The words to mask, the prompt, and the count."""

    select: Literal["prob", "rank", "person"] = "prob"
    """Words of low probability, of high rank, or names."""
    prompt: Literal["passage", "test", "plain"] = "passage"
    """The paper's prompt for passages, or for test sets; `plain` lets the model continue."""
    candidates: Candidates = "nouns"
    """For `prob` and `rank`: `nouns` and numbers by their first piece (the authors' code), or all
    `words` by the sum of their pieces and the largest rank."""
    filtered: bool = False
    """Skip words that the knowledge filter guesses."""
    measure: Literal["number", "share", "decision"] = "number"
    """Exact reconstructions: their number, their share, or whether there are at least two."""
    log_probability: float = Field(default=-12.0, lt=0)
    """For `prob`: words below it are masked."""
    rank: PositiveInt = 2000
    """For `rank`: words with more likelier tokens than this are masked."""
    limit: PositiveInt = 10
    """Maximum words per text; the most surprising ones first."""
    max_tokens: PositiveInt = 32
    """Maximum tokens of an answer."""


def request_of(parameters: InfoProbeParameters) -> GuessRequest:
    """Return the request to the model."""
    thresholds = {"prob": parameters.log_probability, "rank": float(parameters.rank), "person": 0.0}
    return GuessRequest(
        **parameters.model_dump(include={"prompt", "filtered", "limit", "max_tokens"}),
        method=parameters.select,
        threshold=thresholds[parameters.select],
        candidates="words" if parameters.select == "person" else parameters.candidates,
    )


def probe_score(guessed: GuessedText, parameters: InfoProbeParameters) -> Score:
    """Return one text's score; 0 if no word was masked."""
    if guessed.reason == EMPTY_TEXT:
        return Score(math.nan, EMPTY_TEXT)
    hits = guessed.exact(parameters.prompt)
    if parameters.measure == "decision":
        return Score(float(sum(hits) >= DECISION))
    if parameters.measure == "number":
        return Score(float(sum(hits)))
    if not hits:
        return Score(math.nan, guessed.reason or "the knowledge filter guesses all its words")
    return Score(sum(hits) / len(hits))


def each_guess(
    request: Callable[[Any], GuessRequest], score: Callable[[GuessedText, Any], Score]
) -> dict[str, Any]:
    """Return needs and `score` of a detector that scores each text's guesses by themselves.

    Args:
        request: returns the request of a setting.
        score: returns one text's score under a setting.
    """

    def columns(evidence: Evidence, settings: Sequence[Any]) -> list[Column]:
        requests = [(setting, request(setting)) for setting in settings]
        return [
            Column(
                [score(row, setting) for row in evidence.guesses[guess_request]],
                (_note(evidence.guesses[guess_request], guess_request.prompt),),
            )
            for setting, guess_request in requests
        ]

    return {
        "further_needs": lambda setting: (Guesses(request(setting)),),
        "score": update_wrapper(columns, score),
    }


def _note(rows: Sequence[GuessedText], prompt: Prompt) -> str:
    """Return the numbers of masked and reconstructed parts, and their cost."""
    n_masked = sum(len(row.wanted) for row in rows)
    exact = sum(sum(row.exact(prompt)) for row in rows)
    filtered = sum(row.filtered for row in rows)
    rate = f" ({exact / n_masked:.1%})" if n_masked else ""
    left = f"; {filtered:,} more were left to the knowledge filter" if filtered else ""
    return (
        f"{exact:,} of {n_masked:,} masked parts were put back exactly{rate}{left}; "
        f"{sum(row.tokens_in for row in rows):,} tokens in, "
        f"{sum(row.tokens_out for row in rows):,} out."
    )


DETECTOR = Detector(
    name="info_probe",
    title="Information-guided probe",
    summary="number of surprising words of a text that the model puts back when they are masked",
    source="Ravichander et al. 2025, section 3, appendices A-C",
    needs=(),
    access=Access.TEXT,
    assumption="a word that surprises the reference model can only be reconstructed from memory",
    aliases=("information_probe", "info-probe"),
    order=130,
    libraries=("unicode",),
    parameters=InfoProbeParameters,
    grid=tuple(
        InfoProbeParameters(select=select, prompt=prompt)
        for select in ("prob", "rank", "person")
        for prompt in ("passage", "plain")
    ),
    **each_guess(request_of, probe_score),
)
