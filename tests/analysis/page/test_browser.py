"""A study's page in a real browser: it sorts, filters, and loads or injects nothing."""

import dataclasses
import re

import pytest

from analysis.page.content import build_page
from analysis.page.inputs import PageInputs
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from inject.examples.example import example_id, write_examples
from tests.analysis.synthetic import make_arm, make_examples
from tests.browsing import visit
from tests.pages import on_paper, overflow

pytestmark = pytest.mark.slow
EVIL = '</script><script>window.evil = 1</script><img src="x" onerror="window.evil = 2">'


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two arms whose texts, datasets and swept values contain markup."""
    folder = tmp_path_factory.mktemp("study")
    pool = []
    for example in make_examples(0, n=60, datasets=(EVIL, "news")):
        text = f"{EVIL} {example.text}"
        pool.append(dataclasses.replace(example, text=text, example_id=example_id(text)))
    arms = []
    for at, axis in enumerate((EVIL, "plain")):
        arm = make_arm(folder / str(at), axes={"train.lr": axis}, seed=0, effect=1.0, examples=pool)
        write_examples(arm.examples, pool)
        arms.append(arm)
    analysis = analyse(arms, AnalysisSettings(replicates=100))
    yaml = f"name: {EVIL}"
    page = build_page(PageInputs(name=EVIL, arms=arms, analysis=analysis, experiment_yaml=yaml))
    for name, html in {"report.html": page.html, **page.siblings}.items():
        (folder / name).write_text(html)
    return folder / "results.html"


def test_table_sorts_and_filters_without_side_effects(study):
    seen = visit(
        study,
        """
        const start = {rows: rows().length, status: status(), heads: heads()};
        const at = name => heads().findIndex(head => head.name === name);
        const column = name => rows().map(row => row[at(name)]);
        press("Show all rows");
        press("AUC"); const down = column("AUC"), first = heads()[at("AUC")], said = status();
        press("AUC"); const up = column("AUC"), second = heads()[at("AUC")];
        press("Detector"); const words = column("Detector");
        choose("Detector", "zlib"); const zlib = column("Detector");
        choose("Copies", "2"); const both = [column("Detector"), column("Copies")];
        press("Reset"); const again = status();
        type("min_k NEWS"); const typed = rows();
        type("no such words"); const none = [rows().length, status()];
        press("Reset");
        return {start, down, first, said, up, second, words, zlib, both, again, typed, none,
                evil: seen.evil ?? null, scripts: page.scripts.length, images: page.images.length,
                resources: seen.performance.getEntriesByType("resource").map(entry => entry.name)};
        """,
    )
    state = seen.found
    assert state["start"]["rows"] == 25
    assert {head["sort"] for head in state["start"]["heads"]} == {"none"}
    numbers = [float(text) for text in state["down"]]
    assert len(numbers) > 50
    assert numbers == sorted(numbers, reverse=True)
    assert [float(text) for text in state["up"]] == sorted(numbers)
    assert (state["first"]["sort"], state["second"]["sort"]) == ("descending", "ascending")
    assert "Sorted by AUC, descending." in state["said"]
    assert state["words"] == sorted(state["words"])
    assert set(state["zlib"]) == {"zlib"}
    assert [set(column) for column in state["both"]] == [{"zlib"}, {"2"}]
    assert state["again"].startswith("25 rows shown; ")
    assert {(row[1], row[2]) for row in state["typed"]} == {("news", "min_k")}
    assert state["none"][0] == 0
    assert state["none"][1].startswith("0 rows shown; 0 match, of")
    assert state["evil"] is None
    assert (state["scripts"], state["images"]) == (1, 0)
    assert state["resources"] == []
    assert seen.console == []
    assert seen.requests == []


def test_driver_detects_forbidden_page_actions(tmp_path):
    """The events that the test above expects to be absent are detected if they occur."""
    page = tmp_path / "bad.html"
    page.write_text('<script>console.error("heard"); window.evil = 1</script>'
                    '<img src="http://spikein.invalid/x.png">')  # fmt: skip
    seen = visit(page, "return seen.evil;")
    assert seen.found == 1
    assert any("heard" in line for line in seen.console)
    assert seen.requests == ["http://spikein.invalid/x.png"]


def test_an_injected_script_does_not_run(study, tmp_path):
    html = study.read_text(encoding="utf-8")
    page = tmp_path / "injected.html"
    page.write_text(html.replace("<main>", "<main><script>window.evil = 3</script>", 1))
    seen = visit(page, "return [seen.evil ?? null, rows().length];")
    assert seen.found == [None, 25]
    assert any("Content Security Policy" in line for line in seen.console)


def test_no_table_is_cut_at_its_right_edge(study):
    for width, name in ((390, "results.html"), (1030, "results.html"), (390, "report.html")):
        layout = overflow(study.with_name(name), width, figures_scroll=True)
        assert layout["scroll"] <= layout["client"]
        assert layout["broken"] == []
        # Short tables of the report scroll in their frames with a fixed first column.
        assert name == "report.html" or layout["cut"] == []
        assert width > 640 or layout["wide"] == []


def test_heads_are_keyboard_accessible_and_phones_sort_by_a_list(study):
    script = """
        const tabbed = [...page.querySelectorAll(".explore :is(button, select, input)")]
            .filter(element => element.getClientRects().length && element.tabIndex >= 0).length;
        const inHead = [...page.querySelectorAll(".explore th button")]
            .filter(element => element.getClientRects().length).length;
        const list = page.querySelector("select.sort-by");
        const there = list.getClientRects().length;
        list.value = String(heads().findIndex(head => head.name === "AUC"));
        list.dispatchEvent(new seen.Event("change"));
        page.querySelector("button.direction").click();
        const cells = [...page.querySelectorAll(".explore tbody td[data-label=AUC]")];
        return {tabbed, inHead, there, live: page.querySelector(".explore-status").ariaLive,
                cells: cells.map(cell => Number(cell.textContent))};
    """
    wide = visit(study, script).found
    assert wide["inHead"] > 5
    assert wide["there"] == 0
    assert wide["live"] == "polite"
    narrow = visit(study, script, width=390).found
    assert narrow["inHead"] == 0
    assert narrow["there"] == 1
    assert narrow["cells"] == sorted(narrow["cells"])


def test_printed_page_has_all_rows_and_no_controls(study, tmp_path):
    text, beyond = on_paper(study, tmp_path)
    assert "Show all rows" not in text
    assert "rows shown" not in text
    interval = re.compile(r"\d\.\d{3}–\d\.\d{3}")
    expected = interval.findall(study.read_text(encoding="utf-8"))
    assert sorted(interval.findall(text)) == sorted(expected)
    assert len(expected) > 100
    assert beyond == []
