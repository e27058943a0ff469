"""The prerequisites of a statement about forgetting, and an audit's verdict.

Flags and continuations by themselves would pass random weights. Checked first, in nats per token:

- working: what the unlearned model loses on control texts that no model saw, against the original
  and the retrained model (paired by chunk), since an original that overfits is a low bar. More than
  ln 2, a doubled perplexity, is not a working model, nor is one that predicts them no better than
  the frequency of tokens does. Nor may it lose as much on texts that it should still know. If it
  gains as much, it was trained on the control, which is then uninformative.
- knew: the original's loss on the audited chunks, less the retrained model's (paired) or, without
  one, less its own on the control texts.
- level: the same of the unlearned model; above it is over-forgotten.
- weights: whether they are the original's, or have nothing in common with them: the cosine of all
  matrices, near 1 for whatever was trained on and near 0 for another model (Zeng et al. 2024).

Intervals are Student's (Welch's between two kinds of texts) over clusters of chunks. Without a
retrained model the two kinds of texts may differ in difficulty, and the check warns of it.
"""

from collections.abc import Mapping
from math import comb, isnan, log, nan
from typing import NamedTuple

import numpy as np

from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Floats
from analysis.settings import MeasureSettings
from analysis.unlearning_audit.evidence import AUDITED, HOLDOUT, RETAINED, Chunks
from analysis.unlearning_audit.rule import AuditShares
from analysis.unlearning_audit.shares import Clusters, difference, mean

MARGIN = MeasureSettings().utility_margin
"""Nats a token within which two levels are the same."""
BROKEN = log(2)
"""Nats per token on control texts: a model that loses more does not work, and one that gains more
was trained on them."""
UNRELATED = 0.2
"""Cosine of two models' weights below which they have no common origin. Models trained separately
from the same initial weights are above it as well."""
LOSS_RUN = 8
"""Minimum number of neighbouring chunks of a book drawn together, for numbers of losses."""
LEAST = 5
"""Clusters per side below which a difference of losses has no interval."""
CHANCE = 0.05
"""Probability below which written text is not due to chance."""

YES, NO, UNKNOWN = "yes", "no", "cannot be told"
ABOVE, BELOW, ALIKE, GUESSING = "less likely", "likelier", YES, "no better than guessing"
LOST = "no: it lost the retained texts"
NO_LOSS = "the losses were not measured (add the detector loss)"
CONTAMINATED = (
    "the control is contaminated: the unlearned model finds it so much likelier than the others do "
    "that it was probably trained on it"
)
NO_CONTROL = "there are no control texts (--control-texts: texts like these that no model saw)"

MEANINGS = {
    "same weights": "nothing was unlearned",
    "still written": "more than chance explains",
    "not a working language model": "nothing can be concluded about forgetting",
    "the original did not know these texts": "there was nothing to forget",
    "another model": "its weights were made neither from the original's nor from the same initial "
    "weights, so that what it does not know it need not have forgotten",
    "retained texts lost": "what it should still know is gone as well, so that nothing can "
    "be concluded about forgetting these texts",
    "still known": "the texts are written no more than chance explains, but likelier than the "
    "control",
    "over-forgotten": "the texts are less likely than the control, which also distinguishes them",
    "over-forgotten or not a working language model": "control texts, or more of them, "
    "can show which (--control-texts)",
    "forgotten as far as can be seen": "the texts are as likely as the control, and written no "
    "more than chance explains",
    "cannot be judged": "",
}
"""Every verdict, and what it means."""
QUESTIONS = {
    "working": "the unlearned model is a working language model",
    "knew": "the original knew the texts",
    "level": "the texts are as likely as the control",
    "weights": "its weights were made from the original's or from the same initial weights",
}


class Weights(NamedTuple):
    """A comparison of the unlearned model's weights with the original's."""

    same: bool
    cosine: float
    """Of all matrices; NaN if it was not measured."""
    about: str
    """The comparison, or the reason for its absence."""


