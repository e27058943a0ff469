"""Figures of an unlearning study: they draw what the table says, and name every method."""

import re
from math import nan

import pytest

from analysis.figures.panel import Figure
from analysis.figures.unlearning.figures import target_figure
from analysis.unlearning.measured import measured_models
from tests.analysis.unlearned import METHODS, measured_rows


def figures_of(rows) -> dict[str, Figure]:
    figure = target_figure(measured_models(rows))
    return {figure.name: figure} if figure else {}


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return figures_of(measured_rows())


def test_every_figure_names_every_method(drawn):
    assert list(drawn) == ["unlearning"]
    for figure in drawn.values():
        assert "3 training seeds" in figure.caption
        assert "27" in figure.caption
        for method in METHODS:
            assert re.search(rf"\b{method}\b", figure.alternative), (figure.name, method)


def test_the_points_are_those_of_the_table_and_the_retrained_model_is_the_target(drawn):
    rows = measured_models(measured_rows())
    points = [one for one in drawn["unlearning"].rows if one["texts"] == "retained texts"]
    assert {one["method"] for one in points} == {"original", "retrained", *METHODS}
    for point in points:
        model, lost = point["model"], point["log_probability_difference"]
        key = (model, point["method"] if model == "unlearned" else "-")
        forgot = (point["auc_difference"], point["auc_difference_low"])
        if model == "unlearned":
            row = rows.get(*key, "retain_log_probability_difference", of="versus=original")
            assert lost == row["value"]
        else:
            assert lost == pytest.approx(0 if model == "original" else -0.05)
        row = rows.get(*key, "auc_difference", detector="min_k") or {"value": 0, "low": 0}
        assert forgot == (row["value"], row["low"])


def test_arms_have_panels_of_their_own():
    figures = figures_of(
        [row for lr in ("1e-3", "1e-2")
         for row in measured_rows(methods=("npo", "rmu"), axes={"train.lr": lr}, seeds=1)]
    )  # fmt: skip
    assert "one training seed" in figures["unlearning"].caption
    assert [panel.title for panel in figures["unlearning"].panels] == [
        "Loss on retained texts (lr 1e-3)", "Loss on retained texts (lr 1e-2)",
    ]  # fmt: skip


def test_what_was_not_measured_is_not_drawn():
    assert figures_of([]) == {}
    one_dose = [row for row in measured_rows(methods=("npo",)) if row["copies"] in ("all", "8")]
    assert list(figures_of(one_dose)) == ["unlearning"]
    without_auc = [row for row in one_dose if not row["measure"].startswith("auc")]
    assert figures_of(without_auc) == {}
    nothing = {"value": nan, "low": nan, "high": nan}
    unknown = [
        {**row, **(nothing if row["method"] == "rmu" else {"low": nan, "high": nan})}
        for row in measured_rows(methods=("npo", "rmu"))
    ]
    figures = figures_of(unknown)
    assert {row["method"] for row in figures["unlearning"].rows} == {"original", "retrained", "npo"}


def test_the_detector_that_stands_for_all_is_the_first_of_a_fixed_list():
    def headline(*detectors):
        return measured_models(measured_rows(detectors=detectors)).headline_detector

    assert headline("zlib", "loss", "min_k") == "min_k"
    assert headline("zlib", "reference", "loss") == "loss"
    assert headline("my_own", "reference") == "my_own"
    assert measured_models([]).headline_detector is None
