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
    const shown = () => [...page.querySelectorAll(".chunks tbody")]
      .filter(one => one.getClientRects().length).map(one => one.rows[0].cells[0].textContent);
    const start = {shown: shown(), status: status(), heads: heads()};
    press("Show 100 more"); const more = shown().length;
    press("Show all"); const all = shown();
    press("Ratio"); const ratio = [shown(), heads()[2].sort];
    press("Ratio"); const rising = [shown(), heads()[2].sort, status()];
    press("Similarity"); const similarity = shown();
    press("Chunk"); const names = shown();
    press("Suspicion"); const again = shown();
    const only = page.querySelector("input[type=checkbox]");
    only.click(); const flagged = [shown(), status()];
    press("Open or close the texts");
    const open = page.querySelectorAll("details[open]").length;
    press("Open or close the texts");
    const closed = page.querySelectorAll("details[open]").length;
    only.click(); type("book-141"); const found = shown();
    const by = page.querySelector("select.sort-by"); type("");
    by.value = "3"; by.dispatchEvent(new seen.Event("change", {bubbles: true}));
    const chosen = [shown(), heads()[3].sort];
    return {start, more, all, ratio, rising, similarity, names, again, flagged, open, closed,
            found, chosen, scripts: page.scripts.length,
            resources: seen.performance.getEntriesByType("resource").map(one => one.name)};
"""


def by(key, *, reverse=True):
    return [one.chunk for one in sorted(ROWS, key=key, reverse=reverse)]


def test_chunks_are_sorted_and_filtered_and_nothing_else_happens(audit, tmp_path):
    seen = visit(audit, tmp_path, SCRIPT)
    found = seen.found
    suspicion = by(lambda one: one.suspicion)
    assert found["start"]["shown"] == suspicion[:25]
    assert [one["sort"] for one in found["start"]["heads"]] == ["none", "descending", *["none"] * 5]
    assert found["start"]["status"].startswith(f"25 chunks shown; {COUNT} in all. Sorted by Susp")
    assert found["more"] == 125
    assert found["all"] == suspicion
    ratio = by(lambda one: one.ratio)
    assert found["ratio"] == [ratio, "descending"]
    assert found["rising"][:2] == [ratio[::-1], "ascending"]
    assert found["rising"][2].endswith("Sorted by Ratio, ascending.")
    assert found["similarity"] == by(lambda one: (one.similarity, one.suspicion))
    assert found["names"] == [f"book-{number}" for number in range(COUNT)]
    assert found["again"] == suspicion
    flagged = [name for name in suspicion if ROWS[int(name[5:])].suspicious]
    assert 10 < len(flagged) < 50
    assert found["flagged"][0] == flagged[:25]
    assert re.search(rf"; {len(flagged)} match, of {COUNT} in all", found["flagged"][1])
    assert found["open"] == sum(ROWS[int(name[5:])].show_text for name in flagged[:25])
    assert found["closed"] == 0
    assert found["found"] == ["book-141"]
    assert found["chosen"] == [found["similarity"][:25], "descending"]
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
