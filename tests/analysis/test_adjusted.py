"""Adjusted numbers beside the raw ones: in the tables, and on the page."""

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
from tests.analysis.test_results import one, rows_of

FAST = AnalysisSettings(dataset_detectors=(), min_members=5)


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    """A base model, and one that was trained from it: their scores of a row are alike."""
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


WHERE = {"model": "contaminated", "selection": "default", "copies": "all"}


def test_every_auc_and_trend_of_the_trained_model_has_a_partner(analysis):
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
            taken = partner["base_weight"] * (partner["base_value"] - centre)
            assert partner["value"] == pytest.approx(row["value"] - taken)
            assert partner["n_members"] == row["n_members"]
    assert not rows_of(analysis.metrics, metric=ADJUSTED_AUC, model="base")


def test_the_base_models_auc_is_that_of_the_very_rows(arms, analysis):
    trained, base = (load_arm(arm) for arm in arms)
    column = next(one for one in trained.columns if one.detector == "zlib")
    scores = base.scores[:, base.index[column]]
    for dataset in ("fictional", "news"):
        here = trained.test & (trained.dataset == dataset)
        inside = here & trained.member & (trained.copies > 0)
        expected = auc(scores[inside], scores[here & ~trained.member])
        row = one(analysis.metrics, metric=ADJUSTED_AUC, dataset=dataset, detector="zlib", **WHERE)
        assert row["base_value"] == pytest.approx(expected)


def test_adjusted_intervals_are_narrower(analysis):
    for metric, adjusted in ((AUC, ADJUSTED_AUC), (TREND, ADJUSTED_TREND)):
        where = {**WHERE, "dataset": "all", "detector": "zlib"}
        raw, better = (one(analysis.metrics, metric=name, **where) for name in (metric, adjusted))
        assert better["high"] - better["low"] < 0.7 * (raw["high"] - raw["low"])


def test_adjusted_differences_are_those_of_adjusted_aucs(analysis):
    found = rows_of(analysis.differences, metric=ADJUSTED_AUC, **WHERE)
    assert len(found) == len(rows_of(analysis.differences, metric=AUC, **WHERE)) > 0
    for row in found:
        first, second = (
            one(analysis.metrics, metric=ADJUSTED_AUC, dataset=row["dataset"], detector=name,
                **WHERE)
            for name in (row["detector"], row["versus"])
        )  # fmt: skip
        assert row["value"] == pytest.approx(first["value"] - second["value"])
        assert row["low"] <= row["value"] <= row["high"]


def test_without_a_base_model_or_its_scores_nothing_is_adjusted(arms, analysis, tmp_path):
    trained, base = arms
    alone = analyse([trained], FAST)
    assert not rows_of(alone.metrics, metric=ADJUSTED_AUC)
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


def test_the_page_shows_them_in_a_table_of_their_own(arms, analysis):
    tables = contaminated_cohorts(split_by_cohort(analysis.metrics, axis_names(arms)))
    (shown,) = adjusted_tables(tables, ["loss", "zlib", "min_k"])
    assert [row[0].text for row in shown.rows] == ["loss", "zlib", "min_k"]
    assert "base AUC" in shown.caption
    row = one(
        analysis.metrics, metric=ADJUSTED_AUC, dataset="all", detector="loss",
        **{**WHERE, "selection": "tuned"},
    )  # fmt: skip
    assert shown.rows[0][1].text == f"{row['value']:.2f}"
