"""Tables on a terminal: names and numbers are uncut, or the table names the column as omitted."""

import json
import re
import sys
from math import nan

import pytest

from analysis.intervals.estimate import Estimate
from analysis.page.table import Table, TableColumn, numbers
from analysis.unit import AUC, Entry
from spikein.cli.output import print_error, print_json, print_table, say, show_table, tell, warn

COLUMNS = ("detector", "setting", "AUC", "95% interval", "TPR at 5% FPR", "remark")
SETTING = "alpha=0.05:samples=10:temperature=1.0:top_k=50:share=0.5:seed=0"
NUMBERS = ("0.908", "0.887 – 0.930", "0.70 [0.62, 0.76]")
ROWS = [
    ("cdd", SETTING, *NUMBERS, "scores depend on the other rows, " * 4),
    ("min_k_plus_plus", "k=0.1", *NUMBERS, ""),
]


def printed(capsys, monkeypatch, width: int | None) -> str:
    """The table on a terminal of a width; None for no terminal."""
    if width is not None:
        as_terminal(monkeypatch, width)
    print_table(COLUMNS, ROWS)
    return plain(capsys.readouterr().out)


def as_terminal(monkeypatch, width: int) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    # Rich takes a terminal of TERM=dumb for one of 80 columns.
    monkeypatch.setenv("TERM", "xterm")


def plain(out: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", out)


def test_without_a_terminal_nothing_is_cut(capsys, monkeypatch):
    out = printed(capsys, monkeypatch, None)
    for text in (SETTING, "min_k_plus_plus", *NUMBERS):
        assert text in out, text


def test_on_a_terminal_texts_shrink_and_numbers_do_not(capsys, monkeypatch):
    out = printed(capsys, monkeypatch, 90)
    assert all(len(line) <= 90 for line in out.splitlines())
    for number in NUMBERS:
        assert out.count(number) == 2, number


def test_columns_align_by_their_values_and_empty_columns_are_dropped(capsys):
    print_table(
        ("name", "what", "count", "none"), [("a", "two words", 12345, None), ("b", "", 7, "")]
    )
    head, _, first, second = filter(str.strip, capsys.readouterr().out.splitlines())
    assert head.split() == ["name", "what", "count"]
    assert first.split() == ["a", "two", "words", "12,345"]
    assert second.rstrip().endswith("     7"), "numbers are right-aligned"


def test_control_characters_are_written_out(capsys):
    text = "\x1b[2J\x9bm\rtwo\nlines"
    for show in (say, warn, tell, print_error, lambda value: print_table(("name",), [(value,)])):
        show(text)
        output = "".join(capsys.readouterr())
        assert not set(output) & set("\x1b\x9b\r"), show
        assert r"\x1b[2J\x9bm\rtwo" in output


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_ranking_on_a_terminal_shows_whole_names_and_numbers(capsys, monkeypatch, width):
    as_terminal(monkeypatch, width)
    auc = Estimate(0.86, 0.81, 0.89)
    setting = "alpha=0.05:samples=10:temperature=1.0"
    names = ("min_k_plus_plus", "infilling_dc_pdd", "sentence_similarity")
    titles = ("AUC", *(f"TPR at {rate}% FPR" for rate in (10, 5, 1)))
    ranking = Table(
        columns=(TableColumn("Detector"), *numbers(*titles)),
        rows=tuple((Entry(name, notes=(setting,)), *[AUC.entry(auc)] * 4) for name in names),
    )
    show_table(ranking)
    out = plain(capsys.readouterr().out)
    table, _, missing = out.partition("No room for: ")
    assert all(len(line) <= width for line in table.splitlines())
    lines = [line for line in table.splitlines() if "0.86" in line]
    assert [line.split()[0] for line in lines] == list(names)
    visible_titles = [title for title in titles if title not in missing]
    assert all(line.count("0.86 [0.81, 0.89]") == len(visible_titles) for line in lines)
    assert visible_titles[0] == "AUC"
    assert len(visible_titles) == len(titles) or missing


def test_the_json_of_an_estimate_is_its_columns(capsys):
    """Internal fields of a record are not published."""
    print_json([Estimate(0.7, nan, nan, "none: 2 groups on one side; few", members=4, seeds=1)])
    assert json.loads(capsys.readouterr().out) == [
        {
            "value": 0.7,
            "low": None,
            "high": None,
            "reason": "2 groups on one side",
            "caution": "few",
        }
    ]
