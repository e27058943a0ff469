import base64
import hashlib
import re

from analysis.findings import split_by_cohort
from analysis.page.parts import render_page, script_digest
from analysis.page.sections import results as module
from analysis.page.sections.results import all_results
from tests.analysis.made_findings import Number, made_arm, number

NAN = float("nan")


def cell(value: float, **changes) -> Number:
    return number(value, value - 0.1, value + 0.1, setting="default") | changes


def row_texts(results, row: int) -> dict[str, str]:
    texts = (entry.text for entry in results.table.rows[row])
    return dict(zip(results.table.heads, texts, strict=True))


def test_rows_are_exactly_the_aucs_of_the_metrics(analysed):
    tables = split_by_cohort(analysed.analysis.metrics, ["train.lr", "copies"])
    results = all_results(tables)
    expected = {
        (row["train.lr"], row["sweep.copies"], row["model"], row["dataset"], row["detector"],
         row["setting"], row["copies"], f"{row['value']:.3f}")
        for row in analysed.analysis.metrics.to_pylist()
        if row["metric"] == "auc" and row["value"] == row["value"]
    }  # fmt: skip
    assert len(results.table.rows) == len(expected) > 100
    values = sorted(row_texts(results, at)["AUC"] for at in range(len(results.table.rows)))
    assert values == sorted(row[-1] for row in expected)


def test_a_chosen_setting_that_is_the_default_is_one_row():
    cells = {("all", "loss", name, "all", "auc"): cell(0.6) for name in ("default", "tuned")}
    cells["all", "min_k", "default", "all", "auc"] = cell(0.6, setting="k=0.2")
    cells["all", "min_k", "tuned", "all", "auc"] = cell(0.7, setting="k=0.5")
    results = all_results([made_arm(cells)])
    selections = [row_texts(results, at)["Selection"] for at in range(3)]
    assert selections == ["default, tuned", "default", "tuned"]


def test_rates_share_a_row_with_their_auc_and_missing_numbers_sort_last():
    cells = {
        ("all", "loss", "default", "all", "auc"): cell(0.6),
        ("all", "loss", "default", "all", "tpr@0.1"): cell(0.25),
        ("all", "zlib", "default", "all", "auc"): cell(0.5, low=NAN, high=NAN),
        ("all", "none", "default", "all", "auc"): cell(NAN),
    }
    results = all_results([made_arm(cells)])
    assert len(results.table.rows) == 2, "rows without a value are omitted"
    assert row_texts(results, 0)["TPR at 10 % FPR"] == "0.250"
    assert row_texts(results, 1)["TPR at 10 % FPR"] == "–"
    at = results.table.heads.index("95 % interval")
    assert [row[at].sorted_by for row in results.table.rows] == ["0.5", ""]


def test_row_limit_omits_the_finest_rows_and_reports_it(monkeypatch):
    cells = {
        (dataset, f"d{detector}", "default", copies, "auc"): cell(0.6)
        for dataset in ("all", "news", "books")
        for detector in range(4)
        for copies in ("all", "1", "2")
    }
    monkeypatch.setattr(module, "MAX_ROWS", 20)
    results = all_results([made_arm(cells)])
    assert len(results.table.rows) == 20
    assert "16 of 36 rows are not on this page" in results.table.caption
    assert "single datasets at single numbers of copies" in results.table.caption
    monkeypatch.setattr(module, "MAX_ROWS", 3)
    results = all_results([made_arm(cells)])
    assert len(results.table.rows) == 3
    assert "whatever comes after the first 3" in results.table.caption
    assert all_results([]) is None


def test_policy_allows_only_the_script_of_the_page():
    html = render_page("report", "x", [], [], script=True)
    (inside,) = re.findall(r"<script>(.*?)</script>", html, re.S)
    digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert script_digest() == f"sha256-{digest}"
    for word in ("eval(", "innerHTML", "insertAdjacentHTML", "document.write", "fetch(", "XMLHttp"):
        assert word not in inside
    assert "unsafe-inline" not in html.split("script-src")[1].split(";")[0]
