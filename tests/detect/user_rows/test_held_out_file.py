"""`--held-out FILE`: rejected if it shares texts with the scored rows."""

import json

import pytest

from detect.user_rows.labelled_rows import read_held_out_file, read_labelled
from inject.errors import InputError
from tests.conftest import make_texts

SCORED = make_texts(6, seed=1, words=12)
FURTHER = make_texts(20, seed=2, words=8)


def write(path, texts, **more):
    lines = [json.dumps({"text": text, **more}) for text in texts]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def read(tmp_path, held_out):
    scored = read_labelled(write(tmp_path / "rows.jsonl", SCORED))
    return read_held_out_file(held_out, scored)


@pytest.mark.parametrize("change", [str, str.upper, lambda text: f"  {text.replace(' ', '  ')}!"])
def test_held_out_texts_that_are_also_scored_are_rejected_by_row(tmp_path, change):
    texts = [*FURTHER[:3], change(SCORED[4]), FURTHER[4], change(SCORED[1])]
    file = write(tmp_path / "held.jsonl", texts)
    with pytest.raises(InputError) as caught:
        read(tmp_path, file)
    assert "2 held-out texts are also scored: row 4 (scored row 5), row 6 (scored row 2)" in str(
        caught.value
    )
    assert caught.value.where == file


def test_duplicates_and_empty_texts_are_dropped_and_label_1_is_a_known_member(tmp_path):
    rows = [
        {"text": FURTHER[0], "label": 0},
        {"text": FURTHER[0].upper(), "label": 0},
        {"text": " ", "label": 0},
        {"text": FURTHER[1], "label": 1},
    ]
    path = tmp_path / "held.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    held_out = read(tmp_path, str(path))
    assert [row.text for row in held_out.nonmembers] == [FURTHER[0]]
    assert [row.text for row in held_out.members] == [FURTHER[1]]


def test_text_on_both_sides_and_file_without_texts_are_rejected(tmp_path):
    path = tmp_path / "held.jsonl"
    rows = [{"text": FURTHER[0], "label": 0}, {"text": FURTHER[0], "label": 1}]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match="row 2 is listed both as a member and as a non-member"):
        read(tmp_path, str(path))
    with pytest.raises(InputError, match="no text"):
        read(tmp_path, write(path, ["", " "]))
