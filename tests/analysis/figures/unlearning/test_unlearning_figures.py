"""Figures of an unlearning study: they draw what the table says, and name every method."""

import csv
import re
import xml.etree.ElementTree as ET

import pytest

from analysis.figures.unlearning.figures import unlearning_figures
from analysis.figures.unlearning.measured import measured_models
from tests.analysis.unlearned import DOSES, METHODS, measured_rows


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return {
        one.name: one
        for one in unlearning_figures(tmp_path_factory.mktemp("figures"), measured_rows())
    }


def numbers(figure) -> list[dict[str, str]]:
    with figure.csv.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_figure_is_whole_and_names_every_method(drawn):
    assert list(drawn) == ["unlearning", "unlearning-measures", "unlearning-copies"]
    for figure in drawn.values():
        assert ET.parse(figure.svg).getroot().tag.endswith("svg")
        assert figure.png.read_bytes().startswith(b"\x89PNG")
        assert "3 training seeds" in figure.caption
        assert "27" in figure.caption
        for method in METHODS:
            assert re.search(rf"\b{method}\b", figure.alternative), (figure.name, method)


def test_the_points_are_those_of_the_table_and_the_retrained_model_is_the_target(drawn):
    rows = measured_models(measured_rows())
    points = [one for one in numbers(drawn["unlearning"]) if one["texts"] == "retained texts"]
    assert {one["method"] for one in points} == {"original", "retrained", *METHODS}
    for point in points:
        model = point["model"]
        method = point["method"] if model == "unlearned" else "-"
        found = float(point["log_probability_difference"])
        if model == "unlearned":
            of = rows.get(model, method, "retain_log_probability_difference", of="versus=original")
            assert found == of["value"]
        else:
            assert found == pytest.approx(0 if model == "original" else -0.05)
        if model == "retrained":
            assert float(point["auc_difference"]) == 0
        else:
            of = rows.get(model, method, "auc_difference", detector="min_k")
            assert float(point["auc_difference"]) == of["value"]
            assert float(point["auc_difference_low"]) == of["low"]


def test_the_panels_by_copies_hold_each_dose_of_each_method(drawn):
    points = [one for one in numbers(drawn["unlearning-copies"]) if one["model"] == "unlearned"]
    assert [(one["panel"], one["copies"]) for one in points] == [
        (method, dose) for method in METHODS for dose in DOSES
    ]


def test_the_same_table_gives_the_same_bytes(drawn, tmp_path):
    for again in unlearning_figures(tmp_path, measured_rows()):
        assert again.svg.read_bytes() == drawn[again.name].svg.read_bytes()
        assert again.png.read_bytes() == drawn[again.name].png.read_bytes()


def test_arms_have_panels_of_their_own_and_strange_names_do_no_harm(tmp_path):
    rows = [
        row
        for axis in ("$\\frac{1}{$", "--><script>")
        for row in measured_rows(methods=("npo", "<b>"), axes={"train.lr": axis}, seeds=1)
    ]
    figures = {one.name: one for one in unlearning_figures(tmp_path, rows)}
    assert len(figures) == 3
    assert "one training seed" in figures["unlearning"].caption
    assert "npo, lr $\\frac{1}{$" in figures["unlearning-copies"].alternative
    assert all(b"<script" not in one.svg.read_bytes() for one in figures.values())


def test_what_was_not_measured_is_not_drawn(tmp_path):
    assert unlearning_figures(tmp_path, []) == []
    one_dose = [row for row in measured_rows(methods=("npo",)) if row["copies"] in ("all", "8")]
    names = [figure.name for figure in unlearning_figures(tmp_path, one_dose)]
    assert names == ["unlearning", "unlearning-measures"]
    without_auc = [row for row in one_dose if not row["measure"].startswith("auc")]
    names = [figure.name for figure in unlearning_figures(tmp_path, without_auc)]
    assert names == ["unlearning-measures"]


def test_a_model_without_numbers_is_left_out_and_no_interval_is_drawn_where_there_is_none(tmp_path):
    nan = float("nan")
    rows = []
    for row in measured_rows(methods=("npo", "rmu")):
        if row["method"] == "rmu":
            row = {**row, "value": nan, "low": nan, "high": nan}
        elif row["measure"] == "auc_difference":
            row = {**row, "low": nan, "high": nan}
        rows.append(row)
    figures = {one.name: one for one in unlearning_figures(tmp_path, rows)}
    assert "unlearning-copies" not in figures
    assert {one["method"] for one in numbers(figures["unlearning"])} == {
        "original",
        "retrained",
        "npo",
    }


def test_the_detector_that_stands_for_all_is_the_first_of_a_fixed_list():
    def headline(*detectors):
        return measured_models(measured_rows(detectors=detectors)).headline_detector

    assert headline("zlib", "loss", "min_k") == "min_k"
    assert headline("zlib", "reference", "loss") == "loss"
    assert headline("my_own", "reference") == "my_own"
    assert measured_models([]).headline_detector is None
