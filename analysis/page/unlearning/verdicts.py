"""The headline of an unlearning study: which methods forgot, which did not, and at what cost.

The rows of the question `verdict` in, sentences out. A method's words are its verdict's, with
the number of the first declared measure that decides it by its whole interval; no
measure is picked by its result. *Near*: the whole interval is within half the distance from the
retrained model (0) to the original (1).
"""

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from analysis.findings import Row, group_by
from analysis.intervals.clustered import FROM_SEEDS
from analysis.intervals.estimate import Estimate
from analysis.page.parts import Badge, Badges
from analysis.page.unlearning.study import UNLEARNED, by_arm, method_title, whole
from analysis.page.unlearning.tables import counts_text, number_unit
from analysis.unlearning.verdict import (
    ALL,
    DIVERGED,
    LOST,
    NO_NAMES,
    OPEN,
    Names,
    measure_name,
    measure_unit,
)

NEAR, RUINED = "closer to the retrained", "ruined"
_UNDECIDED = (OPEN, "the measures disagree")
_SAID = {
    NEAR: "brought the model near one that never saw the texts",
    "beyond the retrained": "over-forgot",
    "mirror of the original": "over-forgot to the mirror of the original",
    "the measures disagree": "left it nearer the original by only some measures",
    OPEN: "cannot be placed",
    "closer to the original": "left it nearer the original",
    RUINED: "ruined it",
    DIVERGED: "ended without a finite score",
}
"""The phrase for the methods with each verdict, the best first."""
_MAX_NAMED = 4
MAX_MODELS = 12
"""In badges and pictures: the first requested ones, regardless of their verdicts."""


class ModelVerdict(NamedTuple):
    """One unlearned model with its verdict."""

    method: str
    """The method's published name."""
    arm: str
    """The arm in words; empty if there is but one."""
    verdict: str
    decisive: Row | None
    """The row shown with the verdict; None if no single measure decides it."""
    rows: Sequence[Row]
    """The result of every measure."""

    @property
    def name(self) -> str:
        """The method, and the arm if there are several."""
        return f"{self.method}, {self.arm}" if self.arm else self.method


def judged_models(rows: Sequence[Row]) -> list[ModelVerdict]:
    """Return every unlearned model with its verdict, in the order of the rows.

    Args:
        rows: of the question `verdict`, whose keys are in the order of its columns.
    """
    judged = []
    for arm, findings in by_arm(rows, "method").items():
        for method in findings.values("method"):
            method_findings = findings.where(method=method)
            if (overall := method_findings.row(kind=ALL)) is not None:
                rests = [row for row in method_findings.rows if row["kind"] != ALL]
                decisive = _find_decisive(overall["verdict"], rests)
                judged.append(
                    ModelVerdict(method_title(method), arm, overall["verdict"], decisive, rests)
                )
    return judged


def best_first(models: Sequence[ModelVerdict]) -> list[ModelVerdict]:
    """Return models by their verdicts, the best first."""
    rank = {verdict: at for at, verdict in enumerate(_SAID)}
    return sorted(models, key=lambda model: rank.get(model.verdict, len(rank)))


def _find_decisive(verdict: str, rows: Sequence[Row]) -> Row | None:
    """Return the first measure whose interval supports the verdict.

    A ruined model has lost against the retrained model and against the original: of the two the
    smaller loss stands for both.
    """
    if verdict == RUINED:
        utility = (row for row in rows if row["kind"] == "utility" and isfinite(row["high"]))
        pairs = group_by(utility, lambda row: row["measure"]).values()
        both = [pair for pair in pairs if {row["verdict"] for row in pair} == {LOST}]
        return max(both[0], key=lambda row: row["high"]) if both else None
    if verdict in (*_UNDECIDED, DIVERGED):
        return None
    forgetting_rows = [row for row in rows if row["kind"] == "forgetting" and isfinite(row["low"])]
    own = [row for row in forgetting_rows if row["verdict"] == verdict]
    # A model beyond the retrained one by some measures and its mirror by others is beyond it.
    past = [row for row in forgetting_rows if row["high"] < 0 and verdict == "beyond the retrained"]
    return next(iter([*own, *past]), None)


