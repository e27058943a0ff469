"""The measures of unlearned models, arm by arm, and the published names of methods.

No number is chosen by its value: the detector that stands for all is the first of a fixed list that
was run.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile

from analysis.arm import arm_label
from analysis.copy_bins import ALL, copies_order, is_dose
from analysis.findings import Findings, Row, group_by
from analysis.intervals.estimate import Estimate
from analysis.unlearning.verdict import Names

ORIGINAL, RETRAINED, UNLEARNED = "original", "retrained", "unlearned"
NO_METHOD = "-"
CONDITION, STEPS = "condition=", "steps="
"""What the setting of a row begins with that was measured under a condition (`condition=4bit`), or
after so many steps of relearning (`steps=8`)."""
VERSUS_RETRAINED = "versus=retrained"
"""The setting of a difference to that model."""
RETAINED_TEXTS = "texts=retain"
"""The setting of an accuracy on questions that are retained."""
HEADLINE_DETECTORS = ("min_k", "loss", "min_k_plus_plus", "zlib")
"""Whose numbers stand for the others': Min-K% as in PrivLeak (Shi et al. 2024, MUSE), else the next
that was run. The order is fixed, so that no detector is chosen by what it found."""
_QUALIFIED = re.compile(r"(?:condition|steps|versus|texts)=.*")
_PLACE = {"method": NO_METHOD, "detector": "-", "of": ""}
"""What a look-up means that does not name one of these columns."""
_TITLES = {
    "gradient_ascent": "Gradient ascent",
    "gradient_difference": "Gradient difference",
    "kl": "KL",
    "npo": "NPO",
    "simnpo": "SimNPO",
    "dpo": "DPO",
    "rmu": "RMU",
    "task_vector": "Task vector",
    "relabel": "Relabelling",
}


def by_arm(rows: Sequence[Row], first: str = "model") -> dict[str, Findings]:
    """Return the rows of each arm by its values of the swept axes in words, in their order.

    Args:
        rows: of a question about unlearned models; their keys are in the order of its columns.
        first: the column after the swept axes.
    """
    arms = group_by(readable(rows, first), lambda row: row["arm"]) or {"": []}
    return {name: Findings(arm_rows, place=_PLACE) for name, arm_rows in arms.items()}


def readable(rows: Sequence[Row], first: str) -> list[Row]:
    """Return rows with their arm in words, their counts as `Estimate` reads them, and `of`: what
    their setting says of the number, empty if it is the detector's own."""
    axes = [*takewhile(lambda name: name != first, rows[0])] if rows else []
    return [
        {
            **row,
            "arm": arm_label((axis, row[axis]) for axis in axes),
            "of": qualified[0] if qualified else "",
            "n_members": row.get("forget", 0),
            "n_nonmembers": row.get("holdout", 0),
            "n_seeds": row.get("seeds", 0),
        }
        for row in rows
        for qualified in [_QUALIFIED.findall(str(row.get("setting")))]
    ]


@dataclass(frozen=True, kw_only=True)
class UnlearningArm:
    """The measures of one arm, looked up by model."""

    found: Findings
    """Rows of the question `unlearning`."""
    name: str = ""
    """Its values of the swept axes; empty if there is one arm."""
    names: Names = field(default_factory=dict)
    """Published names of detectors, by their own."""

    @cached_property
    def detectors(self) -> list[str]:
        """The detectors whose AUC was measured."""
        return self.found.where(measure="auc").values("detector")

    @cached_property
    def detector(self) -> str:
        """The detector whose numbers stand for the others'; empty if none was run."""
        ordered = (*HEADLINE_DETECTORS, *self.detectors)
        return next((name for name in ordered if name in self.detectors), "")

    @cached_property
    def models(self) -> list[tuple[str, str]]:
        """Model and method: the original, the retrained model, the unlearned ones as requested."""
        models = dict.fromkeys((row["model"], row["method"]) for row in self.found.rows)
        order = (ORIGINAL, RETRAINED, UNLEARNED)
        return [pair for name in order for pair in models if pair[0] == name]

    @property
    def methods(self) -> list[str]:
        """The labels of the unlearned models."""
        return [method for model, method in self.models if model == UNLEARNED]

    @property
    def steps(self) -> list[int]:
        """The steps of relearning after which models were looked at, rising; 0 is before any."""
        return sorted({int(qualifier.partition(":")[0]) for qualifier in self.qualifiers(STEPS)})

    def qualifiers(self, kind: str) -> list[str]:
        """Return the subjects of numbers, such as the conditions of the measured models."""
        return [of.removeprefix(kind) for of in self.found.values("of") if of.startswith(kind)]

    def copies(self, measure: str) -> list[str]:
        """Return the numbers of copies at which something was measured, rising."""
        labels = self.found.where(measure=measure).values("copies")
        return sorted(filter(is_dose, labels), key=copies_order)

    def title(self, detector: str) -> str:
        """Return the printed name of a detector."""
        return self.names.get(detector, detector)

    def get(self, measure: str, model: str = UNLEARNED, **place: str) -> Estimate | None:
        """Return a number of all copies and datasets, unless `place` restricts them."""
        return self.found.get(model=model, measure=measure, **place)

    def by_method(self, measure: str, **place: str) -> dict[str, Estimate]:
        """Return a number of each unlearned model that has it."""
        estimates = {method: self.get(measure, method=method, **place) for method in self.methods}
        return {method: cell for method, cell in estimates.items() if cell is not None}


def whole(row: Row) -> bool:
    """Return whether a row is of all copies and datasets."""
    return (row["copies"], row["dataset"]) == (ALL, ALL)


def method_title(label: str) -> str:
    """Return the printed name of a method's label: `npo` is NPO, `npo-retain` NPO-retain."""
    for name in sorted(_TITLES, key=len, reverse=True):
        if label == name or (label.startswith(name) and not label[len(name)].isalnum()):
            return _TITLES[name] + label[len(name) :]
    return label


def model_text(model: str, method: str) -> str:
    """Return the head of a table row."""
    return f"{model} model" if method == NO_METHOD else method_title(method)
