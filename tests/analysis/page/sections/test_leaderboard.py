"""The leaderboard: who stands where, who is not ranked and why, and how many are shown."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from analysis.arm import axis_names
from analysis.figures.dots import MAX_DETECTORS, strongest
from analysis.figures.figures_step import results_figures
from analysis.figures.render import write_figures
from analysis.metrics_table import split_by_cohort
from analysis.page.content import build_page
from analysis.page.grids import MAX_ROWS, OPEN_ROWS, interval
from analysis.page.inputs import DetectorWork, EvidenceStep, PageInputs
from analysis.page.sections.leaderboard import leaderboard, left_out_listing
from analysis.page.template import page_script
from analysis.results import analyse
from analysis.selection.ranking import TIE, reported_cell
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
def report(tmp_path_factory) -> PageInputs:
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
    return PageInputs(
        name="board",
        arms=[arm, base],
        analysis=analysis,
        experiment_yaml="name: board\n",
        figures=write_figures(folder, results_figures([arm, base], analysis, FAST)),
        detectors=[*facts, *other],
        left_out=LEFT_OUT,
        detector_work=WORK,
    )


@pytest.fixture(scope="module")
def tables(report):
    return split_by_cohort(report.analysis.metrics, axis_names(report.arms))


@pytest.fixture(scope="module")
def board(report, tables):
    best = find_headline(tables)
    return leaderboard(best, tables, report.analysis, declared=report.detectors, to_loss={})


@pytest.fixture(scope="module")
def path(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(build_page(report).html)
    return path


def rows_of(board) -> dict[str, dict]:
    """Return the rows by detector, each by the heads of its columns."""
    table = board.table
    return {row[0].text: dict(zip(table.heads, row, strict=True)) for row in table.rows}


def test_every_detector_stands_on_the_board_once_ranked_by_the_rule_of_the_headline(board, tables):
    assert sorted(row[0].text for row in board.table.rows) == sorted(
        [*DEFAULTS, *map(further_name, range(FURTHER))]
    )
    rows = rows_of(board)
    ranked = [name for name, row in rows.items() if row["Rank"] != "–"]
    assert ranked == list(rows)[: len(ranked)]
    assert [rows[name]["Rank"] for name in ranked] == [str(at + 1) for at in range(len(ranked))]
    tune = [reported_cell(tables[0], name).tune for name in ranked]
    assert all(after < before + TIE for before, after in pairwise(tune))
    unranked = {name: row["Detector"].notes for name, row in rows.items() if name not in ranked}
    assert set(unranked) == {"zlib", "blind"}
    assert any("on rows of its own" in note for note in unranked["zlib"])
    assert any("no model" in note for note in unranked["blind"])


def test_a_control_beside_another_model_is_there_and_equal_scores_have_no_value(report, tables):
    arm, base = tables
    nothing = {"value": math.nan, "low": math.nan, "high": math.nan}
    cells = {
        key: replace(cell, **nothing) if key.detector == "surp" else cell
        for key, cell in arm.cells.items()
        if key.detector != "blind"
    }
    without = replace(arm, cells=cells)
    best = find_headline([without])
    found = leaderboard(best, [without, base], report.analysis, declared=[], to_loss={})
    rows = rows_of(found)
    assert rows["blind"]["Rank"] == "–"
    assert rows["blind"]["AUC"] == interval(base.get("blind", selection="tuned"))
    assert {row["Access"] for row in rows.values()} == {"not declared"}
    setting, *remarks = rows["surp"]["Detector"].notes
    assert remarks == ["no value: all its scores are equal"], "two of its rows have no score"
    assert found.choices == []
    assert left_out_listing([]) is None


def test_the_page_shows_the_board_and_who_was_left_out(board, path):
    page = Page(path.read_text(encoding="utf-8"))
    (table,) = page.titled("Leaderboard")
    assert table.column("Detector") == list(rows_of(board))
    assert table.column("Rank")[0] == "1"
    at = [place.text for place in table.heads].index("AUC")
    for row, shown in zip(rows_of(board).values(), table.rows[1:], strict=True):
        low, value, high = row["AUC"].bar
        wanted = [float(f"{number:.2f}") for number in (value, low, high)]
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


def test_figures_of_many_detectors_show_the_strongest_and_loss_wherever_it_stands(report):
    figures = {figure.name: figure for figure in report.figures}
    total = len(DEFAULTS) + FURTHER
    assert f"The strongest of {total} detectors, and loss" in figures["detectors"].caption
    assert f"9 curves of the strongest of {total} detectors" in figures["roc"].caption
    names = ["blind", "loss", *(f"d{number}" for number in range(40))]
    drawn = strongest(names)
    assert len(drawn) == MAX_DETECTORS
    assert drawn == ["loss", *(f"d{number}" for number in range(41 - MAX_DETECTORS, 40))]
    assert strongest(names[:5]) == names[:5]


@pytest.mark.slow
def test_nothing_reaches_beyond_the_screen(path, tmp_path):
    found = overflow(path, 390, tmp_path, figures_scroll=True)
    assert found["scroll"] <= found["client"]
    assert found["broken"] == []


@pytest.mark.slow
def test_paper_has_the_whole_board_and_no_hundreds_of_intervals(path, tmp_path):
    text, beyond = on_paper(path, tmp_path)
    assert beyond == []
    for number in range(FURTHER):
        assert further_name(number) in text
    assert "findings.parquet" in text
