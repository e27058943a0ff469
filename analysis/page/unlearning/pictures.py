"""The pictures of unlearning: positions of methods, their cost, detectability, residuals.

The first two show only the basis of the verdicts: the declared measures, each as a
position between the retrained model (0) and the original (1), and the utility that was lost against
both. A measure without an interval has no mark.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, nan

from analysis.copy_bins import copies_middle
from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import AxisHeading, cross, doublings
from analysis.page.drawing.elements import round_limits
from analysis.page.drawing.matrix import Matrix, MatrixAxis, dot_ends
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.table import copies_text
from analysis.page.unlearning import study
from analysis.page.unlearning.study import UnlearningArm
from analysis.page.unlearning.tables import NUMBER, SIGNED
from analysis.page.unlearning.verdicts import MAX_MODELS, ModelVerdict, best_first
from analysis.unit import AUC, Unit
from analysis.unlearning.verdict import NO_NAMES, Names, measure_name

_LEFT, _RIGHT, _WIDTH, _PANEL = 640.0, 500.0, 1180.0, 236.0
_MAX_DETECTORS, _MAX_PANELS = 5, 10
_LEFT_BEHIND = "auc_difference"


def detectors_picture(arm: UnlearningArm) -> Picture | None:
    """Return a picture of the detectability of the forgotten texts under every model."""
    detectors = sorted(arm.detectors, key=lambda name: name != arm.detector)[:_MAX_DETECTORS]
    columns = {}
    for detector in detectors:
        framing = arm.get("auc", study.RETRAINED, detector=detector)
        rule = framing.value if framing and framing.available else nan
        columns[detector] = AxisHeading(arm.title(detector), rule=rule, name=detector)
    crossed = cross(
        ((*model, detector) for detector in detectors for model in arm.models),
        lambda item: AxisHeading(_title(*item[:2])),
        lambda item: columns[item[2]],
        unit=AUC,
        cell=lambda item: _find_interval_row(arm, *item),
    )
    matrix = crossed.matrix(
        f"AUC of {len(columns)} detectors on the forgotten texts under {len(arm.models)} models, "
        "with 95 % intervals",
        row_height=18.0,
    )
    if matrix is None:
        return None
    return picture(
        "forgotten-auc",
        "Detectability after unlearning",
        "Forgotten texts against unseen texts; 0.5: indistinguishable. Lines: 95 "
        "% intervals; dashed: the retrained model.",
        replace(matrix, phone_columns=2),
        min(_WIDTH, 180 + 250 * len(columns)),
        crossed.records("model", "detector"),
    )


def _find_interval_row(arm: UnlearningArm, model: str, method: str, detector: str) -> Row | None:
    row = arm.found.row(model=model, method=method, measure="auc", detector=detector)
    return row if row and Estimate.of(row).available else None


def _title(model: str, method: str) -> str:
    words = study.model_text(model, method)
    return words.capitalize() if method == study.NO_METHOD else words


def copies_panels(arm: UnlearningArm) -> Picture | None:
    """Return the residual by number of copies, one panel per method."""
    doses = arm.copies(_LEFT_BEHIND)
    if not arm.detector or len(doses) < 2:
        return None
    title = arm.title(arm.detector)
    unit = Unit(f"AUC of {title}", 2, signed=True)

    def line(model: str, method: str, kind: str = "") -> Line:
        cells = {
            dose: arm.get(_LEFT_BEHIND, model, method=method, detector=arm.detector, copies=dose)
            for dose in doses
        }
        dots = {
            doublings(copies_middle(dose)): unit.dot(
                f"{study.model_text(model, method)}, {copies_text(dose)}", cell
            )
            for dose, cell in cells.items()
        }
        return Line([(at, dot) for at, dot in dots.items() if dot], kind, marks=not kind)

    before = line(study.ORIGINAL, study.NO_METHOD, "faint")
    lines = {method: line(study.UNLEARNED, method) for method in arm.methods}
    visible = [(method, curve) for method, curve in lines.items() if curve.points][:_MAX_PANELS]
    if not visible:
        return None
    dots = [dot for curve in (before, *(curve for _, curve in visible)) for _, dot in curve.points]
    low, high = round_limits([end for dot in dots for end in (dot.low, dot.high)], 0.2, 0.0)
    figure = Panels(
        panels=[LinePanel(study.method_title(name), [before, curve]) for name, curve in visible],
        x=[(doublings(copies_middle(dose)), dose.replace("-", "\N{EN DASH}")) for dose in doses],
        y=[(value, f"{value:+.1f}".replace("-", "\N{MINUS SIGN}") if value else "0")
           for at in range(round((high - low) / 0.2) + 1)
           for value in [round(low + 0.2 * at, 1) + 0.0]],
        centre=0.0,
        x_label="copies of a forgotten text",
        label=f"AUC of {title} minus that of the retrained model by number of copies, "
        f"one panel each for {len(visible)} methods",
        height=220.0,
    )  # fmt: skip
    caption = (
        f"AUC of {title} minus that of the retrained model (0). Bands: 95 %. Thin grey: the "
        "original, before unlearning."
    )
    if len(arm.methods) > len(visible):
        caption += f" {len(arm.methods) - len(visible)} more methods are in the table."
    width = min(_WIDTH, 40 + _PANEL * len(visible))
    return picture("unlearning-copies", "Residual detectability by method", caption, figure, width)


def position_picture(models: Sequence[ModelVerdict], names: Names = NO_NAMES) -> Picture | None:
    """Return the position of each method between the retrained model and the original.

    Args:
        models: with their verdicts.
        names: published names of detectors, by their own.
    """

    def head(row: Row) -> AxisHeading:
        words, detector = measure_name(row, names), row["detector"]
        label, group = words.capitalize(), "Text reproduced"
        if row["measure"] == "auc":
            label, group = names.get(detector, detector), "AUC of a detector"
        return AxisHeading(label, group=group, said=words, rule=1.0)

    axis = MatrixAxis(-0.5, 1.5, 0.0, ((0.0, "0"), (1.0, "1")), zone=(-0.5, 0.5))
    label = (
        "Positions of {} unlearned models between the retrained model (0) and the original (1) by "
        "{} measures, with 95 % intervals"
    )
    matrix = _verdict_matrix(models, "forgetting", head, axis, 0.5, 2.0, label)
    caption = (
        "0: the retrained model; dashed, 1: the original; left of 0: forgotten "
        "beyond the retrained model's level. Shaded: near the retrained. Lines: 95 % (Fieller). "
        "\N{EN DASH}: no interval, for example if the measure does not distinguish the two models."
    )
    if len(models) > MAX_MODELS:
        caption += f" {len(models) - MAX_MODELS} more models are in the tables."
    return picture("positions", "Position of each method", caption, matrix, _LEFT)


def cost_picture(models: Sequence[ModelVerdict], margin: float) -> Picture | None:
    """Return the loss on the texts that should have been kept, against both other models.

    Args:
        models: with their verdicts.
        margin: nats per token that may be lost.
    """

    def head(row: Row) -> AxisHeading | None:
        if "log_probability" not in row["measure"]:
            return None
        less, name = f"minus {row['versus']}", measure_name(row)
        return AxisHeading(less, group=name.capitalize(), said=f"{name} {less}")

    axis = MatrixAxis(-2 * margin, 2 * margin, 0.0, ((0.0, "0"),), zone=(-margin, inf))
    label = (
        "Log-probability of texts that should be kept, {} unlearned models minus the retrained "
        "model and minus the original, with 95 % intervals"
    )
    matrix = _verdict_matrix(models, "utility", head, axis, 0.1, 1.0, label)
    caption = (
        "Log-probability of texts that should be kept, nats per token. Shaded: a loss of at "
        f"most {margin:g}. Ruined: for one kind of text both intervals are left of it."
    )
    return picture("cost", "Utility cost", caption, matrix, _RIGHT)


def _verdict_matrix(
    models: Sequence[ModelVerdict],
    kind: str,
    head: Callable[[Row], AxisHeading | None],
    axis: MatrixAxis,
    step: float,
    farthest: float,
    label: str,
) -> Matrix | None:
    """Return the measures of a kind for each model; None without an interval.

    Args:
        models: with their verdicts.
        kind: of the measures.
        head: the column of a row; None leaves it out.
        axis: its ends are the least, in steps up to the farthest: a ruined model is far beyond,
            and would compress all others.
        step: of the scale.
        farthest: end of the scale.
        label: what it shows, with places for the numbers of rows and columns.
    """
    visible = best_first(models[:MAX_MODELS])
    crossed = cross(
        [
            (AxisHeading(model.name), column, row)
            for model in visible
            for row in model.rows
            if row["kind"] == kind and Estimate.of(row).available and (column := head(row))
        ],
        lambda item: item[0],
        lambda item: item[1],
        unit=SIGNED if kind == "utility" else NUMBER,
        cell=lambda item: item[2],
    )
    matrix = replace(crossed, rows=[AxisHeading(model.name) for model in visible]).matrix(
        label.format(len(visible), len(crossed.columns)),
        row_height=min(24.0, max(16.0, 200 / max(1, len(visible)))),
    )
    if matrix is None:
        return None
    ends = [max(-farthest, min(farthest, end)) for end in dot_ends(matrix.columns)]
    low, high = round_limits(ends, step, axis.low, axis.high)
    zone = axis.zone and (axis.zone[0], min(axis.zone[1], high))
    scale = axis._replace(low=low, high=high, zone=zone)
    return replace(matrix, axis=scale, phone_columns=2)
