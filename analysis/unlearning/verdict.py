"""The verdict: is an unlearned model closer to the retrained model than to the original?

Declared beforehand, so that no one can pick a favourable measure: the AUC of `loss` and of
`min_k`, exact memorisation, extraction strength and the log-probability of the forget set determine
the model's position (`find_position`); retained text, general text and accuracy on retained
questions measure the cost. By the whole interval of the position:

| interval | verdict |
|---|---|
| above 0.5 | closer to the original |
| within -0.5 and 0.5 | closer to the retrained; *beyond the retrained* if it is below 0 |
| below 0 otherwise | beyond the retrained: over-forgotten |
| below -0.5 | the mirror of the original: as detectable, with the sign reversed |
| else, or none | cannot be told |

Utility is the difference to the retrained model, and to the original: *lost* if its interval
is below minus the margin, *kept* if it is above, else `cannot be told`. A model that has
lost some against both is ruined, whatever it forgot: what the original lacked already was not lost
by forgetting, and what the retrained model also lacks is not a loss. Since both must agree,
a sound model is called ruined no more often than by either one. One without a value
is diverged. Intervals are individual.
"""

from collections.abc import Mapping, Sequence
from math import isnan, nan
from types import MappingProxyType
from typing import Any

import numpy as np

from analysis.arm import MODEL_FREE, axis_column
from analysis.findings import Row, group_by
from analysis.intervals.ends import LEAST_GROUPS, TRUSTED_GROUPS
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.fieller import fieller
from analysis.intervals.numbers import Numbers, join_numbers
from analysis.settings import MeasureSettings
from analysis.unit import Unit
from analysis.unlearning import measures
from analysis.unlearning.evidence import NO_METHOD, ORIGINAL, RETRAINED, ModelKey, SeedCohort
from analysis.unlearning.measure_rows import number_columns

Names = Mapping[str, str]
"""Published names of detectors, by their own."""
NO_NAMES: Names = MappingProxyType({})
FORGETTING = (
    measures.auc_measure("loss"),
    measures.auc_measure("min_k"),
    measures.EXACT_MEMORISATION,
    measures.EXTRACTION_STRENGTH,
    measures.FORGET_LOG_PROBABILITY,
)
"""The measures of a model's position."""
UTILITY = (
    measures.RETAIN_LOG_PROBABILITY,
    measures.RETAIN_ACCURACY,
    measures.GENERAL_LOG_PROBABILITY,
)
"""The measures of cost."""
ALL = "all"
OPEN, LOST, KEPT, DIVERGED = "cannot be told", "lost", "kept", "diverged"
_NOTHING = Estimate(nan, nan, nan)
_THREE = ("unlearned", "retrained", "original")


def verdict_rows(
    cohort: SeedCohort, settings: MeasureSettings, *, confidence: float
) -> list[dict[str, Any]]:
    """Return the rows of the question `verdict`: of each method its measures, then `all`."""
    rows = []
    for key in cohort.keys:
        if key.method == NO_METHOD:
            continue
        findings = find_verdict(cohort, key, settings, confidence=confidence)
        overall = overall_verdict(findings)
        sentence = verdict_sentence(key.method, overall, findings, diverged_seeds(cohort, key))
        last = verdict_row(ALL, ALL, overall, note=sentence)
        head = {axis_column(name): value for name, value in cohort.axes.items()}
        rows += [{**head, "method": key.method, **row} for row in (*findings, last)]
    return rows


def verdict_row(
    measure: str, kind: str, verdict: str, number: Estimate = _NOTHING, **more: Any
) -> dict[str, Any]:
    """Return one measure's word on one method, as a row.

    Args:
        measure: its name.
        kind: `forgetting` (a position), `utility` (a difference to another model) or `all`.
        verdict: its text.
        number: the position or the difference.
        more: further columns: `detector`; of a difference `versus`, the other model; of a position
            the measure of all three; `note`, which explains a missing interval, names the margin
            or, at `all`, is the verdict in words.
    """
    return {
        "measure": measure,
        "detector": "-",
        "versus": "",
        "kind": kind,
        "verdict": verdict,
        **number_columns(number),
        **dict.fromkeys(_THREE, nan),
        "note": "",
        **more,
    }


def diverged_seeds(cohort: SeedCohort, key: ModelKey) -> list[int]:
    """Return the seeds in which a model has no finite score of any text of the forget set."""
    seeds = []
    for at, (seed, models) in enumerate(zip(cohort.seeds, cohort.models, strict=True)):
        forget = cohort.masks["forget"][cohort.rows.seed == at]
        own = models[key].values.items() if key in models else ()
        scores = [v for name, v in own if name[0] == "score" and name[1] not in MODEL_FREE]
        if scores and not any(np.isfinite(values[forget]).any() for values in scores):
            seeds.append(seed)
    return seeds


