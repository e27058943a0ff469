"""Texts in memory are scored like a file of them: the same rows, the same numbers."""

import json

import pyarrow.parquet as pq
import pytest

from inject.errors import InputError
from spikein.api.text_scores import score_texts
from spikein.scoring.detect_file import plan_file, score_file
from spikein.scoring.options import ScoringOptions
from tests.conftest import make_texts

TEXTS = [*make_texts(20, words=9), ""]
LABELS = [row % 2 for row in range(21)]
DETECTORS = "loss,min_k:k=0.2,lowercase"


def test_a_list_and_a_file_of_the_same_texts_give_the_same_scores(tmp_path, tiny_model_path):
    path = tmp_path / "rows.jsonl"
    rows = zip(TEXTS, LABELS, strict=True)
    path.write_text("".join(json.dumps({"text": t, "label": label}) + "\n" for t, label in rows))
    out = tmp_path / "scores.parquet"
    options = ScoringOptions(detectors=DETECTORS)
    score_file(plan_file(str(path), str(tiny_model_path), out, options), out)
    result = score_texts(tiny_model_path, TEXTS, detectors=DETECTORS.split(","), labels=LABELS)
    # As texts, since no NaN equals another.
    assert repr(result.scores.to_pylist()) == repr(pq.read_table(out).to_pylist())
    last = result.scores.filter(result.scores["row"].to_numpy() == 20).to_pylist()
    assert [row["reason"] for row in last] == ["empty text"] * 3


def test_labels_give_aucs_with_intervals(tiny_model_path):
    unlabelled = score_texts(tiny_model_path, TEXTS, detectors="loss")
    assert unlabelled.aucs is None
    result = score_texts(tiny_model_path, TEXTS, detectors="loss,zlib", labels=LABELS)
    assert result.aucs["detector"].to_pylist() == ["loss", "zlib"]
    row = result.aucs.to_pylist()[0]
    assert row["low"] <= row["auc"] <= row["high"]
    assert (row["n_members"], row["n_nonmembers"], row["unscored"]) == (10, 10, 1)
    groups = [row // 2 for row in range(21)]
    grouped = score_texts(tiny_model_path, TEXTS, detectors="loss", labels=LABELS, groups=groups)
    assert grouped.aucs["auc"][0].as_py() == row["auc"]
    assert grouped.aucs["low"][0].as_py() != row["low"]


def test_options_reach_the_model(tiny_model_path):
    long = [" ".join(make_texts(30, words=9))]
    whole = score_texts(tiny_model_path, long, detectors="loss").scores["score"][0].as_py()
    options = ScoringOptions(long="truncate", batch_tokens=64)
    cut = score_texts(tiny_model_path, long, detectors="loss", options=options)
    assert cut.scores["score"][0].as_py() != whole


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": "one text"}, "texts is one text"),
        ({"texts": []}, "there are no texts"),
        ({"texts": ["a", 3]}, r"texts\[1\] is a int"),
        ({"labels": [2] * 21}, r"labels\[0\] is 2"),
        ({"groups": ["a"]}, "1 groups for 21 texts"),
        ({"detectors": "reference"}, r"needs reference model.*\(reference=PATH\)"),
        ({"detectors": "blind"}, r"needs labels"),
        ({"options": ScoringOptions(limit=3)}, "limit applies only to a file of rows"),
        ({"model": "no/such/model/here"}, "no/such/model/here"),
    ],
)
def test_bad_input_errors_name_the_arguments_of_the_function(tiny_model_path, arguments, message):
    keywords = {"model": tiny_model_path, "texts": TEXTS, "detectors": "loss", **arguments}
    with pytest.raises(InputError, match=message) as caught:
        score_texts(keywords.pop("model"), keywords.pop("texts"), **keywords)
    assert "--" not in str(caught.value)
