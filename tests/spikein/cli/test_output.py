"""Tables on a terminal: numbers are whole, or visibly cut; never cut in silence."""

import sys

from spikein.cli.output import print_error, print_table, say, tell, warn

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
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "dumb")
    print_table(COLUMNS, ROWS)
    return capsys.readouterr().out


def test_without_a_terminal_nothing_is_cut(capsys, monkeypatch):
    out = printed(capsys, monkeypatch, None)
    for text in (SETTING, "min_k_plus_plus", *NUMBERS):
        assert text in out, text


def test_on_a_terminal_texts_give_way_and_numbers_do_not(capsys, monkeypatch):
    out = printed(capsys, monkeypatch, 90)
    assert all(len(line) <= 90 for line in out.splitlines())
    for number in NUMBERS:
        assert out.count(number) == 2, number


def test_values_say_how_their_column_stands_and_an_empty_column_goes(capsys):
    print_table(
        ("name", "what", "count", "none"), [("a", "two words", 12345, None), ("b", "", 7, "")]
    )
    head, _, first, second = filter(str.strip, capsys.readouterr().out.splitlines())
    assert head.split() == ["name", "what", "count"]
    assert first.split() == ["a", "two", "words", "12,345"]
    assert second.rstrip().endswith("     7"), "numbers stand to the right"


def test_control_characters_are_written_out(capsys):
    text = "\x1b[2J\x9bm\rtwo\nlines"
    for show in (say, warn, tell, print_error, lambda value: print_table(("name",), [(value,)])):
        show(text)
        shown = "".join(capsys.readouterr())
        assert not set(shown) & set("\x1b\x9b\r"), show
        assert r"\x1b[2J\x9bm\rtwo" in shown
