"""The pictures of the sections on unlearning: what detectors tell, and what is left by copies."""

from dataclasses import replace
from math import nan

from analysis.copy_bins import copies_middle
from analysis.page.crossed import Head, cross, doublings
from analysis.page.drawing.elements import round_limits
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.table import copies_text
from analysis.page.unlearning.headline import method_title
from analysis.page.unlearning.tables import model_text
from analysis.unit import AUC, Dot, Unit
from analysis.unlearning.measured import (
    BASE,
    NO_METHOD,
    ORIGINAL,
    RETRAINED,
    UNLEARNED,
    MeasuredModels,
    has_interval,
    measured_cell,
)
from analysis.unlearning.verdict import Names

_WIDTH, _PANEL = 1180.0, 236.0
_MAX_DETECTORS, _MAX_PANELS = 5, 10
_LEFT_BEHIND = "auc_difference"


def detectors_picture(arm: MeasuredModels, names: Names) -> Picture | None:
    """Return how well detectors tell the forgotten texts under every model."""
    headline = arm.headline_detector
    detectors = sorted(arm.detectors, key=lambda name: name != headline)[:_MAX_DETECTORS]
    models = [model for model in arm.models if model[0] != BASE]
    columns = {}
    for detector in detectors:
        framing = arm.get(RETRAINED, NO_METHOD, "auc", detector=detector)
        rule = framing["value"] if framing and has_interval(framing) else nan
        columns[detector] = Head(names.get(detector, detector), rule=rule, name=detector)
    crossed = cross(
        ((*model, detector) for detector in detectors for model in models),
        lambda item: Head(_title(*item[:2])),
        lambda item: columns[item[2]],
        unit=AUC,
        cell=lambda item: measured_cell(arm.get(*item[:2], "auc", detector=item[2])),
    )
    matrix = crossed.matrix(
        f"AUC of {len(columns)} detectors on the forgotten texts under {len(models)} models, with "
        "95 % intervals",
        row_height=18.0,
    )
    if matrix is None:
        return None
    caption = (
        "Forgotten texts against texts that no model saw; 0.5: they cannot be told. Lines: 95 % "
        "intervals; dashed: the retrained model."
    )
    matrix = replace(matrix, phone_columns=2)
    width = min(_WIDTH, 180 + 250 * len(columns))
    records = crossed.records("model", "detector")
    return picture("forgotten-auc", "What detectors still tell", caption, matrix, width, records)


def _title(model: str, method: str) -> str:
    words = model_text(model, method)
    return words.capitalize() if method == NO_METHOD else words


def copies_panels(arm: MeasuredModels, names: Names) -> Picture | None:
    """Return what is left behind by number of copies, a panel a method.

    Args:
        arm: its measures.
        names: published names of detectors, by their own.
    """
    detector = arm.headline_detector
    doses = arm.copies(_LEFT_BEHIND)
    if detector is None or len(doses) < 2:
        return None
    title = names.get(detector, detector)

    unit = Unit(f"AUC of {title}", 2, signed=True)

    def points(model: str, method: str) -> list[tuple[float, Dot]]:
        found = []
        for dose in doses:
            row = arm.get(model, method, _LEFT_BEHIND, detector=detector, copies=dose)
            what = f"{model_text(model, method)}, {copies_text(dose)}"
            if dot := unit.dot(what, measured_cell(row)):
                found.append((doublings(copies_middle(dose)), dot))
        return found

    before = Line(points(ORIGINAL, NO_METHOD), "faint", marks=False)
    lines = {method: Line(points(UNLEARNED, method)) for method in arm.methods}
    shown = [(method, line) for method, line in lines.items() if line.points][:_MAX_PANELS]
    if not shown:
        return None
    dots = [dot for _, line in shown for _, dot in line.points]
    dots += [dot for _, dot in before.points]
    low, high = round_limits([end for dot in dots for end in (dot.low, dot.high)], 0.2, 0.0)
    figure = Panels(
        panels=[LinePanel(method_title(method), [before, line]) for method, line in shown],
        x=[(doublings(copies_middle(dose)), dose.replace("-", "\N{EN DASH}")) for dose in doses],
        y=[(value, f"{value:+.1f}".replace("-", "\N{MINUS SIGN}") if value else "0")
           for at in range(round((high - low) / 0.2) + 1)
           for value in [round(low + 0.2 * at, 1) + 0.0]],
        centre=0.0,
        x_label="copies of a forgotten text",
        label=f"AUC of {title} less that of the retrained model by number of copies, a panel each "
        f"for {len(shown)} methods",
        height=220.0,
    )  # fmt: skip
    caption = (
        f"AUC of {title} less that of the retrained model (0). Bands: 95 %. Thin grey: the "
        "original, before unlearning."
    )
    if len(arm.methods) > len(shown):
        caption += f" {len(arm.methods) - len(shown)} more methods are in the table."
    width = min(_WIDTH, 40 + _PANEL * len(shown))
    return picture("unlearning-copies", "What each method leaves behind", caption, figure, width)
