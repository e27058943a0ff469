"""Picture files of a run's pages: complete, with text and numbers, and reproducible."""

import csv
import re
import xml.etree.ElementTree as ET

import pytest

from analysis.page.content import build_page
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import picture, png_bytes, svg_file, write_pictures
from analysis.page.inputs import PageInputs
from analysis.unit import Dot

DETECTORS_DIFFER = {"detectors", "differences", "copies", "copies-by-arm", "chance"}


@pytest.fixture(scope="module")
def page(analysed):
    return build_page(
        PageInputs(name="x", experiment_yaml="", figure_links=True, **analysed._asdict())
    )


@pytest.fixture(scope="module")
def folder(page, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    write_pictures(folder, page.pictures)
    return folder


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_page_links_to_all_files_of_each_picture(page, folder):
    names = [figure.name for figure in page.pictures]
    assert sorted(names) == sorted(
        [*DETECTORS_DIFFER, "sweep-train-lr", "roc", "scores", "training"]
    )
    written = {f"{name}.{kind}" for name in names for kind in ("svg", "png", "csv")}
    assert {path.name for path in folder.iterdir()} == written
    html = "".join([page.html, *page.siblings.values()])
    assert set(re.findall(r'href="figures/([^"]*)"', html)) == written
    for figure in page.pictures:
        assert ET.parse(folder / f"{figure.name}.svg").getroot().tag.endswith("svg")
        label = re.search(r'aria-label="([^"]*)"', figure.drawing.wide)[1]
        assert re.search(r"\d", label), "a screen reader needs the numbers in words"
        assert figure.drawing.phone.count("<title>") >= figure.drawing.wide.count("<title>")


def test_a_png_contains_letters(page, folder):
    """Without a font resvg silently draws no text."""
    (figure,) = (figure for figure in page.pictures if figure.name == "detectors")
    svg = svg_file(figure.drawing)
    assert "var(--" not in svg
    assert (folder / "detectors.png").read_bytes() == png_bytes(svg)
    for cls in ("sm", "h a", "n"):  # Regular and bold letters.
        words = re.search(rf'<text [^>]*class="{cls}"[^>]*>[^<]+</text>', svg)
        if words:
            assert png_bytes(svg.replace(words[0], "")) != png_bytes(svg), words[0]


def test_tooltip_numbers_are_in_the_csv_unrounded(page, folder):
    for figure in page.pictures:
        rows = rows_of(folder / f"{figure.name}.csv")
        assert len(rows) == len(figure.rows) > 1
        for key, value in figure.rows[-1].items():
            assert rows[-1][key] == ("" if value != value else str(value))
        if figure.name not in DETECTORS_DIFFER - {"chance"}:
            continue
        times, digits = (100, 1) if figure.name == "differences" else (1, 2)
        stored = {
            tuple(round(times * float(row[end]), digits) for end in ("value", "low", "high"))
            for row in rows
        }
        number = r"([+−]?[\d.]+)"
        hovers = re.findall(rf"{number} ?(?:points )?\[{number}, {number}\]", figure.drawing.wide)
        assert hovers
        hovered = {tuple(float(end.replace("−", "-")) for end in hover) for hover in hovers}
        for numbers in hovered:
            near = 10.0**-digits
            assert any(
                all(abs(a - b) <= near for a, b in zip(numbers, row, strict=True)) for row in stored
            ), (figure.name, numbers)


def test_pictures_are_reproducible_and_escape_names(page, folder, tmp_path):
    (scores,) = (figure for figure in page.pictures if figure.name == "scores")
    write_pictures(tmp_path, [scores])
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes()
    evil = "$\\frac{1}{$ --><script>\x07\ufffe"
    line = Line([(0.0, Dot(0.5, 0.4, 0.6, evil)), (1.0, Dot(0.6, 0.5, 0.7, evil))])
    panels = Panels(
        panels=[LinePanel(evil, [line], evil)],
        x=[(0.0, evil), (1.0, "1")], y=[(0.0, "0"), (1.0, "1")], centre=0.5, x_label=evil,
        label=evil,
    )  # fmt: skip
    write_pictures(tmp_path, [picture("evil", evil, evil, panels, 600)])
    svg = (tmp_path / "evil.svg").read_text()
    assert "<script" not in svg
    ET.fromstring(svg)
    assert (tmp_path / "evil.png").read_bytes().startswith(b"\x89PNG")


def test_long_lines_keep_the_extremes_of_each_pixel_column():
    heights = {at: at % 2 / 10 for at in range(20_000)} | {10_100: 1.0}
    points = [(at / 200, Dot(height, 0, 0, "")) for at, height in heights.items()]
    panels = Panels(
        panels=[LinePanel("", [Line(points, "faint", marks=False)])],
        x=[(0.0, "0"), (100.0, "1")], y=[(0.0, "0"), (1.0, "1")], centre=0.0, x_label="x",
        label="1",
    )  # fmt: skip
    (line,) = re.findall(r'class="fa" d="([^"]*)"', panels.draw(600.0).wide)
    assert len(line) < 40_000
    drawn_heights = [float(point.split()[1]) for point in re.split("[ML]", line)[1:]]
    assert drawn_heights.count(min(drawn_heights)) == 1, "exactly one highest point"