def find_verdict(
    cohort: SeedCohort, key: ModelKey, settings: MeasureSettings, *, confidence: float
) -> list[dict[str, Any]]:
    """Return the rows of one method, one for every declared measure that was taken."""
    seeds = sum(key in models for models in cohort.models)
    dead = len(diverged_seeds(cohort, key)) == seeds
    rows = []
    for measure in FORGETTING:
        if (models := measure.of(cohort, (key, RETRAINED, ORIGINAL))) is not None:
            position, values = find_position(*models, confidence=confidence)
            verdict = DIVERGED if dead and not position.seeds else position_verdict(position)
            more: dict[str, Any] = dict(zip(_THREE, values, strict=True))
            more |= {"detector": measure.detector, "note": _note(position)}
            rows.append(verdict_row(measure.name, "forgetting", verdict, position, **more))
    for measure in UTILITY:
        accuracy = measure is measures.RETAIN_ACCURACY
        margin = settings.accuracy_margin if accuracy else settings.utility_margin
        for other in (RETRAINED, ORIGINAL):
            if (pair := measure.of(cohort, (key, other))) is not None:
                gap = _smaller_side(pair[0] - pair[1], confidence)
                rows.append(_gap_row(measure, other, gap, margin, dead=dead))
    return rows


def _smaller_side(gap: Numbers, confidence: float) -> Estimate:
    """Return a difference with the groups of the smaller side."""
    cluster = gap.clustered()
    if cluster is None:
        return no_estimate("no value")
    (estimate,) = gap.estimates(confidence=confidence)
    return estimate._replace(groups=int(cluster.smaller_groups[0]))


def find_position(
    unlearned: Numbers, retrained: Numbers, original: Numbers, *, confidence: float
) -> tuple[Estimate, tuple[float, float, float]]:
    """Return the position of the unlearned model between two others, and the measure of all three.

    With u, r and o one measure of the unlearned, the retrained and the original model, that is
    (u - r) / (o - r): 0 at the retrained model, 1 at the original, -1 at the original's mirror
    image beyond the retrained one. All three are found on the same rows, so their influence values
    give the covariance of (u - r, o - r), seeds included (`analysis.intervals.joint`), and the
    interval of the ratio is Fieller's. If the original and the retrained model are not
    distinguishable there is no position.

    Args:
        unlearned, retrained, original: one measure of the same rows under each.
        confidence: requested coverage.

    Returns:
        The position, whose groups are those of the smaller side, then u, r and o.
    """
    from scipy.special import stdtrit

    by_seed = join_numbers([unlearned, retrained, original]).by_seed().shared()
    if not len(by_seed.value):
        return no_estimate("no value"), (nan, nan, nan)
    u, r, o = by_seed.value.mean(axis=0).tolist()
    groups = int(by_seed.groups.min())
    value = (u - r) / (o - r) if o != r else nan
    position = Estimate(value, nan, nan, groups=groups, seeds=len(by_seed.value))
    if groups < LEAST_GROUPS:
        return position.said(f"none: {groups} groups"), (u, r, o)
    joint = by_seed.covariance(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))
    quantile = float(stdtrit(max(float(joint.freedom.min()), 1.0), (1 + confidence) / 2))
    # The line (u - r) + (r - o) x reaches 0 at the position.
    places = fieller(u - r, r - o, joint.covariance, quantile, start=-np.inf).places
    few = f"not to be trusted: {groups} groups" if groups < TRUSTED_GROUPS else ""
    if not places and (o - r) ** 2 > quantile**2 * joint.covariance[1, 1]:
        # The models agree on every text, so both roots are equal, but for rounding.
        position = position._replace(low=value, high=value).said("these models", few)
    elif len(places) == 1 and all(np.isfinite(places[0])):
        low, high = places[0]
        position = position._replace(low=low, high=high).said("these models", few)
    else:
        position = position.said("none: the original and the retrained model are indistinguishable")
    return position, (u, r, o)


def _note(number: Estimate) -> str:
    return number.note.removeprefix("none: ")


def position_verdict(position: Estimate) -> str:
    """Return the verdict of a position's interval; see the module."""
    if isnan(position.low):
        return OPEN
    if position.low > 0.5:
        return "closer to the original"
    if position.high < -0.5:
        return "mirror of the original"
    if position.high < 0:
        return "beyond the retrained"
    if position.low > -0.5 and position.high < 0.5:
        return "closer to the retrained"
    return OPEN


