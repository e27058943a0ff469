"""The dose-response of detectability: AUCs by copies, and the line that is fitted to them."""

from collections.abc import Iterator

import numpy as np

from analysis.factors.doses import (
    COPIES,
    Response,
    copy_responses,
    factor_value,
    measure_arms,
    short_number,
    shown_reach,
)
from analysis.factors.doses import Line as Fit
from analysis.factors.study import collect_study
from analysis.page.crossed import AUC, MAX_PANELS
from analysis.page.drawing.elements import Dot
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.view import View
from analysis.tables import POOLED

_STEPS = 60


def dose_response_picture(view: View) -> Picture | None:
    """Return the fitted lines, a panel an arm and detector; None without any."""
    inputs, names = view.inputs, view.few(view.shown)
    study = collect_study(inputs.arms, inputs.analysis.choices_by_cohort, inputs.analysis_settings)
    fitted = [
        (response, response.line)
        for name in names
        if name in study.detectors
        for response in copy_responses(
            study,
            measure_arms(study, name, inputs.analysis_settings),
            name,
            confidence=inputs.analysis_settings.confidence,
        )
        if response.dataset == POOLED and isinstance(response.line, Fit)
    ]
    if not fitted:
        return None
    fitted.sort(key=lambda pair: str(pair[0].cohort))
    doses = sorted({float(x) for _, line in fitted for x in line.points.x})
    panels = Panels(
        panels=[
            LinePanel(
                view.title(response.detector),
                [
                    Line(_curve(line), view.kind(response.detector), marks=False),
                    Line(_points(line), "points"),
                ],
                view.words(response.cohort),
            )
            for response, line in fitted[:MAX_PANELS]
        ],
        x=[(x, short_number(factor_value(COPIES, x))) for x in doses],
        y=[(at / 4, f"{at / 4:.2f}") for at in range(5)],
        centre=0.5,
        x_label="copies, as log2(1 + copies)",
        label="Curves of AUC against copies: "
        + "; ".join(_reached(view, response) for response, _ in fitted),
        per_row=len(names),
    )
    caption = (
        "Probit of AUC as a line in log2(1 + copies), with its 95 % band; points are the AUCs of "
        "each number of copies with intervals of their own. All datasets pooled."
    )
    rows = [row for response, line in fitted for row in _rows(response, line)]
    title = "Dose-response: AUC against copies"
    return picture("dose-response", title, caption, panels, 1180, rows)


def _reached(view: View, response: Response) -> str:
    head = ", ".join(filter(None, (view.title(response.detector), view.words(response.cohort))))
    return f"{head} reaches 0.75 at {shown_reach(response)} copies"


def _points(line: Fit) -> list[tuple[float, Dot]]:
    points = line.points
    numbers = zip(points.x, points.auc, points.low, points.high, points.members, strict=True)
    return [
        (float(x), Dot(value, low, high, f"{AUC.text(value, low, high)} · {members:,.0f} members"))
        for x, value, low, high, members in numbers
    ]


def _curve(line: Fit) -> list[tuple[float, Dot]]:
    x = np.linspace(float(line.points.x.min()), float(line.points.x.max()), _STEPS)
    numbers = np.stack([x, *line.band(x)], axis=1).tolist()
    return [(at, Dot(middle, low, high, "")) for at, middle, low, high in numbers]


def _rows(response: Response, line: Fit) -> Iterator[dict[str, object]]:
    for part, points in (("point", _points(line)), ("curve", _curve(line))):
        members = line.points.members.astype(int).tolist() if part == "point" else []
        for at, (x, dot) in enumerate(points):
            yield {
                "arm": response.cohort.label(),
                "detector": response.detector,
                "part": part,
                "copies": factor_value(COPIES, x),
                "auc": float(dot.value),
                "low": float(dot.low),
                "high": float(dot.high),
                "members": members[at] if members else None,
            }
