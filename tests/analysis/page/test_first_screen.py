"""The first screen and its sections for many kinds of runs, made only from cell tables."""

import re
from html import unescape
from math import nan

import pytest

from analysis.checks.check import Check
from analysis.findings import Findings
from analysis.intervals.estimate import Estimate
from analysis.page.drawing.elements import clipped, text_width, wrapped
from analysis.page.first_screen import first_parts
from analysis.page.inputs import PageInputs
from analysis.page.parts import render_page
from analysis.page.sections.checks import badges
from analysis.page.sections.copies import copies_section
from analysis.page.sections.detector import detector_section
from analysis.page.sections.factors import factors_section
from analysis.page.sections.rates import rates_section
from analysis.page.view import MAX_ARMS, MAX_DETECTORS, ReportView
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from analysis.summary import find_headline
from tests.analysis.made_findings import one_arm
from tests.analysis.test_summary import cell

GOOD = cell(0.8, 0.7, 0.9)
DOUBTED = cell(0.8, 0.1, 0.9, interval="this model; not to be trusted: 3 groups of members")
NOTHING = cell(nan, nan, nan)
EVIL = '<script>alert("x")</script>'


def html_of(tables: list[Findings]) -> str:
    best = find_headline(tables)
    empty = analyse([], AnalysisSettings(dataset_detectors=()))
    inputs = PageInputs(name="x", arms=[], analysis=empty, experiment_yaml="")
    view = ReportView(inputs=inputs, tables=tables, best=best)
    sections = (
        copies_section(view),
        detector_section(view, []),
        rates_section(view),
        factors_section(view),
    )
    visible = [section for section in sections if section]
    return render_page("report", "x", [], visible, first=first_parts(view, []))


@pytest.mark.parametrize(
    "tables",
    [
        [one_arm({("lira",): GOOD})],
        [one_arm({("zlib",): GOOD, ("surp",): GOOD})],
        [one_arm({("loss",): GOOD, ("zlib",): NOTHING})],
        [one_arm({("loss",): GOOD, ("loss", "0"): GOOD})],
        [one_arm({("loss",): GOOD, ("loss", "1"): GOOD, ("loss", "8"): NOTHING, ("zlib",): GOOD})],
        [one_arm({("loss",): GOOD, ("loss", "1"): NOTHING, ("loss", "2"): NOTHING})],
        [one_arm({("loss",): GOOD, **{("loss", x): GOOD for x in ("1", "2", "3", "5-8", "9-16")}})],
        [one_arm({("loss",): DOUBTED, ("loss", "1"): DOUBTED, ("loss", "2"): DOUBTED})],
        [one_arm({("loss",): cell(1.0, 1.0, 1.0)})],
        [one_arm({("loss",): GOOD}, ("train.lr", f"{at / 100}")) for at in range(1, 31)],
        [one_arm({(f"d{at}",): GOOD for at in range(40)} | {("loss",): cell(0.5, 0.4, 0.6)})],
        [one_arm({(EVIL,): GOOD, (EVIL, "1"): GOOD, (EVIL, "2"): GOOD}, (EVIL, EVIL), ("b", EVIL))],
    ],
)
def test_pictures_of_any_run_show_the_numbers_of_its_cells(tables):
    html = html_of(tables)
    assert EVIL not in html
    drawn_numbers = re.findall(r"AUC (\d\.\d\d) \[(\d\.\d\d), (\d\.\d\d)\] ·", unescape(html))
    cell_numbers = {
        (f"{row['value']:.2f}", f"{row['low']:.2f}", f"{row['high']:.2f}")
        for table in tables
        for row in table.rows
    }
    assert drawn_numbers
    assert set(drawn_numbers) <= cell_numbers
    wide = html.split('<svg class="wide"')[1].split("</svg>")[0]
    hovers = wide.count("AUC ")
    assert hovers <= MAX_ARMS * MAX_DETECTORS + 1
    loss = tables[0].get(detector="loss")
    assert ("†" in wide) == (loss == Estimate.of(DOUBTED))


def test_badges_show_the_number_and_the_required_range():
    room = Estimate(nan, 0.12, 0.61)
    checks = [
        Check(key="streams", name="A", verdict="passed", sentence="", total=650),
        Check(key="fed", name="B", verdict="failed", sentence="", total=10, n_failed=1),
        Check(
            key="base",
            name="Base",
            verdict="cannot tell",
            sentence="",
            room=room,
        ),
        Check(key="twin", name="Twin", verdict="not measured", sentence=""),
    ]
    items = badges(checks).badges
    assert [badge.name for badge in items] == ["Training streams", "Training input", "Base", "Twin"]
    assert [badge.lines[0] for badge in items] == [
        "passed: 650 of 650", "failed: 9 of 10", "cannot tell: 0.12–0.61", "not measured"
    ]  # fmt: skip
    assert items[2].lines[1] == "a pass needs 0.40–0.60"


def test_texts_fit_their_space():
    assert clipped("short", 100) == "short"
    for width in (20, 60, 100):
        assert text_width(clipped("a long name of a detector", width)) <= width
        lines = wrapped("learning rate 0.0015, 2 copies on average (Poisson)", width, 2)
        assert len(lines) <= 2
        assert all(text_width(line) <= width for line in lines)
