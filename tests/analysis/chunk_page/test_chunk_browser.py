"""The page in a real browser: sorted, filtered, within its width, quiet and offline."""

import re

import pytest

from analysis.chunk_page.page import write_chunk_page
from tests.analysis.chunk_page.samples import page, row
from tests.browsing import visit
from tests.pages import overflow

pytestmark = pytest.mark.slow
COUNT = 150
ROWS = tuple(row(number, show_text=number != 7) for number in range(COUNT))


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    return write_chunk_page(tmp_path_factory.mktemp("audit") / "audit.html", page(ROWS))


SCRIPT = """
    const shown = () => [...page.querySelectorAll(".chunks tbody tr")]
      .filter(one => one.getClientRects().length).map(one => one.cells[0].textContent);
    const start = {shown: shown(), status: status(), heads: heads()};
    press("Show 100 more"); const more = shown().length;
    press("Show all"); const all = shown();
    press("Ratio"); const ratio = [shown(), heads()[3].sort];
    press("Ratio"); const rising = [shown(), heads()[3].sort, status()];
    press("Chunk"); const names = shown();
    const flag = page.querySelector("select[data-column='2']");
    flag.value = "1"; flag.dispatchEvent(new seen.Event("change", {bubbles: true}));
    const flagged = [shown(), status()];
    press("Show all again"); type("book-141"); const found = shown();
    return {start, more, all, ratio, rising, names, flagged, found, scripts: page.scripts.length,
            resources: seen.performance.getEntriesByType("resource").map(one => one.name)};
"""


def by(key, *, reverse=True):
    return [one.chunk for one in sorted(ROWS, key=key, reverse=reverse)]


def test_chunks_are_sorted_and_filtered_and_nothing_else_happens(audit, tmp_path):
    seen = visit(audit, tmp_path, SCRIPT)
    found = seen.found
    suspicion = by(lambda one: one.suspicion)
    assert found["start"]["shown"] == suspicion[:25]
    assert [one["sort"] for one in found["start"]["heads"]] == ["none"] * 8
    assert found["start"]["status"] == f"25 rows shown; {COUNT} in all."
    assert found["more"] == 125
    assert found["all"] == suspicion
    ratio = by(lambda one: one.ratio)
    assert found["ratio"] == [ratio, "descending"]
    assert found["rising"][:2] == [ratio[::-1], "ascending"]
    assert found["rising"][2].endswith("Sorted by Ratio, ascending.")
    assert found["names"] == [f"book-{number}" for number in range(COUNT)]
    flagged = [one.chunk for one in ROWS if one.suspicious]
    assert 10 < len(flagged) < 50
    assert found["flagged"][0] == flagged[:25]
    assert re.search(rf"; {len(flagged)} match, of {COUNT} in all", found["flagged"][1])
    assert found["found"] == ["book-141"]
    assert found["scripts"] == 1
    assert found["resources"] == []
    assert seen.console == []
    assert seen.requests == []


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_it_fits_its_window(audit, tmp_path, width):
    found = overflow(audit, width, tmp_path)
    assert found["scroll"] <= found["client"]
    assert found["wide"] == found["cut"] == found["broken"] == []


def test_a_script_that_was_put_into_the_page_does_not_run(audit, tmp_path):
    bad = tmp_path / "injected.html"
    html = audit.read_text(encoding="utf-8")
    bad.write_text(html.replace("<main>", "<main><script>window.evil = 3</script>", 1))
    assert visit(bad, tmp_path, "return [seen.evil ?? null, rows().length > 0];").found == [
        None,
        True,
    ]
