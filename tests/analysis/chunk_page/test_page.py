"""The page as it is read without a script: what stands there, and what never does."""

import re
from dataclasses import replace
from math import nan

from analysis.chunk_page.content import ChunkContinuation, ChunkRow
from analysis.chunk_page.page import render, write_chunk_page
from tests.analysis.chunk_page.samples import page, row
from tests.pages import Page

EVIL = '</script><script>window.evil = 1</script><img src="x" onerror="alert(1)"> & "quoted"'
ROWS = tuple(row(number) for number in range(30))


def table_of(html):
    [found] = [one for one in Page(html).tables if "chunks" in one.classes]
    return found


def test_rows_stand_by_falling_suspicion_with_their_numbers():
    found = table_of(render(page(ROWS)))
    assert [head.text for head in found.heads] == [
        *("Chunk", "Suspicion", "Ratio", "Similarity", "Original", "Unlearned", "Retrained")
    ]
    ordered = sorted(ROWS, key=lambda one: -one.suspicion)
    numbers = [line for line in found.rows[1:] if len(line) > 1]
    assert [line[0].text for line in numbers] == [one.chunk for one in ordered]
    for line, one in zip(numbers, ordered, strict=True):
        assert (line[1].text == "suspicious") == one.suspicious
        assert line[2].text == f"{one.ratio:.2f}"
        assert line[3].text == f"{one.similarity:.2f}"
        assert line[5].text == f"−{-one.scores['unlearned']:.3f}"


def test_texts_stand_under_their_chunk_and_shared_words_are_marked():
    one = ChunkRow(
        chunk="book-1",
        suspicion=1.0,
        suspicious=True,
        context="He saw",
        truth="the grey troll and ran away",
        continuations=(
            ChunkContinuation(model="unlearned", text="a man and ran away home"),
            ChunkContinuation(
                model="original", text="The grey troll!", similarities={"ROUGE-L": 0.5}
            ),
        ),
    )
    html = render(page((one,)))
    assert [text for text in re.findall(r"<mark>(.*?)</mark>", html) if text != "marked words"] == [
        *("and ran away", "The grey troll!", "and ran away")
    ]
    assert html.index("<h4>Truth") < html.index("<h4>Original") < html.index("<h4>Unlearned")
    assert "<p>the grey troll <mark>and ran away</mark></p>" in html
    assert "ROUGE-L 0.50" in html


def words_of_texts(one):
    texts = [one.context, one.truth, *(other.text for other in one.continuations)]
    return {word for text in texts for word in re.findall(r"\w+", text)}


def hidden_row():
    """Every word of its texts is its own."""
    return ChunkRow(
        chunk="id-7f3a",
        suspicion=0.5,
        suspicious=True,
        ratio=1.0,
        similarity=0.9,
        scores={"original": -1.0},
        context="xylocontexta quietumb",
        truth="trothword gloamingtruth",
        continuations=(
            ChunkContinuation(model="unlearned", text="wroteword gloamingtruth", similarities={}),
        ),
        show_text=False,
    )


def test_no_word_of_a_hidden_text_is_in_the_file():
    one = hidden_row()
    for html in (
        render(page((one, *ROWS))),
        render(page((replace(one, show_text=True), *ROWS), show_texts=False)),
    ):
        assert not [word for word in words_of_texts(one) if word in html]
        assert "id-7f3a" in html
        assert "Text not shown." in html
    # The same words are there once they may be.
    shown = render(page((replace(one, show_text=True), *ROWS)))
    assert all(word in shown for word in words_of_texts(one))


def test_a_page_without_texts_has_none_of_any_row():
    html = render(page(ROWS, show_texts=False))
    assert "<details>" not in html
    assert "lantern" not in html
    assert "No chunk’s text is shown" in html
    one = render(page((hidden_row(), *ROWS)))
    assert "The text of 1 chunk is not shown" in one


def test_every_text_is_escaped_and_nothing_is_loaded():
    one = replace(
        ROWS[0],
        chunk=EVIL,
        context=EVIL,
        truth=EVIL,
        scores={EVIL: 1.0},
        continuations=(
            ChunkContinuation(model=EVIL, text=f"{EVIL} {EVIL}", similarities={EVIL: 0.1}),
        ),
    )
    html = render(page((one,), title=EVIL, sentences=(EVIL,), notes=(EVIL,), detector=EVIL))
    tags = Page(html).tags
    names = [tag for tag, _ in tags]
    assert names.count("script") == 1
    assert "img" not in names
    assert not [given for _, given in tags if {"src", "href", "onerror"} & set(given)]
    assert "window.evil" in html
    assert "default-src 'none'" in html


def test_numbers_that_are_missing_are_dashes_and_stand_last():
    unjudged = ChunkRow(chunk="none", suspicion=nan, suspicious=False, scores={"original": nan})
    found = table_of(render(page((unjudged, *ROWS[:2]))))
    last = [line for line in found.rows[1:] if len(line) > 1][-1]
    assert [place.text for place in last] == ["none", "not judged", "–", "–", "–", "–", "–"]


def test_facts_stand_with_what_to_know_of_them():
    [facts] = [one for one in Page(render(page(ROWS))).tables if "facts" in one.classes]
    assert [[place.text for place in line] for line in facts.rows][1] == [
        *("Band of the ratio", "1/1.15 to 1.15")
    ]
    assert facts.rows[1][1].note == "of the paper"


def test_a_page_without_chunks_says_so(tmp_path):
    path = write_chunk_page(tmp_path / "audit.html", page((), sentences=()))
    html = path.read_text(encoding="utf-8")
    assert "There are no chunks." in html
    assert "<script" not in html


def test_a_model_without_a_continuation_has_no_panel():
    one = replace(ROWS[0], continuations=())
    html = render(page((one,)))
    assert html.count('class="panel') == 2  # the grid, and the truth
    assert one.truth.split()[0] in html
