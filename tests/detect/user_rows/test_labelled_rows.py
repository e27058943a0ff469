"""Rows of a user's file: their columns in any case, their labels, and protection."""

import json

import pytest
from pydantic import ValidationError

from detect.user_rows.labelled_rows import read_labelled, rows_notes
from detect.user_rows.row_settings import RowSettings
from inject.errors import InputError


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_usual_label_forms_are_read(tmp_path):
    forms = {0: False, "1": True, 1.0: True, "false": False, "True": True, "YES": True, "no": False}
    forms |= {"member": True, "Non-Member": False, "nonmember": False, "0.0": False}
    path = write(tmp_path / "rows.jsonl", [{"text": "a", "label": form} for form in forms])
    assert read_labelled(path).labels == list(forms.values())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"text": "a", "label": 1}, {"text": "b", "label": 2}], r"rows.jsonl:2: label 2"),
        ([{"text": "a", "label": "seen"}], r"rows.jsonl:1: label 'seen' .*labels.seen=…"),
        (
            [{"text": text, "label": label} for text, label in zip("abcd", "xyx1", strict=True)],
            r"'x' in 2 rows, the first .*:1; 'y' in 1 row, the first .*:2",
        ),
        (
            [{"text": "a", "label": 1}, {"text": "b", "label": float("nan")}],
            r":2: .* no label, and",
        ),
        ([{"texts": "a"}], r"no text, only texts. Did you mean 'texts'.*text_column=NAME"),
        ([{"text": "a", "label": [1]}], r"rows.jsonl:1: label \[1\]"),
        ([{"text": "a"}, {"text": "b", "label": 1}], r"rows.jsonl:1: this row has no label"),
        ([{"words": "a"}], r"rows.jsonl:1: the row has no text, only words"),
        ([{"text": 5}], r"rows.jsonl:1: 'text' contains int"),
        ([{"text": "a", "paraphrases": "b"}], r"rows.jsonl:1: .*is not a list of texts"),
        ([{"text": "a", "paraphrases": ["b", 3]}], r"rows.jsonl:1: .*is not a list of texts"),
        ([{"text": "a", "title": ["b"]}], r"rows.jsonl:1: 'title' contains list"),
        ([{"Example_A": "a", "Answer": "E"}], r"rows.jsonl:1: .*'E' names no option. .*A, B, C, D"),
        ([{"Example_A": "a", "Example_C": 3}], r"rows.jsonl:1: 'example_c' contains int"),
    ],
)
def test_bad_rows_name_file_and_line(rows, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_labelled(write(tmp_path / "rows.jsonl", rows))


def test_settings_select_columns_labels_and_rows(tmp_path):
    """Column names ignore case; an unknown one is rejected with a list of the columns."""
    path = tmp_path / "rows.csv"
    path.write_text("Passage;text;Split;label\na;x;Train;0\nb;y;test;1\nc;z;train;1\nd;u;?;1\n")
    how = RowSettings(
        text_column="passage", label_column="split", labels={"TRAIN": True, "test": False}, limit=3
    )
    rows = read_labelled(str(path), how)
    assert (rows.texts, rows.labels, rows.limited) == (["a", "b", "c"], [True, False, True], True)
    assert "Only the first 3 rows were read" in rows_notes(rows)[0]
    plain = read_labelled(str(path), RowSettings(limit=4))
    assert (plain.texts, plain.labels) == (["x", "y", "z", "u"], [False, True, True, True])
    assert not plain.limited
    assert rows_notes(plain) == []
    for wrong, message in (
        ({"text_column": "passages"}, r"row 1: .*'passages'. Did you mean 'Passage'.*text_column"),
        ({"label_column": "side"}, r"for label_column, one of Passage, text, Split, label"),
        ({"label_column": "split", "labels": {"train": True}}, r"'test' in 1 row.* '\?' in 1 row"),
        ({"delimiter": ","}, r"no text, only Passage;text;Split;label"),
    ):
        with pytest.raises(InputError, match=message):
            read_labelled(str(path), RowSettings(**wrong))
    assert RowSettings(delimiter="tab").delimiter == "\t"
    with pytest.raises(ValidationError, match="Allowed: one sign"):
        RowSettings(delimiter=";;")
    with pytest.raises(ValidationError, match="'A' is a member and a non-member"):
        RowSettings(labels={"a": True, "A": False})


def test_json_lines_are_recognised_by_content(tmp_path):
    for name in ("a.txt", "a.csv", "a.data", "a"):
        path = write(tmp_path / name, [{"text": "one", "label": 1}, {"text": "two", "label": 0}])
        rows = read_labelled(path)
        assert (rows.texts, rows.labels) == (["one", "two"], [True, False])


def test_other_files_are_read_by_their_suffix(tmp_path):
    (tmp_path / "a.txt").write_text("{not json}\nat all\n")
    assert read_labelled(str(tmp_path / "a.txt")).texts == ["{not json}\nat all\n"]
    (tmp_path / "a.data").write_text("just words\n")
    with pytest.raises(InputError, match=r"unknown file extension '\.data'.*\.jsonl"):
        read_labelled(str(tmp_path / "a.data"))


def test_column_names_ignore_case(tmp_path):
    for header in ("Text,Label,ID,Group", " INPUT , LABEL ,Id,GROUP"):
        (tmp_path / "a.csv").write_text(f"{header}\none,1,x,g\ntwo,0,y,g\n")
        table = read_labelled(str(tmp_path / "a.csv"))
        assert table[:4] == (["one", "two"], ["x", "y"], [True, False], ["group g", "group g"])
        assert table[4:] == (None, None, (), False, None, None)


def test_exact_column_name_wins_over_another_case(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"Text": "no", "text": "yes"}])
    assert read_labelled(path).texts == ["yes"]


