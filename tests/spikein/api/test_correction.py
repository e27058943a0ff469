"""Answers in memory are corrected like a file of them."""

import json

import numpy as np
import pandas as pd
import pytest

import spikein
from inject.errors import InputError
from tests.analysis.correction.test_user_file import HEADS, made_rows, write
from tests.command_line import invoke


def columns(rows: list[dict[str, str]]) -> dict[str, list[object]]:
    """Answers as a data frame gives them, with NaN in place of what is unknown."""
    sides = {"member": 1.0, "non-member": 0.0, "": float("nan")}
    return {
        "correct": [np.bool_(row["correct"] == "right") for row in rows],
        "member": [sides[row["member"]] for row in rows],
        "score": [float(row["score"]) for row in rows],
        "clean_probability": [float(row["clean_probability"]) for row in rows],
        "group": [row["group"] for row in rows],
        "notes": [None] * len(rows),
    }


def test_columns_a_file_and_the_command_give_the_same_numbers(tmp_path):
    rows = made_rows(0)
    path = write(tmp_path / "answers.csv", rows)
    in_memory = spikein.correct(columns(rows), scores=["score"], options=2)
    of_file = spikein.correct(tmp_path / "answers.csv")
    assert in_memory.estimates == of_file.estimates
    assert in_memory.rows == of_file.rows
    assert (in_memory.unused_columns, of_file.unused_columns) == (("notes",), ())
    printed = json.loads(invoke("correct", path, "--json").stdout)
    assert [entry["accuracy"]["value"] for entry in printed["estimates"]] == [
        estimate.accuracy.value for estimate in of_file.estimates
    ]
    assert len(of_file.estimates) == 6


def test_data_frame_is_corrected_like_its_columns():
    rows = columns(made_rows(3))
    assert spikein.correct(pd.DataFrame(rows)).estimates == spikein.correct(rows).estimates


def test_other_types_of_answers_are_refused():
    with pytest.raises(InputError, match="answers of the type list"):
        spikein.correct([1, 2])
    with pytest.raises(InputError, match="column 'score' is a single value"):
        spikein.correct({**columns(made_rows(3)), "score": 1.0})


def test_rows_without_a_group_are_independent():
    rows = columns(made_rows(1))
    missing = {**rows, "group": [float("nan")] * len(rows["group"])}
    without = {name: values for name, values in rows.items() if name != "group"}
    assert spikein.correct(missing).estimates == spikein.correct(without).estimates


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"score": [1.0, 2.0]}, None, "'score': 2"),
        ({key: [] for key in HEADS}, None, "'score': 0"),
        ({"member": ["perhaps"] * 240}, None, "answers: row 1: 'perhaps' in column 'member'"),
        ({"correct": [False] * 240}, 4, "answers: the accuracy, .* is within noise of chance"),
        ({}, 1, "options: 1 answer options"),
    ],
)
def test_wrong_answers_are_refused_with_their_place(change, options, message):
    with pytest.raises(InputError, match=message):
        spikein.correct({**columns(made_rows(2)), **change}, options=options)