def _gap_row(
    measure: measures.Measure, other: ModelKey, gap: Estimate, margin: float, *, dead: bool
) -> dict[str, Any]:
    if not gap.seeds and dead:
        verdict = DIVERGED
    elif isnan(gap.low):
        verdict = OPEN
    elif gap.high < -margin:
        verdict = LOST
    else:
        verdict = KEPT if gap.low > -margin else OPEN
    note = "; ".join(filter(None, (f"margin {margin:g}", _note(gap))))
    name = f"{measure.name}_difference"
    return verdict_row(name, "utility", verdict, gap, versus=other.model, note=note)


def overall_verdict(rows: Sequence[Row]) -> str:
    """Return one verdict of all measures."""
    if any(row["verdict"] == DIVERGED for row in rows):
        return DIVERGED
    utility = [row for row in rows if row["kind"] == "utility"]
    pairs = group_by(utility, lambda row: row["measure"])
    if any({row["verdict"] for row in pair} == {LOST} for pair in pairs.values()):
        return "ruined"
    verdicts = {row["verdict"] for row in rows if row["kind"] == "forgetting"} - {OPEN}
    if not verdicts:
        return OPEN
    if len(verdicts) == 1:
        return verdicts.pop()
    if "closer to the original" not in verdicts:
        return "beyond the retrained"
    return "the measures disagree"


_OVERALL = {
    "closer to the retrained": "is closer to the retrained model than to the original",
    "closer to the original": "is closer to the original than to the retrained model",
    "beyond the retrained": "forgot more than the retrained model never knew (over-forgotten)",
    "mirror of the original": "is the mirror of the original: over-forgotten, and as "
    "distinguishable from a model that never saw the texts as the original is",
    "ruined": "is ruined: it lost more than the margin of what it should have kept, "
    "against both the retrained model and the original",
    "diverged": "diverged: it has no finite score",
    "cannot be told": "cannot be placed between the retrained model and the original",
    "the measures disagree": "is closer to the original by some measures and not by others",
}
MEASURES = {
    "exact_memorisation": "exact memorisation",
    "extraction_strength": "extraction strength",
    "forget_log_probability": "log-probability",
    "retain_log_probability_difference": "retained text",
    "general_log_probability_difference": "general text",
    "task_accuracy_difference": "task accuracy",
}
_MODELS = {"retrained": "retrained model", "original": "original"}


def measure_name(row: Row, names: Names = NO_NAMES) -> str:
    """Return the name of the measure of a verdict's row."""
    if row["measure"] == "auc":
        return f"AUC of {names.get(row['detector'], row['detector'])}"
    return MEASURES.get(row["measure"], str(row["measure"]).replace("_", " "))


def measure_unit(row: Row) -> str:
    """Return the unit of a difference, with the space before it; empty for a share."""
    return "" if "accuracy" in row["measure"] else " nats per token"


def verdict_sentence(
    method: str, overall: str, rows: Sequence[Row], diverged: Sequence[int] = ()
) -> str:
    """Return the sentence.

    Args:
        method: the method setting's label.
        overall: its verdict.
        rows: the result of each measure.
        diverged: seeds in which the model has no finite score.
    """
    parts = [f"{method} {_OVERALL[overall]}"]
    placed = [row for row in rows if row["kind"] == "forgetting" and row["verdict"] != DIVERGED]
    for verdict, own in group_by(placed, lambda row: row["verdict"]).items():
        texts = ", ".join(f"{measure_name(row)} {_number(row)}" for row in own)
        parts.append(f"{verdict} by {texts}")
    if placed:
        parts[-1] += " (position: 0 is the retrained model, 1 the original)"
    for other, name in _MODELS.items():
        utility = [
            f"{measure_name(row)} {_number(row)} ({row['verdict']})"
            for row in rows
            if row["kind"] == "utility" and row["versus"] == other
        ]
        parts += [f"against the {name}: {', '.join(utility)}"] if utility else []
    if diverged and overall != DIVERGED:
        named = ", ".join(map(str, diverged))
        parts.append(f"it diverged with seed {named}, which no number here includes")
    return "; ".join(parts) + "."


def _number(row: Row) -> str:
    utility = row["kind"] == "utility"
    number = Unit("", 2, signed=utility).brief(row)
    if not number:
        return "without a value"
    alone = " (no interval)" if isnan(row["low"]) else ""
    return f"{number}{measure_unit(row) if utility else ''}{alone}"
