"""The sentence of each section on unlearning, made from the tables' rows and from nothing else.

A method is named where its whole interval supports the claim; the others are counted, not judged.
"""

from collections.abc import Callable, Sequence

from analysis.page.unlearning.headline import Judged, listed, method_title
from analysis.page.unlearning.tables import NUMBER, number_text
from analysis.unlearning.measured import (
    NO_METHOD,
    ORIGINAL,
    RETRAINED,
    STEPS,
    UNLEARNED,
    VERSUS_RETRAINED,
    MeasuredModels,
    Row,
    has_interval,
    has_value,
)
from analysis.unlearning.verdict import KEPT, LOST, MEASURES, Names


def forgot_sentence(arm: MeasuredModels, names: Names) -> str | None:
    """Say how well the headline's detector tells the forgotten texts, before and after."""
    detector = arm.headline_detector
    if detector is None:
        return None
    rows = {
        model: arm.get(model, NO_METHOD, "auc", detector=detector)
        for model in (ORIGINAL, RETRAINED)
    }
    after = spread([arm.get(UNLEARNED, method, "auc", detector=detector) for method in arm.methods])
    before = [
        f"{number_text(row)} under the {model} model"
        for model, row in rows.items()
        if has_interval(row)
    ]
    if not before or not after:
        return None
    return (
        f"{names.get(detector, detector)} tells the forgotten texts from unseen ones with AUC "
        f"{' and '.join(before)}; after unlearning with {after}."
    )


def copies_sentence(arm: MeasuredModels) -> str | None:
    """Say after which methods texts with more copies are better remembered."""
    detector = arm.headline_detector
    rows = {
        method: arm.get(UNLEARNED, method, "auc_difference_trend", detector=detector)
        for method in arm.methods
    }
    return _named(
        rows,
        lambda row: row["low"] > 0,
        "More copies leave more behind after {}, by Somers' D of what is left with copies",
        "For no method do these data show that more copies leave more behind.",
    )


def cost_sentence(models: Sequence[Judged], margin: float) -> str | None:
    """Say which methods lost what should have been kept, and which kept it all.

    Args:
        models: with their verdicts.
        margin: nats a token that may be lost.
    """
    lost: dict[str, list[str]] = {}
    kept, judged = [], 0
    for model in models:
        by_measure: dict[str, set[str]] = {}
        for row in model.rows:
            if row["kind"] == "utility":
                by_measure.setdefault(row["measure"], set()).add(row["verdict"])
        judged += bool(by_measure)
        for measure, said in by_measure.items():
            if said == {LOST}:
                lost.setdefault(measure, []).append(model.name)
        if by_measure and all(said == {KEPT} for said in by_measure.values()):
            kept.append(model.name)
    if not judged:
        return None
    parts = [
        f"{listed(names)} surely lost {MEASURES.get(measure, measure)}"
        for measure, names in lost.items()
    ]
    parts += [f"{listed(kept)} kept all that was measured"] if kept else []
    rest = judged - len({name for names in (*lost.values(), kept) for name in names})
    parts += [f"{rest} {'is' if rest == 1 else 'are'} undecided"] if rest else []
    return (
        f"{'; '.join(parts)}. Lost: more than the margin ({margin:g} nats a token) below both the "
        "retrained model and the original."
    )


def lasting_sentence(arm: MeasuredModels) -> str | None:
    """Say after which methods relearning brings back more than the retrained model learns."""
    steps = arm.relearning_steps
    if not steps:
        return None
    of = f"{STEPS}{steps[-1]}:{VERSUS_RETRAINED}"
    rows = {
        method: arm.get(UNLEARNED, method, "relearned_log_probability_difference", of=of)
        for method in arm.methods
    }
    after = f"After {steps[-1]} steps of training on a part of the forgotten texts"
    return _named(
        rows,
        lambda row: row["low"] > 0,
        f"{after} the others are likelier than under the retrained model for {{}}, in nats a token",
        f"{after} no method's model is shown to give back more of the others than the retrained "
        "model does.",
    )


def audits_sentence(rows: Sequence[Row]) -> str | None:
    """Say how often the ratio rule is wrong, and how much is still written.

    Args:
        rows: of the question `unlearning_audits`.
    """
    whole = [row for row in rows if row["copies"] == "all"]
    pooled = [row for row in whole if row["seed"] is None]
    shown = pooled or whole
    alarms, written = (
        spread([row for row in shown if row["quantity"] == quantity])
        for quantity in ("false_alarms", "remembered_unlearned")
    )
    if not alarms:
        return None
    also = f"; the unlearned models still write {written} of the texts" if written else ""
    return (
        f"Of texts that a model never saw, the ratio rule flags a share of {alarms} as not "
        f"forgotten{also}."
    )


def spread(rows: Sequence[Row | None]) -> str:
    """Return one number with its interval, or the span of several and what holds their intervals.

    Rows without an interval are left out.
    """
    known = [row for row in rows if row is not None and has_interval(row)]
    if not known:
        return ""
    if len(known) == 1:
        return number_text(known[0])
    values = sorted(row["value"] for row in known)
    low, high = min(row["low"] for row in known), max(row["high"] for row in known)
    span = " to ".join(dict.fromkeys(map(NUMBER.number, (values[0], values[-1]))))
    return f"{span} (intervals within {NUMBER.ends(low, high)})"


def _named(
    rows: dict[str, Row | None], holds: Callable[[Row], bool], some: str, none: str
) -> str | None:
    """Name the methods whose interval supports a claim, with what holds their intervals."""
    known = {method: row for method, row in rows.items() if row is not None and has_value(row)}
    if not known:
        return None
    sure = {method: row for method, row in known.items() if has_interval(row) and holds(row)}
    if not sure:
        return none
    rest = len(known) - len(sure)
    also = f"; not shown for {rest} more" if rest else ""
    text = some.format(listed([method_title(method) for method in sure]))
    return f"{text}: {spread(list(sure.values()))}{also}."
