"""The results in full, on a page of their own, besides the table of every AUC."""

from analysis.arm_words import arm_words
from analysis.findings import contaminated_cohorts
from analysis.page.crossed import AUC
from analysis.page.grids import adjusted_tables, folded
from analysis.page.parts import Section, present
from analysis.page.pictures.surp_grid import surp_picture
from analysis.page.pictures.sweeps import sweep_pictures
from analysis.page.sections.factor_tables import factor_tables
from analysis.page.table import Table, listing
from analysis.page.view import View
from analysis.results import Analysis
from analysis.summary import Names


def results_sections(view: View) -> list[Section]:
    """Return what else is known of the results; sections without parts have nothing to show."""
    seen = contaminated_cohorts(view.tables)
    adjusted = folded(adjusted_tables(seen, view.order, view.names))
    choices = _choices(view.inputs.analysis, view.names)
    factors = [*sweep_pictures(view), *factor_tables(view)]
    titled = (
        ("adjusted", "Adjusted by the base model", adjusted),
        ("settings", "Chosen settings", present(choices, surp_picture(view))),
        ("factors-in-full", "Factors in full", factors),
    )
    return [Section(anchor, title, title, parts) for anchor, title, parts in titled]


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
                AUC.number(choice.tune_auc),
            )
            for made in analysis.choices
            for choice in made.choices
            if choice.default not in ("default", "-") or choice.tuned != choice.default
        ],
        "The choice was made by the tune AUC, which is therefore optimistic. Detectors without "
        "settings are left out.",
    )
