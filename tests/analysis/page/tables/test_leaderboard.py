"""The leaderboard: who stands where, who is not ranked and why, and how many are shown."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from analysis.arm import axis_names
from analysis.figures.dots import MAX_DETECTORS, strongest
from analysis.figures.figures_step import results_figures
from analysis.figures.report_figure import write_figures
from analysis.metrics_table import split_by_cohort
from analysis.page.render import write_report
from analysis.page.report import CostRow, Report
from analysis.page.tables.detector_costs import DetectorWork, EvidenceStep
from analysis.page.tables.grid import MAX_ROWS, OPEN_ROWS
from analysis.page.tables.leaderboard import leaderboard, left_out_listing
from analysis.page.tables.views import difference_rows
from analysis.page.template import page_script
from analysis.results import analyse
from analysis.selection.ranking import TIE
from analysis.settings import AnalysisSettings
from analysis.summary import find_headline
from detect.detector_table import describe_named
from detect.scoring import LeftOut
from tests.analysis.synthetic import DEFAULTS, further_name, make_arm
from tests.pages import Page, numbers_of, on_paper, overflow

FAST = AnalysisSettings(replicates=100)
FURTHER = 30
WORK = [
    DetectorWork(
        detector=name,
        cost="target 1×, each shadow model (trained for it) 1×, held-out rows once",
        steps=(
            EvidenceStep(
                key=name, seconds=100.0 * at, tokens_in=12_345_678 + at, tokens_out=2_345_678 + at
            ),
        ),
        scoring_seconds=0.5,
    )
    for at, name in enumerate(DEFAULTS)
]
LEFT_OUT = [LeftOut("lira", ("shadow models",), "Set twins.shadows to an even number such as 8.")]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Report:
    folder = tmp_path_factory.mktemp("board")
    arm = make_arm(
        folder / "arm",
        axes={},
        seed=0,
        effect=0.8,
        n=40,
        further=FURTHER,
        unscored={"zlib": 40, "surp": 2},
    )
    base = make_arm(
        folder / "base", axes={}, seed=0, effect=0.0, model="base", n=40, further=FURTHER
    )
    analysis = analyse([arm, base], FAST)
    facts = [describe_named(name) for name in DEFAULTS]
    other = [
        replace(describe_named("surp"), name=further_name(number)) for number in range(FURTHER)
    ]
    return Report(
        name="board",
        arms=[arm, base],
        analysis=analysis,
        experiment_yaml="name: board\n",
        figures=write_figures(folder, results_figures([arm, base], analysis, FAST)),
        detectors=[*facts, *other],
        left_out=LEFT_OUT,
        detector_work=WORK,
        cost=[CostRow("scores", None, 1.0)],
    )


@pytest.fixture(scope="module")
def board(report):
    tables = split_by_cohort(report.analysis.metrics, axis_names(report.arms))
    best = find_headline(tables)
    assert best is not None
    to_loss = {row.detector: row.to_loss for row in difference_rows(report.analysis, best, [])}
    return leaderboard(
        best,
        tables,
        report.analysis,
        facts=report.detectors,
        to_loss=to_loss,
    )


@pytest.fixture(scope="module")
def path(report, tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("page"), report)


def test_every_detector_of_the_run_stands_on_the_board_once(board):
    names = [row.detector for row in board.rows]
    assert sorted(names) == sorted([*DEFAULTS, *map(further_name, range(FURTHER))])


def test_ranks_follow_the_rule_of_the_headline(board):
    ranked = [row for row in board.rows if row.rank is not None]
    assert [row.rank for row in ranked] == list(range(1, len(ranked) + 1))
    tune = [row.auc.tune for row in ranked]
    assert all(after < before + TIE for before, after in pairwise(tune))
    assert board.rows[: len(ranked)] == ranked


def test_who_is_not_ranked_stands_there_with_the_reason(board):
    unranked = {row.detector: row for row in board.rows if row.rank is None}
    assert set(unranked) == {"zlib", "blind"}
    assert any("on rows of its own" in remark for remark in unranked["zlib"].remarks)
    assert any("no model" in remark for remark in unranked["blind"].remarks)


def test_a_control_that_was_scored_beside_another_model_is_there(report):
    tables = split_by_cohort(report.analysis.metrics, axis_names(report.arms))
    arm, base = tables
    without = replace(
        arm, cells={key: cell for key, cell in arm.cells.items() if key.detector != "blind"}
    )
    best = find_headline([without])
    found = leaderboard(best, [without, base], report.analysis, facts=[], to_loss={})
    (blind,) = [row for row in found.rows if row.detector == "blind"]
    assert blind.rank is None
    assert blind.auc == base.get("blind", selection="tuned")


def test_equal_scores_have_no_value_and_that_is_said(report):
    tables = split_by_cohort(report.analysis.metrics, axis_names(report.arms))
    arm, base = tables
    nothing = {"value": math.nan, "low": math.nan, "high": math.nan}
    equal = replace(
        arm,
        cells={
            key: replace(cell, **nothing) if key.detector == "surp" else cell
            for key, cell in arm.cells.items()
        },
    )
    found = leaderboard(
        find_headline([equal]), [equal, base], report.analysis, facts=[], to_loss={}
    )
    (surp,) = [row for row in found.rows if row.detector == "surp"]
    assert surp.remarks == ("no value: all its scores are equal",), "two of its rows have no score"


def test_a_detector_that_is_not_declared_says_so(report):
    tables = split_by_cohort(report.analysis.metrics, axis_names(report.arms))
    found = leaderboard(find_headline(tables), tables, report.analysis, facts=[], to_loss={})
    assert {row.access for row in found.rows} == {"not declared"}
    assert found.choices == []
    assert left_out_listing([]) is None


def test_the_page_shows_the_board_and_who_was_left_out(board, path):
    page = Page(path.read_text(encoding="utf-8"))
    (table,) = page.titled("Leaderboard")
    assert [place.split(" ")[0] for place in table.column("Detector")] == [
        row.detector for row in board.rows
    ]
    assert table.column("Rank")[0] == "1"
    at = [place.text for place in table.heads].index("AUC")
    for row, shown in zip(board.rows, table.rows[1:], strict=True):
        wanted = [float(f"{getattr(row.auc, part):.2f}") for part in ("value", "low", "high")]
        assert list(numbers_of(shown[at])) == wanted
    (left,) = page.titled("Detectors that are not in this run")
    assert [place.text for place in left.rows[1]] == [
        "lira", "shadow models", "Set twins.shadows to an even number such as 8."
    ]  # fmt: skip


def test_the_filter_needs_no_script_and_offers_the_levels_that_occur(path):
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    chosen = [given["id"] for tag, given in page.tags if given.get("name") == "access"]
    assert chosen == ["access-all", "access-0", "access-3"], "the highest is the same as anything"
    assert "access-" not in page_script().text
    rows = [given["data-level"] for tag, given in page.tags if "data-level" in given]
    assert set(rows) == {"0", "3", "4"}


def test_long_tables_fold_what_is_lower_and_lose_nothing(path):
    page = Page(path.read_text(encoding="utf-8"))
    tables = page.titled("Detectors and arms, tuned settings")
    assert len(tables[0].rows) - 1 == OPEN_ROWS
    assert sum(len(table.rows) - 1 for table in tables) == len(DEFAULTS) + FURTHER
    assert len(DEFAULTS) + FURTHER > MAX_ROWS


def test_figures_of_many_detectors_show_the_strongest_and_say_so(report):
    figures = {figure.name: figure for figure in report.figures}
    total = len(DEFAULTS) + FURTHER
    assert f"The strongest of {total} detectors, and loss" in figures["detectors"].caption
    assert f"9 curves of the strongest of {total} detectors" in figures["roc"].caption


def test_loss_is_drawn_wherever_it_stands():
    names = ["blind", "loss", *(f"d{number}" for number in range(40))]
    drawn = strongest(names)
    assert len(drawn) == MAX_DETECTORS
    assert drawn == ["loss", *(f"d{number}" for number in range(41 - MAX_DETECTORS, 40))]
    assert strongest(names[:5]) == names[:5]


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_reaches_beyond_the_screen(path, tmp_path, width):
    found = overflow(path, width, tmp_path, figures_scroll=True)
    assert found["scroll"] <= found["client"]
    assert found["broken"] == []


@pytest.mark.slow
def test_paper_has_the_whole_board_and_no_hundreds_of_intervals(path, tmp_path):
    text, beyond = on_paper(path, tmp_path)
    assert beyond == []
    for number in range(FURTHER):
        assert further_name(number) in text
    assert "metrics.parquet" in text