class AuditAnswer(NamedTuple):
    """The answer to one of `QUESTIONS`."""

    answer: str
    measure: Estimate
    """Nats a token; of `weights` the cosine."""
    about: str
    """What was compared."""


class Judgement(NamedTuple):
    """The conclusions of an audit."""

    verdict: str
    """One of `MEANINGS`."""
    meaning: str
    checks: Mapping[str, AuditAnswer]
    """By the names of `QUESTIONS`."""


def judge(
    parts: Mapping[str, Chunks], weights: Weights, measured: AuditShares, *, guessing: float
) -> Judgement:
    """Return the checks and the verdict of an audit.

    Args:
        parts: the chunks of each part with their losses.
        weights: their comparison with the original's.
        measured: the numbers of the audit.
        guessing: loss of guessing tokens by their frequency; infinite if it is unknown.
    """
    working = _check_working(parts, guessing)
    contaminated = working.measure.reason == CONTAMINATED
    checks = {
        "working": working,
        "knew": _check_original(parts, measured),
        "level": _check_level(parts, guessing, contaminated=contaminated),
        "weights": _check_weights(weights),
    }
    chance = _chance(measured, paired="retrained" in parts[AUDITED].losses)
    answers = {name: check.answer for name, check in checks.items()}
    verdict = "same weights" if weights.same else _verdict(answers, measured, chance)
    unanswered: dict[str, list[str]] = {}
    for name, check in checks.items():
        if check.answer == UNKNOWN:
            reason = check.measure.reason or "the interval is too wide"
            unanswered.setdefault(reason, []).append(f"whether {QUESTIONS[name]}")
    meaning = MEANINGS[verdict] or "; ".join(
        f"{reason}, so it is unknown {', '.join(questions)}"
        for reason, questions in unanswered.items()
    )
    return Judgement(verdict, meaning, checks)


def _verdict(answers: Mapping[str, str], measured: AuditShares, chance: float) -> str:
    if chance <= CHANCE:
        return "still written"
    if answers["working"] == NO:
        return "not a working language model"
    if answers["knew"] == NO:
        return "the original did not know these texts"
    if answers["weights"] == NO:
        return "another model"
    level = answers["level"]
    if answers["working"] == LOST:
        return "retained texts lost"
    if level == BELOW:
        return "still known"
    if level == GUESSING or (level == ABOVE and answers["working"] == UNKNOWN):
        return "over-forgotten or not a working language model"
    if level == ABOVE:
        return "over-forgotten"
    judgeable = answers["knew"] == YES and answers["working"].startswith(YES)
    if level == ALIKE and judgeable and measured.written["unlearned"].remembered:
        return "forgotten as far as can be seen"
    return "cannot be judged"


def _check_working(parts: Mapping[str, Chunks], guessing: float) -> AuditAnswer:
    control = parts[HOLDOUT]
    if not control.losses:
        reason = NO_CONTROL if parts[AUDITED].losses else NO_LOSS
        return AuditAnswer(UNKNOWN, no_estimate(reason), "")
    lost, about = _loss_increase(control, "control texts")
    own = _mean(control, control.losses["unlearned"])
    if lost.low > BROKEN:
        return AuditAnswer(NO, lost, about)
    if own.low > guessing:
        about = "its loss on the control texts minus that of guessing tokens by their frequency"
        less = {end: getattr(own, end) - guessing for end in ("value", "low", "high")}
        return AuditAnswer(NO, own._replace(**less), about)
    if lost.high < -BROKEN:
        return AuditAnswer(UNKNOWN, lost.said(f"none: {CONTAMINATED}", lost.caution), about)
    if parts[RETAINED].losses:
        retained, of_retained = _loss_increase(parts[RETAINED], "retained texts")
        if retained.low > BROKEN:
            return AuditAnswer(LOST, retained, of_retained)
    if not own.high < guessing:
        why = "it may predict the control texts no better than the frequency of tokens does"
        return AuditAnswer(UNKNOWN, lost.said(f"none: {lost.reason or why}", lost.caution), about)
    if lost.high < -MARGIN:
        why = "likelier than the others find it: the control may be contaminated"
        lost = lost.said(lost.about, why)
    answer = UNKNOWN if not lost.high < BROKEN else YES if lost.low <= MARGIN else "yes, damaged"
    return AuditAnswer(answer, lost, about)


