"""Factors of a simulated study, from its files to the table, the figures and the page."""

from dataclasses import replace

import pytest

from analysis.factors.contrasts import analyse_factors
from analysis.factors.doses import COPIES
from analysis.page.content import build_page
from analysis.page.inputs import PageInputs
from analysis.page.parts import pictures_in
from analysis.page.sections.factor_tables import dose_response_picture
from analysis.page.sections.factors import factors_section
from analysis.results import analyse, read_analysis, write_analysis
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_arm, make_examples
from tests.analysis.viewing import view_of


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two learning rates and two seeds, with the same rows and copies for both rates."""
    folder = tmp_path_factory.mktemp("factors")
    arms = []
    for seed in (0, 1):
        pool = make_examples(seed, n=100)
        for lr, effect in (("0.001", 0.3), ("0.004", 1.0)):
            arms.append(
                make_arm(
                    folder / f"{lr}-{seed}",
                    axes={"train.lr": lr},
                    seed=seed,
                    effect=effect,
                    examples=pool,
                )
            )
    settings = AnalysisSettings(dataset_detectors=())
    analysis = analyse(arms, settings)
    return arms, settings, analysis, analyse_factors(arms, analysis.choices, settings)


def _rows(study, **conditions):
    return [
        row
        for row in study[3].to_pylist()
        if all(row[key] == value for key, value in conditions.items())
    ]


def test_line_points_are_the_aucs_of_the_report(study):
    _, _, analysis, _ = study
    points = _rows(
        study, factor=COPIES, dataset="all", detector="loss", term="point", **{"train.lr": "0.004"}
    )
    metrics = {
        row["copies"]: row["value"]
        for row in analysis.metrics.to_pylist()
        if (row["train.lr"], row["model"], row["detector"]) == ("0.004", "contaminated", "loss")
        and (row["dataset"], row["metric"], row["variant"]) == ("all", "auc", "all")
        and row["selection"] == "default"
    }
    assert len(points) > 3
    for point in points:
        if point["x"] == round(point["x"]) and point["x"] <= 4:
            assert point["value"] == pytest.approx(metrics[f"{point['x']:.0f}"], abs=1e-12)


def test_contrast_of_two_arms_is_their_auc_difference(study):
    _, _, analysis, _ = study
    rows = {
        row["train.lr"]: row
        for row in analysis.metrics.to_pylist()
        if (row["model"], row["detector"], row["copies"]) == ("contaminated", "zlib", "all")
        and (row["dataset"], row["metric"], row["variant"]) == ("all", "auc", "all")
        and row["selection"] == "default"
    }
    aucs = {level: row["value"] for level, row in rows.items()}
    (contrast,) = _rows(study, kind="contrast", dataset="all", detector="zlib")
    # `all` has all members with at least one copy, in both arms.
    assert contrast["value"] == pytest.approx(aucs["0.004"] - aucs["0.001"], abs=1e-12)
    assert (contrast["level"], contrast["versus"]) == ("0.004", "0.001")
    assert contrast["low"] < contrast["value"] < contrast["high"]
    assert contrast["n_members"] == min(row["n_members"] for row in rows.values())


def test_variances_of_the_study_are_stored_for_planning(study):
    terms = {row["term"] for row in _rows(study, kind="variance", detector="loss")}
    assert terms == {"design_effect", "shared", "correlation"}
    effects = [row["value"] for row in _rows(study, term="design_effect")]
    assert all(0.5 < value < 3 for value in effects)


def test_pictures_contain_line_points_and_differences(study):
    arms, settings, analysis, factors = study
    whole = replace(analysis, tables={**analysis.tables, "factors": factors})
    view = view_of(arms, whole, analysis_settings=settings)
    curves = dose_response_picture(view)
    points = _rows(
        study, factor=COPIES, dataset="all", detector="loss", term="point", **{"train.lr": "0.004"}
    )
    place = ("point", "lr 0.004", "loss")
    drawn_points = [
        row for row in curves.rows if (row["part"], row["arm"], row["detector"]) == place
    ]
    assert [row["auc"] for row in drawn_points] == [row["value"] for row in points]
    for row in points:
        assert (
            f"AUC {row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" in curves.drawing.wide
        )
    forest = next(pictures_in(factors_section(view).parts))
    assert forest.name == "contrasts"
    for dot in forest.rows:
        (row,) = _rows(study, kind="contrast", dataset="all", detector=dot["detector"])
        assert (dot["value"], dot["low"]) == (row["value"], row["low"])


def test_factor_table_is_stored_and_shown_on_the_page(study, tmp_path):
    arms, settings, analysis, factors = study
    whole = replace(analysis, tables={**analysis.tables, "factors": factors})
    write_analysis(tmp_path, whole)
    read = read_analysis(tmp_path)
    assert read.factors is not None
    # As text, since NaN is not equal to itself.
    assert str(read.factors.to_pylist()) == str(factors.to_pylist())
    inputs = {"name": "study", "arms": arms, "experiment_yaml": ""}
    report = build_page(PageInputs(analysis=read, **inputs))
    assert 'id="factors"' in report.html
    assert 'href="#factors"' in report.html
    page = "".join([report.html, *report.siblings.values()])
    for title in ("Response to copies", "Best detector by arm"):
        assert title in page
    for name in ("dose-response", "contrasts"):
        assert f'<figure id="figure-{name}">' in page
