"""The detector section: order, missing numbers with their reasons, and row limits."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from analysis.arm import axis_names
from analysis.findings import Findings, split_by_cohort
from analysis.page.content import build_page
from analysis.page.inputs import DetectorWork, EvidenceStep, PageInputs
from analysis.page.parts import OPEN_ROWS, Columns, Fold
from analysis.page.sections.copies import collapsed
from analysis.page.sections.detector import detector_section, left_out_table
from analysis.page.table import Table, TableColumn
from analysis.page.view import MAX_DETECTORS as MAX_SHOWN
from analysis.page.view import ReportView
from analysis.results import analyse
from analysis.selection.ranking import TIE
from analysis.settings import AnalysisSettings
from analysis.summary import find_headline
from analysis.unit import AUC
from detect.detector_table import describe_named
from detect.scoring import SkippedDetector
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
LEFT_OUT = [
    SkippedDetector("lira", ("shadow models",), "Set twins.shadows to an even number such as 8.")
]


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
        replace(describe_named("surp"), name=further_name(number), title=further_name(number))
        for number in range(FURTHER)
    ]
    return PageInputs(
        name="board",
        arms=[arm, base],
        analysis=analysis,
        experiment_yaml="name: board\n",
        detectors=[*facts, *other],
        left_out=LEFT_OUT,
        detector_work=WORK,
    )


@pytest.fixture(scope="module")
def tables(report):
    return split_by_cohort(report.analysis.metrics, axis_names(report.arms))


@pytest.fixture(scope="module")
def view(report, tables):
    return ReportView(inputs=report, tables=tables, best=find_headline(tables))


@pytest.fixture(scope="module")
def pages(report, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    page = build_page(report)
    for name, html in {"report.html": page.html, **page.siblings}.items():
        (folder / name).write_text(html)
    return folder


def rows_of(view) -> dict[str, dict]:
    """Return the rows by detector's title, each by the heads of its columns."""
    parts = [*detector_section(view, []).parts]
    parts += [inner for part in parts if isinstance(part, Columns | Fold) for inner in part.parts]
    tables = [part for part in parts if isinstance(part, Table) and "AUC, test split" in part.heads]
    return {row[0].text: dict(zip(table.heads, row, strict=True))
            for table in tables for row in table.rows}  # fmt: skip


def test_table_lists_each_detector_once_by_auc_with_controls_last(view, tables):
    rows = rows_of(view)
    names = [*DEFAULTS, *map(further_name, range(FURTHER))]
    assert sorted(rows) == sorted(map(view.title, names))
    assert view.order[-1] == "blind"
    values = [tables[0].reported(name).value for name in view.order[:-1]]
    assert all(after <= before + TIE for before, after in pairwise(values))
    strong = [name for name, row in rows.items() if row["AUC, test split"].strong]
    assert strong == [view.name], "bold: the best on the tuning split"
    orange = [name for name, row in rows.items() if row["Detector"].kind == "chosen"]
    assert orange == [view.name]
    assert any("on its own rows" in note for note in rows[view.title("zlib")]["Detector"].notes)
    assert any("no model" in note for note in rows[view.title("blind")]["Detector"].notes)


def test_controls_of_the_base_model_are_listed_and_equal_scores_have_no_value(report, tables):
    arm, base = tables
    nothing = {"value": math.nan, "low": math.nan, "high": math.nan}
    rows = [
        row | nothing if row["detector"] == "surp" else row
        for row in arm.rows
        if row["detector"] != "blind"
    ]
    without = Findings(rows)
    bare = replace(report, detectors=[], left_out=[])
    view = ReportView(inputs=bare, tables=[without, base], best=find_headline([without]))
    rows = rows_of(view)
    assert rows["blind"]["AUC, test split"] == AUC.entry(
        base.get(detector="blind", selection="tuned")
    )
    assert {row["Required evidence"] for row in rows.values()} == {"not declared"}
    setting, *remarks = rows["surp"]["Detector"].notes
    assert remarks == ["no value: all its scores are equal"], (
        "equal scores take precedence over missing ones"
    )
    assert left_out_table([]) is None


def test_page_shows_the_metrics_and_the_omitted_detectors(view, tables, pages):
    page = Page((pages / "report.html").read_text(encoding="utf-8"))
    titles = {view.title(name): name for name in view.order}
    n_checked = 0
    for table in page.tables:
        heads = [place.text for place in table.heads]
        if "AUC, test split" not in heads:
            continue
        for row in table.rows[1:]:
            cell = tables[0].reported(titles[row[0].text])
            if cell is not None and cell.available:
                numbers = numbers_of(row[heads.index("AUC, test split")])
                assert numbers == tuple(
                    float(f"{x:.2f}") for x in (cell.value, cell.low, cell.high)
                )
                n_checked += 1
    assert n_checked >= len(DEFAULTS) + FURTHER - 1
    (left,) = page.titled("Detectors not in this run")
    assert [place.text for place in left.rows[1]] == [
        "lira", "shadow models", "Set twins.shadows to an even number such as 8."
    ]  # fmt: skip


def test_pictures_of_many_detectors_refer_to_all_results(view, pages):
    assert len(view.shown) == MAX_SHOWN < len(view.models_only)
    assert {"loss", view.best.detector} <= set(view.shown)
    assert view.shown == [name for name in view.order if name in set(view.shown)]
    text = (pages / "report.html").read_text(encoding="utf-8")
    assert f"{len(view.models_only) - MAX_SHOWN} more detectors: all results, below." in text


def test_long_tables_fold_their_lower_rows_without_loss(view):
    long = Table(
        title="T", columns=(TableColumn("Detector"),), rows=tuple((name,) for name in view.order)
    )
    (open_table, fold) = collapsed([long])
    assert len(open_table.rows) == OPEN_ROWS
    assert (*open_table.rows, *fold.parts[0].rows) == long.rows
    assert len(view.order) > 16
    assert collapsed([open_table]) == [open_table]


def test_pictures_show_the_strongest_detectors_and_files_contain_all(report, view):
    pictures = {picture.name: picture for picture in build_page(report).pictures}
    curves = {row["detector"] for row in pictures["roc"].rows}
    assert len(curves) == 9
    assert {"loss", view.best.detector} <= curves
    detectors = {row["detector"] for row in pictures["detectors"].rows}
    assert detectors == set(view.order)
    svg = pictures["detectors"].drawing.wide
    assert {name for name in view.order if f">{view.title(name)}, " in svg} == set(view.shown)
    assert len(view.shown) == MAX_SHOWN < len(detectors)


@pytest.mark.slow
def test_many_detectors_fit_on_screen_and_on_paper(view, pages, tmp_path):
    layout = overflow(pages / "report.html", 390, figures_scroll=True)
    assert layout["scroll"] <= layout["client"]
    assert layout["broken"] == []
    text, beyond = on_paper(pages / "report.html", tmp_path)
    assert beyond == []
    assert all(view.title(name).split()[0] in text for name in view.shown)
    folded = {further_name(number) for number in range(FURTHER)} - set(view.shown)
    # The picture of AUCs expected to be 0.5 shows controls of any detector.
    answers, controls, _ = text.partition("AUCs expected to be 0.5")
    assert folded
    assert controls
    assert folded.isdisjoint(answers.split()), "folded rows are not printed"
