"""The page of all runs: its content, and files that it never overwrites."""

import json
from pathlib import Path

import pytest

from spikein.runs.index_page import INDEX, SUMMARY, index_rows, write_index
from spikein.runs.publication import publish_run
from tests.pages import Page

TRAP = "<script>alert(1)</script>"


def summary(*sentences: str, verdict: str = "passed") -> str:
    checks = [{"name": name, "verdict": verdict} for name in ("Audit", "Blind")]
    return json.dumps({"checks": checks, "sentences": sentences, "arms": 4})


def publish(runs: Path, name: str, content: str | None) -> Path:
    def fill(folder: Path) -> None:
        (folder / "report.html").write_text("page")
        if content is not None:
            (folder / SUMMARY).write_text(content)

    return publish_run(runs, name, fill).folder


def test_the_page_lists_runs_with_checks_and_headline(tmp_path):
    runs = tmp_path / "runs"
    publish(runs, "one", summary("AUC 0.75 [0.71, 0.79].", "The rest."))
    publish(runs, "two", summary("AUC 0.5.", verdict="failed"))
    (runs / "notes").mkdir()
    page = Page(write_index(runs).read_text())
    (table,) = page.tables
    assert sorted(row[0].text for row in table.rows[1:]) == ["one/1", "two/1"]
    text = {row[0].text: " ".join(cell.text for cell in row) for row in table.rows[1:]}
    assert "Audit: passed" in text["one/1"]
    assert "AUC 0.75 [0.71, 0.79]." in text["one/1"]
    assert "Blind: failed" in text["two/1"]
    links = {tag[1]["href"] for tag in page.tags if tag[0] == "a"}
    assert links == {"one/1/report.html", "two/1/report.html"}
    assert all((runs / link).is_file() for link in links)


def test_texts_of_runs_are_escaped(tmp_path):
    runs = tmp_path / "runs"
    publish(runs, "run", summary(TRAP, TRAP, verdict=TRAP))
    html = write_index(runs).read_text()
    assert TRAP not in html
    assert "&lt;script&gt;" in html
    assert not [tag for tag, _ in Page(html).tags if tag == "script"]


@pytest.mark.parametrize("content", [None, "{", "[1]"])
def test_a_run_without_a_valid_summary_is_listed_with_the_problem(tmp_path, content):
    publish(tmp_path / "runs", "run", content)
    (row,) = index_rows(tmp_path / "runs")
    assert "cannot be read" in row.problem
    assert "cannot be read" in write_index(tmp_path / "runs").read_text()


def test_our_page_is_rewritten_and_a_foreign_file_stays(tmp_path):
    runs = tmp_path / "runs"
    assert write_index(runs) is None
    publish(runs, "one", summary("x"))
    first = write_index(runs).read_text()
    publish(runs, "two", summary("x"))
    assert write_index(runs).read_text() != first
    (runs / INDEX).write_text("<h1>mine</h1>")
    assert write_index(runs) is None
    assert (runs / INDEX).read_text() == "<h1>mine</h1>"
