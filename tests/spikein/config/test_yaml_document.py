"""YAML with lines: types, duplicates, hostile files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject.errors import InputError, InputErrors
from spikein.config.yaml_document import parse_document, parse_scalar, parse_value, read_document

SCALARS = [
    ("1", 1),
    ("2_000_000", 2_000_000),
    ("010", 10),
    ("1.5", 1.5),
    ("1e-3", 1e-3),
    ("1e6", 1_000_000),
    (".5", 0.5),
    ("true", True),
    ("null", None),
    ("", None),
    ("no", "no"),
    ("on", "on"),
    ("1:30", "1:30"),
    ("2024-05-01", "2024-05-01"),
    (".inf", ".inf"),
    ("0o17", "0o17"),
    ("y", "y"),
    ("1e400", float("inf")),
    ("+12", 12),
    ("-0", 0),
    ("1_000.5", 1000.5),
]


def test_scalars_have_their_types():
    for text, value in SCALARS:
        parsed = parse_scalar(text)
        assert parsed == value
        assert type(parsed) is type(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_read_back_exactly(value):
    assert float(parse_scalar(repr(value))) == value


# YAML lacks the surrogate pairs that JSON uses for higher code points.
words = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs",)), max_size=6)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(words, plain, max_size=4))
def test_json_is_yaml_and_means_the_same(values):
    assert parse_document(json.dumps(values), name="f").values == values


NOT_IN_A_FILE = ("", "1e400")


@pytest.mark.parametrize("version", ["", "%YAML 1.1\n---\n"])
def test_values_in_a_file_parse_like_scalars_under_any_declared_version(version):
    words = [text for text, _ in SCALARS if text not in NOT_IN_A_FILE]
    text = version + "\n".join(f"k{number}: {word}" for number, word in enumerate(words))
    values = parse_document(text, name="f").values
    assert list(values.values()) == [value for text, value in SCALARS if text in words]


def test_keys_and_quoted_scalars_are_text():
    values = parse_document("1: a\non: '1'\n2024-05-01: \"true\"\n~: f\n", name="f").values
    assert values == {"1": "a", "on": "1", "2024-05-01": "true", "~": "f"}


def test_keys_have_their_lines():
    document = parse_document("a:\n  b:\n    - x\n    - {c: 1}\n", name="f.yaml")
    assert document.place(("a",)) == "f.yaml:1"
    assert document.place(("a", "b", 0)) == "f.yaml:3"
    assert document.place(("a", "b", 1, "c")) == "f.yaml:4"
    assert document.place(("a", "b", 1, "absent")) == "f.yaml:4"
    assert document.place(("absent",)) == "f.yaml"


def test_all_duplicate_keys_are_reported_at_once():
    with pytest.raises(InputErrors) as caught:
        parse_document("a: 1\nb: {c: 1, c: 2}\na: 2\n", name="f.yaml")
    assert len(caught.value.problems) == 2
    assert "f.yaml:2: b.c: the key is given twice (first in line 2)" in str(caught.value)
    assert "f.yaml:3: a: the key is given twice (first in line 1)" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("- a\n", "top is a list"),
        ("a: [1\nb: 2", "not valid YAML"),
        ("a: [${b}]", "in quotes"),
        ("a: \x00", "not valid YAML"),
        ("a: !!python/object:os.system x", "not supported"),
        ("a: &a [*a]", "contains itself"),
        ("a: {<<: {b: 1}}", "merge keys"),
        ("? [1, 2]\n: x", "single word"),
        ("a: 1e999", "too large"),
        ("a: &x 1\nb: &x 2", "duplicate anchor"),
        ("a: !!map [x]", "not supported"),
    ],
)
def test_hostile_texts_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_document(text, name="f.yaml")


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="the file does not exist"):
        read_document(tmp_path / "absent.yaml")
    with pytest.raises(InputError, match="cannot be read"):
        read_document(tmp_path)
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(b"name: \xff\n")
    with pytest.raises(InputError, match=r"bad.yaml: not UTF-8 \(byte 6\).*iconv -f cp1252"):
        read_document(bad)
    for encoding in ("utf-16", "utf-16-le"):
        bad.write_text("name: mine\n", encoding=encoding)
        with pytest.raises(InputError, match=r"content is UTF-16.*iconv -f utf-16 -t utf-8"):
            read_document(bad)


def test_a_byte_order_mark_is_not_part_of_the_first_key(tmp_path):
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: &x {lr: 1}\nother: *x\n")
    assert read_document(path).values == {"name": {"lr": 1}, "other": {"lr": 1}}


def test_command_line_values_are_parsed():
    texts = {"1e-3": 1e-3, "{fixed: 4}": {"fixed": 4}, "[1, 2]": [1, 2], "": None, "a b": "a b"}
    assert {text: parse_value(text, place="x") for text in texts} == texts
