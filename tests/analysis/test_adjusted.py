"""Adjusted numbers next to the raw ones, in the tables and on the page."""

import numpy as np
import pyarrow as pa
import pytest

from analysis.adjusted import ADJUSTED_AUC, ADJUSTED_TREND
from analysis.arm import axis_names, load_arm
from analysis.findings import contaminated_cohorts, split_by_cohort
from analysis.page.sections.results import adjusted_tables
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from analysis.tables import AUC, TREND
from detect.scores.table import read_scores, write_scores
from tests.analysis.oracles import auc
from tests.analysis.synthetic import make_arm
from tests.analysis.test_results import row_of, rows_of

FAST = AnalysisSettings(dataset_detectors=(), min_members=5)


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    """A base model and one trained from it, whose scores are correlated."""
    folder = tmp_path_factory.mktemp("adjusted")
    base = make_arm(folder / "base", axes={}, seed=0, effect=0.0, model="base", n=40)
    trained = make_arm(folder / "arm", axes={"train.lr": "1"}, seed=0, effect=0.4, n=40)
    before = {
        (row["example_id"], row["detector"], row["setting"]): row["score"]
        for row in read_scores(base.scores).to_pylist()
    }
    rows = read_scores(trained.scores).to_pylist()
    for row in rows:
        row["score"] = 0.3 * row["score"]
        row["score"] += before[row["example_id"], row["detector"], row["setting"]]
    write_scores(trained.scores, pa.Table.from_pylist(rows), record={})
    return trained, base


@pytest.fixture(scope="module")
def analysis(arms):
    return analyse(arms, FAST)


ARM = {"model": "contaminated", "selection": "default", "copies": "all"}


def test_all_aucs_and_trends_of_the_trained_model_are_adjusted(analysis):
    keys = ("dataset", "detector", "setting", "selection", "copies", "variant")
    for raw, adjusted in ((AUC, ADJUSTED_AUC), (TREND, ADJUSTED_TREND)):
        rows, partners = (
            {tuple(row[k] for k in keys): row for row in rows_of(analysis.metrics, metric=name,
                                                                 model="contaminated")}
            for name in (raw, adjusted)
        )  # fmt: skip
        assert rows.keys() == partners.keys()
        centre = 0.5 if raw == AUC else 0.0
        for key, row in rows.items():
            partner = partners[key]
            correction = partner["base_weight"] * (partner["base_value"] - centre)
            assert partner["value"] == pytest.approx(row["value"] - correction)
            assert partner["n_members"] == row["n_members"]
    assert not rows_of(analysis.metrics, metric=ADJUSTED_AUC, model="base")


def test_base_value_uses_the_same_rows(arms, analysis):
    trained, base = (load_arm(arm) for arm in arms)
    column = next(column for column in trained.columns if column.detector == "zlib")
    scores = base.scores[:, base.index[column]]
    for dataset in ("fictional", "news"):
        in_dataset = trained.test & (trained.dataset == dataset)
        inside = in_dataset & trained.member & (trained.copies > 0)
        expected = auc(scores[inside], scores[in_dataset & ~trained.member])
        row = row_of(analysis.metrics, metric=ADJUSTED_AUC, dataset=dataset, detector="zlib", **ARM)
        assert row["base_value"] == pytest.approx(expected)


def test_adjusted_intervals_are_narrower(analysis):
    for metric, adjusted in ((AUC, ADJUSTED_AUC), (TREND, ADJUSTED_TREND)):
        cell = {**ARM, "dataset": "all", "detector": "zlib"}
        raw, better = (row_of(analysis.metrics, metric=name, **cell) for name in (metric, adjusted))
        assert better["high"] - better["low"] < 0.7 * (raw["high"] - raw["low"])


def test_adjusted_differences_match_adjusted_aucs(analysis):
    differences = rows_of(analysis.differences, metric=ADJUSTED_AUC, **ARM)
    assert len(differences) == len(rows_of(analysis.differences, metric=AUC, **ARM)) > 0
    for row in differences:
        first, second = (
            row_of(analysis.metrics, metric=ADJUSTED_AUC, dataset=row["dataset"], detector=name,
                **ARM)
            for name in (row["detector"], row["versus"])
        )  # fmt: skip
        assert row["value"] == pytest.approx(first["value"] - second["value"])
        assert row["low"] <= row["value"] <= row["high"]


def test_without_a_base_model_or_its_scores_nothing_is_adjusted(arms, analysis, tmp_path):
    trained, base = arms
    without_base = analyse([trained], FAST)
    assert not rows_of(without_base.metrics, metric=ADJUSTED_AUC)
    rows = read_scores(base.scores).to_pylist()
    loaded = load_arm(trained)
    missing = loaded.examples[int(np.flatnonzero(loaded.test)[0])].example_id
    for row in rows:
        if row["example_id"] == missing and row["detector"] == "zlib":
            row["score"], row["reason"] = float("nan"), "left out here"
    write_scores(tmp_path, pa.Table.from_pylist(rows), record={})
    fewer = analyse([trained, base.__class__(**{**vars(base), "scores": tmp_path})], FAST)
    with_partners = {row["detector"] for row in rows_of(fewer.metrics, metric=ADJUSTED_AUC)}
    assert with_partners == {
        row["detector"] for row in rows_of(analysis.metrics, metric=ADJUSTED_AUC)
    } - {"zlib"}
    raw = [str(row) for row in rows_of(analysis.metrics, metric=AUC, model="contaminated")]
    assert raw == [str(row) for row in rows_of(fewer.metrics, metric=AUC, model="contaminated")]


def test_page_shows_adjusted_numbers_in_a_separate_table(arms, analysis):
    tables = contaminated_cohorts(split_by_cohort(analysis.metrics, axis_names(arms)))
    (table,) = adjusted_tables(tables, ["loss", "zlib", "min_k"])
    assert [row[0].text for row in table.rows] == ["loss", "zlib", "min_k"]
    assert "base AUC" in table.caption
    row = row_of(
        analysis.metrics, metric=ADJUSTED_AUC, dataset="all", detector="loss",
        **{**ARM, "selection": "tuned"},
    )  # fmt: skip
    assert table.rows[0][1].text == f"{row['value']:.2f}"
