import csv
import itertools
import re
import xml.etree.ElementTree as ET

from analysis.figures.figures_step import build_figures
from analysis.figures.style import spread_labels
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_arm

FAST = AnalysisSettings(replicates=100)


def test_all_figures_are_whole_and_say_what_stands_behind(drawn):
    names = [figure.name for figure in drawn.figures]
    sweeps = ["sweep-train-lr", "sweep-train-lr-arms", "sweep-train-lr-datasets"]
    assert names == ["detectors", "heat-map", *sweeps, "copies", "roc", "scores", "training"]
    for figure in drawn.figures:
        assert figure.svg.parent.name == "figures"
        assert ET.parse(figure.svg).getroot().tag.endswith("svg")
        assert figure.png.read_bytes().startswith(b"\x89PNG")
        assert figure.files == (figure.svg, figure.png, figure.csv)
        with figure.csv.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) > 3
        assert any(re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", one) for one in rows[0].values())
        assert "seed" in figure.caption
        assert re.search(r"\d", figure.alternative), "words for those who do not see the numbers"
    for figure in drawn.figures[:-1]:
        assert "members" in figure.caption


def test_the_same_data_give_the_same_bytes(drawn, tmp_path):
    again = build_figures(tmp_path, drawn.arms, drawn.analysis, FAST)
    for left, right in zip(drawn.figures, again, strict=True):
        assert left.svg.read_bytes() == right.svg.read_bytes()
        assert left.png.read_bytes() == right.png.read_bytes()
        assert left.csv.read_bytes() == right.csv.read_bytes()
        assert b"dc:date" not in left.svg.read_bytes()


def test_names_that_look_like_markup_or_mathematics_do_no_harm(tmp_path):
    arm = make_arm(
        tmp_path, axes={"train.lr": "$\\frac{1}{$ --><script>"}, seed=0, effect=1.0, n=40
    )
    figures = build_figures(tmp_path, [arm], analyse([arm], FAST), FAST)
    assert {figure.name for figure in figures} == {
        "detectors",
        "copies",
        "roc",
        "scores",
        "training",
    }
    assert all(b"<script" not in figure.svg.read_bytes() for figure in figures)


def test_a_single_dose_and_no_log_leave_out_what_cannot_be_drawn(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=0.0, model="base", n=40)
    assert build_figures(tmp_path, [arm], analyse([arm], FAST), FAST) == []


def test_labels_are_moved_apart_in_their_order():
    placed = spread_labels([0.5, 0.51, 0.9, 0.505], 0.05)
    order = sorted(range(4), key=lambda at: placed[at])
    assert order == [0, 3, 1, 2]
    assert all(placed[b] - placed[a] > 0.0499 for a, b in itertools.pairwise(order))
    below = spread_labels([0.99, 0.98, 0.97, 0.2], 0.05, top=1.0)
    assert max(below) <= 1.0
    assert below[0] - below[1] > 0.0499
    assert below[1] - below[2] > 0.0499
    assert below[3] == 0.2