def _mean(chunks: Chunks, losses: Floats) -> Estimate:
    return mean(losses, chunks.clusters(least_run=LOSS_RUN), least=LEAST)


def _loss_increase(chunks: Chunks, texts: str) -> tuple[Estimate, str]:
    """Return the unlearned model's loss minus the best of the others', and the comparison."""
    others = [name for name in ("original", "retrained") if name in chunks.losses]
    best = min(others, key=lambda name: float(np.nanmean(chunks.losses[name])))
    lost = _mean(chunks, chunks.losses["unlearned"] - chunks.losses[best])
    return lost, f"its loss on the {texts} minus the {best} model's"


def _check_original(parts: Mapping[str, Chunks], measured: AuditShares) -> AuditAnswer:
    loss, about = _against_control(parts, "original")
    writes = measured.shares["remembered_original"].value > 0
    answer = YES if loss.high < 0 else NO if loss.low > -MARGIN and not writes else UNKNOWN
    return AuditAnswer(answer, loss, about)


def _check_level(
    parts: Mapping[str, Chunks], guessing: float, *, contaminated: bool
) -> AuditAnswer:
    loss, about = _against_control(parts, "unlearned")
    losses = parts[AUDITED].losses
    answer = UNKNOWN
    if contaminated and "retrained" not in losses and not loss.high < -MARGIN:
        return AuditAnswer(UNKNOWN, loss.said(f"none: {CONTAMINATED}", loss.caution), about)
    if loss.low > MARGIN:
        answer = ABOVE
    elif loss.high < -MARGIN:
        answer = BELOW
    elif loss.low > -MARGIN and loss.high < MARGIN:
        answer = ALIKE
    elif isnan(loss.value) and losses and np.nanmean(losses["unlearned"]) >= guessing:
        answer = GUESSING
    return AuditAnswer(answer, loss, about)


def _against_control(parts: Mapping[str, Chunks], model: str) -> tuple[Estimate, str]:
    """Return a model's loss on the audited chunks less the control's, and what was compared."""
    about = f"the {model} model's loss on these chunks minus"
    audited, control = parts[AUDITED], parts[HOLDOUT]
    if not audited.losses:
        return no_estimate(NO_LOSS), ""
    own = audited.losses[model]
    if "retrained" in audited.losses:
        paired = _mean(audited, own - audited.losses["retrained"])
        return paired, f"{about} the retrained model's"
    if not control.losses:
        return no_estimate(NO_CONTROL), ""
    runs, control_runs = (chunks.clusters(least_run=LOSS_RUN) for chunks in (audited, control))
    names = (*runs.names, *(f"control {name}" for name in control_runs.names))
    gap = difference(
        np.concatenate([own, control.losses[model]]),
        np.arange(len(names)) < len(own),
        Clusters(names, runs.about or control_runs.about),
        least=LEAST,
    )
    return gap, f"{about} its loss on the control texts, which may be harder or easier"


def _check_weights(weights: Weights) -> AuditAnswer:
    if isnan(weights.cosine) and not weights.same:
        return AuditAnswer(UNKNOWN, no_estimate(weights.about), "")
    answer = "they are the same" if weights.same else NO if weights.cosine < UNRELATED else YES
    return AuditAnswer(answer, Estimate(weights.cosine, nan, nan), weights.about)


def _chance(measured: AuditShares, *, paired: bool) -> float:
    """Return the probability that a model which never knew the texts passes the level as often.

    Rosenbaum's (1954) test: of the longest runs of m chunks and n of the control, the k longest are
    all of the chunks. On the same chunks each of the k is one of a pair, so 1 / 2^k.
    """
    written = measured.written["unlearned"]
    n_known, count = int(written.known.sum()), len(written.remembered)
    control = written.level.chunks
    if not count:
        return nan
    return 0.5**n_known if paired else comb(count, n_known) / comb(count + control, n_known)
