"""`info_probe`: how many surprising words of a text can the model put back?

Ravichander et al. 2025, "Information-Guided Identification of Training Data Imprint in
(Proprietary) Large Language Models", section 3 and appendices A to C. A reference model finds words
that context does not give away (`prob`, equation 2; `rank`, equation 3), or a rule finds names
(`person`); at most ten of a text are masked, one at a time; the model is asked for each. The score
is the number of exact reconstructions, or their share; the decision of the paper is two or more.
With `filtered=true` words that a secondary model guesses are not asked for.

By default words are chosen as the authors' code chooses them, to which the thresholds −12 and 2,000
belong: a word is masked by as many masks as it has pieces, and its first piece is scored; only
nouns and numbers are masked, each once, and the last of a text is not. Theirs are tagged by NLTK,
here a rule finds them (`detect.generation.masked_parts`); theirs are shown among 300 characters on
either side, here in the whole text. `candidates=words` is ours: every word, by all of its pieces
together, so that long and rare words pass whatever their first piece says.

Prompts: the paper's for passages, its own for test sets, and `plain`, which is ours, for models
that only continue texts. Names are found by a rule, without a tagger, and so hold places and firms.
Under a causal reference model words are scored after what stands before them alone.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from pydantic import Field

from detect.access import Access
from detect.detector import Column, Detector, Score
from detect.evidence import Evidence
from detect.evidence.guesses import Guesses
from detect.evidence.needs import Need
from detect.generation.guesses import GuessedText, GuessRequest, Prompt
from detect.generation.masked_parts import EMPTY_TEXT, Candidates
from inject.settings import PositiveInt, Settings

ParametersT = TypeVar("ParametersT")
DECISION = 2
"""Exact reconstructions from which a text counts as memorised (appendix A)."""


class InfoProbeParameters(Settings):
    """Which words are masked, how the model is asked, and what is counted."""

    select: Literal["prob", "rank", "person"] = "prob"
    """Words of low probability, of high rank, or names."""
    prompt: Literal["passage", "test", "plain"] = "passage"
    """The paper's prompt for passages, or for test sets; `plain` lets the model continue."""
    candidates: Candidates = "nouns"
    """Of `prob` and `rank`: `nouns` and numbers by their first piece, as the authors' code, or all
    `words` by the sum of their pieces and the largest rank."""
    filtered: bool = False
    """Leave out words that the knowledge filter guesses."""
    measure: Literal["number", "share", "decision"] = "number"
    """Exact reconstructions: their number, their share, or whether there are two."""
    log_probability: float = Field(default=-12.0, lt=0)
    """Of `prob`: words below it are masked."""
    rank: PositiveInt = 2000
    """Of `rank`: words with more likelier ones than this are masked."""
    limit: PositiveInt = 10
    """Most words of a text; the most surprising ones first."""
    max_tokens: PositiveInt = 32
    """Of an answer."""


def request_of(parameters: InfoProbeParameters) -> GuessRequest:
    """Return what the model is asked."""
    thresholds = {"prob": parameters.log_probability, "rank": float(parameters.rank), "person": 0.0}
    return GuessRequest(
        method=parameters.select,
        prompt=parameters.prompt,
        filtered=parameters.filtered,
        limit=parameters.limit,
        threshold=thresholds[parameters.select],
        max_tokens=parameters.max_tokens,
        candidates="words" if parameters.select == "person" else parameters.candidates,
    )


def _needs(parameters: InfoProbeParameters) -> tuple[Need, ...]:
    return (Guesses(request_of(parameters)),)


def probe_score(guessed: GuessedText, parameters: InfoProbeParameters) -> Score:
    """Return one text's score; where no word was asked for, none was put back."""
    if guessed.reason == EMPTY_TEXT:
        return Score(math.nan, EMPTY_TEXT)
    found = guessed.exact(parameters.prompt)
    if parameters.measure == "decision":
        return Score(float(sum(found) >= DECISION))
    if parameters.measure == "number":
        return Score(float(sum(found)))
    if not found:
        return Score(math.nan, guessed.reason or "the knowledge filter guesses all its words")
    return Score(sum(found) / len(found))


def _score(evidence: Evidence, settings: Sequence[InfoProbeParameters]) -> list[Column]:
    return guess_columns(evidence, settings, request_of, probe_score)


def guess_columns(
    evidence: Evidence,
    settings: Sequence[ParametersT],
    request: Callable[[ParametersT], GuessRequest],
    score: Callable[[GuessedText, ParametersT], Score],
) -> list[Column]:
    """Return the columns of a detector that scores each text's guesses by themselves.

    Args:
        evidence: with the guesses.
        settings: what is wanted.
        request: what the model was asked under a setting.
        score: one text's score.
    """
    columns = []
    for one in settings:
        asked = request(one)
        rows = evidence.guesses[asked]
        note = _note(rows, asked.prompt)
        columns.append(Column([score(row, one) for row in rows], (note,)))
    return columns


def _note(rows: Sequence[GuessedText], prompt: Prompt) -> str:
    """Return how many parts were asked for and put back, and what that cost."""
    asked = sum(len(row.wanted) for row in rows)
    exact = sum(sum(row.exact(prompt)) for row in rows)
    filtered = sum(row.filtered for row in rows)
    rate = f" ({exact / asked:.1%})" if asked else ""
    left = f"; {filtered:,} more were left to the knowledge filter" if filtered else ""
    return (
        f"{exact:,} of {asked:,} masked parts were put back exactly{rate}{left}; "
        f"{sum(row.tokens_in for row in rows):,} tokens in, "
        f"{sum(row.tokens_out for row in rows):,} out."
    )


DETECTOR = Detector(
    name="info_probe",
    title="Information-guided probe",
    summary="number of surprising words of a text that the model puts back when they are masked",
    source="Ravichander et al. 2025, section 3, appendices A-C",
    needs=(),
    further_needs=_needs,
    access=Access.TEXT,
    assumption="a word that surprises the reference model can be put back from memory alone",
    aliases=("information_probe", "info-probe"),
    order=130,
    libraries=("unicode",),
    parameters=InfoProbeParameters,
    grid=tuple(
        InfoProbeParameters(select=select, prompt=prompt)
        for select in ("prob", "rank", "person")
        for prompt in ("passage", "plain")
    ),
    score=_score,
)
