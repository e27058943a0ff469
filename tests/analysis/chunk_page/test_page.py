"""The page as it is read without a script: what stands there, and what never does."""

import re
from dataclasses import replace
from math import nan

from analysis.chunk_page.page import ChunkContinuation, ChunkRow, render, write_chunk_page
from tests.analysis.chunk_page.samples import page, row
from tests.pages import Page

EVIL = '</script><script>window.evil = 1</script><img src="x" onerror="alert(1)"> & "quoted"'
ROWS = tuple(row(number) for number in range(30))


def table_of(html):
    [found] = [one for one in Page(html).tables if "chunks" in one.classes]
    return found


def test_rows_stand_remembered_and_suspicious_first_with_their_numbers():
    rows = tuple(
        replace(one, remembered=(True, False, None)[at % 3]) for at, one in enumerate(ROWS)
    )
    found = table_of(render(page(rows)))
    assert [head.text for head in found.heads] == [
        *("Chunk", "Remembered", "Suspicious", "Ratio", "Similarity"),
        *("Original", "Unlearned", "Retrained"),
    ]
    ordered = sorted(rows, key=lambda one: (one.remembered is not True, -one.suspicion))
    assert found.column("Chunk") == [one.chunk for one in ordered]
    said = {True: "yes", False: "no", None: "not judged"}
    for line, one in zip(found.rows[1:], ordered, strict=True):
        assert line[1].text == said[one.remembered]
        assert line[2].text == said[one.suspicious]
        assert line[3].text == f"{one.ratio:.2f}"
        assert line[4].text == f"{one.similarity:.2f}"
        assert line[6].text == f"−{-one.scores['unlearned']:.3f}"


def test_texts_stand_under_their_chunk_and_shared_words_are_marked():
    one = ChunkRow(
        chunk="book-1",
        suspicion=1.0,
        suspicious=True,
        context="He saw",
        truth="the grey troll and ran away",
        continuations=(
            ChunkContinuation(
                model="original", text="The grey troll!", similarities={"ROUGE-L": 0.5}
            ),
            ChunkContinuation(model="unlearned", text="a man and ran away home"),
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
        assert "not shown, nor what models wrote" in html
    # The same words are there once they may be.
    shown = render(page((replace(one, show_text=True), *ROWS)))
    assert all(word in shown for word in words_of_texts(one))


def test_a_page_without_texts_has_none_of_any_row():
    html = render(page(ROWS, show_texts=False))
    assert '<details class="texts">' not in html
    assert "lantern" not in html
    assert "The texts of 30 chunks are not shown" in html
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
    assert not [given for _, given in tags if {"src", "onerror"} & set(given)]
    assert all(given["href"].startswith("#text-") for _, given in tags if "href" in given)
    assert "window.evil" in html
    assert "default-src 'none'" in html


def test_numbers_that_are_missing_are_dashes_and_stand_last():
    unjudged = ChunkRow(chunk="none", suspicion=nan, suspicious=False, scores={"original": nan})
    found = table_of(render(page((unjudged, *ROWS[:2]))))
    assert [place.text for place in found.rows[-1]] == [
        *("none", "not judged", "not judged", "–", "–", "–", "–", "–")
    ]


def test_control_characters_are_written_out():
    """What a terminal or a browser would obey instead of showing: C0, DEL, C1, turned text."""
    obeyed = [*range(9), *range(11, 32), *range(127, 160)]
    obeyed += [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    bad = "a\tb\nc" + "".join(map(chr, obeyed)) + "d"
    one = replace(
        ROWS[0],
        chunk=bad,
        context=bad,
        truth=bad,
        scores={bad: 1.0},
        continuations=(ChunkContinuation(model=bad, text=bad, similarities={bad: 0.1}),),
    )
    given = page((one,), title=bad, sentences=(bad,), notes=(bad,), facts=[(bad, bad, bad)])
    html = render(given)
    assert not [code for code in obeyed if chr(code) in html]
    assert "a\tb\nc" in html
    for code in obeyed:
        assert (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}") in html or code == 13
    assert "\\r" in html


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


def test_a_chunk_that_was_not_continued_has_a_row_and_no_texts():
    one = replace(ROWS[0], continuations=())
    html = render(page((one,)))
    assert table_of(html).column("Chunk") == [one.chunk]
    assert 'class="panel' not in html
    assert "No text is shown." in html