def test_options_become_text_and_paraphrases(tmp_path):
    """In arXivTection's form: a byte order mark, the verbatim text first, documents by ID."""
    path = tmp_path / "rows.csv"
    path.write_text(
        "\ufeffExample_A,Example_B,Example_C,Example_D,Answer,ID,Label\n"
        "a,b,c,d,A,A Paper,1\ne,f,g,h,A,A Paper,1\ni,j,k,l,C,Another,0\n",
        encoding="utf-8",
    )
    rows = read_labelled(str(path))
    assert rows.texts == ["a", "e", "k"]
    assert rows.paraphrases == [("b", "c", "d"), ("f", "g", "h"), ("i", "j", "l")]
    assert rows.titles == ["A Paper", "A Paper", "Another"]
    assert rows.groups == ["group A Paper", "group A Paper", "group Another"]
    assert rows.labels == [True, True, False]


def test_rows_may_have_paraphrases(tmp_path):
    path = write(
        tmp_path / "r.jsonl", [{"text": "a", "Paraphrases": ["b"], "title": "T"}, {"text": "c"}]
    )
    rows = read_labelled(path)
    assert rows.paraphrases == [("b",), ()]
    assert rows.titles == ["T", ""]
    assert rows.groups is None
    plain = read_labelled(write(tmp_path / "p.jsonl", [{"text": "a"}]))
    assert (plain.paraphrases, plain.titles) == (None, None)
    row = {"text": "t", "Example_A": "a", "Example_B": "b", "answer": 3}
    assert read_labelled(write(tmp_path / "r.jsonl", [row])).texts == ["t"]


PROTECTED = [
    {"text": "one", "protected": True, "dataset": "gpqa"},
    {"text": "one", "Protected": "true", "Dataset": "gpqa"},
    {"text": "one", "protected": 1, "dataset": "gpqa"},
    {"text": "one", "Canary String": "BENCHMARK DATA SHOULD NEVER APPEAR", "dataset": "gpqa"},
]
OPEN = [
    {"text": "one"},
    {"text": "one", "protected": False, "dataset": "gpqa"},
    {"text": "one", "protected": "false"},
    {"text": "one", "protected": None, "canary": ""},
]


def test_protected_rows_are_recognised(tmp_path):
    for row in PROTECTED:
        rows = read_labelled(write(tmp_path / "mine.jsonl", [{"text": "two"}, row]))
        assert rows.protected == ("gpqa",)
        unnamed = {**row, "dataset": "", "Dataset": ""}
        assert read_labelled(write(tmp_path / "mine.jsonl", [unnamed])).protected == ("mine",)
    for row in OPEN:
        assert read_labelled(write(tmp_path / "rows.jsonl", [row])).protected == ()
