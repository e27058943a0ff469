"""The results in full, on a page of their own: every arm, setting, dataset and number of copies."""

from collections.abc import Mapping

from analysis.arm_words import arm_words
from analysis.metrics_table import contaminated_cohorts
from analysis.page.grids import (
    adjusted_tables,
    arms_tables,
    copies_tables,
    dataset_tables,
    folded,
    retrained_tables,
    variants_tables,
)
from analysis.page.parts import Part, Picture, present
from analysis.page.sections.factor_tables import factor_tables
from analysis.page.table import Table, listing
from analysis.page.template import number_text
from analysis.page.view import View
from analysis.results import Analysis
from analysis.summary import Names, find_trend_arm


def results_parts(view: View, pictures: Mapping[str, Picture]) -> dict[tuple[str, str], list[Part]]:
    """Return sections by their anchors and titles; those without parts have nothing to show."""
    tables, order, names = view.tables, view.order, view.names
    seen = contaminated_cohorts(tables)
    tuned, default = (arms_tables(tables, order, one, names) for one in ("tuned", "default"))
    other = [table.rows for table in tuned] != [table.rows for table in default]
    by_copies = find_trend_arm(tables, view.best) or view.best.table
    sweeps: list[Part] = [
        picture for name, picture in pictures.items() if name.startswith("sweep-")
    ]
    choices = _choices(view.inputs.analysis, names)
    return {
        ("arms", "Detectors and arms"): present(folded(tuned), sweeps),
        ("default", "Default settings"): folded(default) if other else [],
        ("adjusted", "Adjusted by the base model"): folded(adjusted_tables(seen, order, names)),
        ("settings", "Chosen settings"): present(choices, pictures.get("surp-grid")),
        ("by-copies", "By number of copies"): folded(copies_tables(by_copies, order, names)),
        ("variants", "By variant"): folded(variants_tables(seen, order, names)),
        ("retrained", "After a perfect removal"): folded(retrained_tables(tables, order, names)),
        ("by-dataset", "By dataset"): folded(dataset_tables(view.best.table, order, names)),
        ("factors-in-full", "Factors in full"): factor_tables(view, pictures),
    }


def _choices(analysis: Analysis, names: Names) -> Table | None:
    """Return one row a choice; a detector whose only setting is its default had none to make."""
    return listing(
        "Chosen settings",
        ("Detector", "Model", "Default", "Tuned", "Tune AUC"),
        [
            (
                names.get(choice.detector, choice.detector),
                " · ".join(x for x in (made.cohort.model, arm_words(made.cohort.axes)) if x),
                choice.default,
                "no tune rows" if choice.tuned is None else choice.tuned,
                number_text(choice.tune_auc),
            )
            for made in analysis.choices
            for choice in made.choices
            if choice.default not in ("default", "-") or choice.tuned != choice.default
        ],
        "The choice was made by the tune AUC, which is therefore optimistic. Detectors without "
        "settings are left out.",
    )