def leading_sentences(models: Sequence[ModelVerdict], measures: Sequence[Row]) -> list[str]:
    """Return the answer, then what must be known to read it.

    Args:
        models: with their verdicts.
        measures: rows of the question `unlearning`.
    """
    counted = [
        row
        for row in measures
        if (row["measure"], row["model"]) == ("auc", UNLEARNED) and whole(row)
    ]
    seeds = {row["seeds"] for row in counted if Estimate.of(row).available}
    scope = "any seed" if seeds and min(seeds) >= FROM_SEEDS else ""
    scope = "these models" if seeds == {1} else scope
    about = f" Intervals apply to {scope}." if scope else ""
    return [
        unlearning_headline(models),
        "Position 0 is a model retrained without the texts, 1 the original that saw them; near: "
        "the whole interval within half the way. Each number is that of the first declared measure "
        f"that decides. {counts_text(counted)}{about}".strip(),
    ]


def unlearning_headline(models: Sequence[ModelVerdict]) -> str:
    """Return the sentence on methods whose model is near the retrained one, and on the others.

    Args:
        models: with their verdicts.
    """
    groups = group_by(best_first(models), lambda model: model.verdict)
    methods = list(dict.fromkeys(model.method for model in models))
    arms = len({model.arm for model in models})
    alone = len(methods) == 1 and len(groups) == 1
    text = "; ".join(
        ("it" if alone and verdict != NEAR else _subject(group, methods, arms))
        + f" {_SAID.get(verdict, verdict)}{_numbers(group)}"
        for verdict, group in groups.items()
    )
    if NEAR in groups:
        return f"{text}."
    lead = f"{methods[0]} is not" if len(methods) == 1 else "No method is"
    return f"{lead} shown to bring{_SAID[NEAR].removeprefix('brought')}: {text}."


def _subject(group: Sequence[ModelVerdict], methods: Sequence[str], arms: int) -> str:
    """Name the methods of a group, each with its number of arms if not all are in it."""
    if len(methods) > 1 and len(group) == len(methods) * arms:
        return "Both methods" if len(methods) == 2 else f"All {len(methods)} methods"
    counts = Counter(model.method for model in group).items()
    return listed([name if n == arms else f"{name} in {n} of {arms} arms" for name, n in counts])


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them; of many the first, and how many more there are."""
    if len(names) > _MAX_NAMED:
        names = [*names[: _MAX_NAMED - 1], f"{len(names) - _MAX_NAMED + 1} others"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _numbers(group: Sequence[ModelVerdict]) -> str:
    """Return the number of one model with its interval, or what holds the intervals of several."""
    rows = [model.decisive for model in group if model.decisive is not None]
    ruined = group[0].verdict == RUINED
    mixed = len({row["measure"] for row in rows}) > 1
    if not rows or len(rows) < len(group) or (ruined and mixed):
        return ""
    unit = number_unit(rows[0])
    ends = unit.ends(min(row["low"] for row in rows), max(row["high"] for row in rows))
    number = unit.brief(rows[0]) if len(rows) == 1 else f"within {ends}"
    if ruined:
        number = f"{measure_name(rows[0])} {number}{measure_unit(rows[0])}"
    return f" ({number})"


def verdict_badges(models: Sequence[ModelVerdict], anchor: str, names: Names = NO_NAMES) -> Badges:
    """Return a badge per model: its verdict and the number shown with it."""
    badges = []
    for model in best_first(models[:MAX_MODELS]):
        mark = "" if model.verdict in _UNDECIDED else "failed"
        mark = "passed" if model.verdict == NEAR else mark
        row = model.decisive
        decided = [measure_name(row, names), number_unit(row).brief(row)] if row else []
        badges.append(Badge(model.name, mark, [model.verdict, *decided]))
    return Badges(badges, anchor, "Verdicts")
