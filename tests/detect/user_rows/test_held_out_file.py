"""`--held-out FILE`: refused where it shares texts with the scored rows; shots come from it."""

import json

import pytest

from detect.user_rows.held_out_file import read_held_out_file
from detect.user_rows.labelled_rows import read_labelled
from inject.errors import InputError
from spikein.scoring.detect_file import DetectFileRequest, detect_file
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
def test_texts_that_are_scored_as_well_are_refused_by_row(tmp_path, change):
    texts = [*FURTHER[:3], change(SCORED[4]), FURTHER[4], change(SCORED[1])]
    file = write(tmp_path / "held.jsonl", texts)
    with pytest.raises(InputError) as caught:
        read(tmp_path, file)
    assert "2 held-out texts are scored as well: row 4 (scored row 5), row 6 (scored row 2)" in str(
        caught.value
    )
    assert caught.value.where == file


def test_equal_texts_are_one_empty_ones_none_and_label_1_is_a_known_member(tmp_path):
    rows = [
        {"text": FURTHER[0], "label": 0},
        {"text": FURTHER[0].upper(), "label": 0},
        {"text": " ", "label": 0},
        {"text": FURTHER[1], "label": 1},
    ]
    path = tmp_path / "held.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = read(tmp_path, str(path))
    assert found.nonmembers == [FURTHER[0]]
    assert found.members == [FURTHER[1]]


def test_a_text_on_both_sides_and_a_file_without_texts_are_refused(tmp_path):
    path = tmp_path / "held.jsonl"
    rows = [{"text": FURTHER[0], "label": 0}, {"text": FURTHER[0], "label": 1}]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match="row 2 stands there as a member and as a non-member"):
        read(tmp_path, str(path))
    with pytest.raises(InputError, match="no text"):
        read(tmp_path, write(path, ["", " "]))


def detect(tmp_path, model, detectors, held_out):
    return detect_file(
        DetectFileRequest(
            model=str(model),
            examples=write(tmp_path / "rows.jsonl", SCORED),
            held_out=held_out,
            detectors=detectors,
            out=tmp_path / "scores.parquet",
        )
    )


def test_shots_and_populations_come_from_the_file(tmp_path, tiny_model_path):
    rows = [{"text": text, "label": int(number > 15)} for number, text in enumerate(FURTHER)]
    path = tmp_path / "held.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    asked = "recall:shots=1,con_recall:shots=1,codec:draws=2:skip=2,camia"
    result = detect(tmp_path, tiny_model_path, asked, str(path))
    scores = result.scores.to_pylist()
    assert {row["detector"] for row in scores} == {"recall", "con_recall", "codec", "camia"}
    assert [row for row in scores if row["reason"]] == []
    again = detect(tmp_path, tiny_model_path, asked, str(path)).scores.to_pylist()
    assert again == scores


def test_more_shots_than_fit_are_fewer_with_a_note(tmp_path, tiny_model_path):
    file = write(tmp_path / "held.jsonl", FURTHER)
    result = detect(tmp_path, tiny_model_path, "recall:shots=12", file)
    assert any(note.startswith("recall: at most ") for note in result.notes)


def test_shots_that_overlap_scored_rows_are_refused_before_a_model_is_loaded(tmp_path):
    file = write(tmp_path / "held.jsonl", [SCORED[0]])
    with pytest.raises(InputError, match="scored as well"):
        detect(tmp_path, tmp_path / "no model", "loss", file)


def test_a_named_detector_without_held_out_texts_says_what_to_give(tmp_path, tiny_model_path):
    with pytest.raises(InputError, match="--held-out FILE"):
        detect(tmp_path, tiny_model_path, "recall", None)
    file = write(tmp_path / "held.jsonl", FURTHER)
    with pytest.raises(InputError, match="Rows of it with label 1 are known members"):
        detect(tmp_path, tiny_model_path, "con_recall", file)
