"""Rows that are exact token ids: scored as they are, or refused before a model is loaded."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from detect.engine.token_ids import ids_text, parse_ids
from inject.errors import InputError
from spikein.scoring.detect_file import plan_file
from spikein.scoring.options import ScoringOptions

VOCABULARY = 512


def id_rows(count=8, length=20, seed=0):
    rows = np.random.default_rng(seed).integers(0, VOCABULARY, (count, length)).tolist()
    return [
        {"tokens": ids[: length - at], "first": at % 5, "label": at % 2}
        for at, ids in enumerate(rows)
    ]


def log_probabilities(model_path, ids):
    """Return transformers' own log-probability of each id but the first."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(model_path).eval()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0].double()
    taken = logits.log_softmax(-1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])
    return taken[:, 0].numpy()


def scores_of(result, detector):
    return [row["score"] for row in result.scores.to_pylist() if row["detector"] == detector]


@pytest.fixture(params=["jsonl", "parquet"])
def file_of(request, tmp_path):
    """Write rows in one of the formats that have lists."""

    def written(rows):
        path = tmp_path / f"rows.{request.param}"
        if request.param == "parquet":
            schema = pa.schema({"tokens": pa.list_(pa.int32())})
            table = pa.Table.from_pylist(rows)
            column = pa.array([row["tokens"] for row in rows], schema.field("tokens").type)
            pq.write_table(table.set_column(0, "tokens", column), path)
        else:
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return str(path)

    return written


@pytest.mark.parametrize("start_column", [None, "first"])
def test_ids_have_the_log_probabilities_of_transformers(
    detect, file_of, tiny_model_path, start_column
):
    rows = id_rows()
    options = {} if start_column is None else {"ids_start_column": start_column}
    result = detect(file_of(rows), ids_column="tokens", **options)
    for row, score in zip(rows, scores_of(result, "loss"), strict=True):
        first = max(0, row["first"] - 1) if start_column else 0
        own = log_probabilities(tiny_model_path, row["tokens"])[first:]
        assert score == pytest.approx(own.mean(), abs=1e-5)


def test_every_detector_of_ids_reads_only_the_scored_ids(detect, write, tiny_model_path):
    rows = id_rows()
    result = detect(
        write(rows),
        "all",
        ids_column="tokens",
        ids_start_column="first",
        reference=str(tiny_model_path),
        inverse_temperatures=(0.5,),
    )
    detectors = {row["detector"] for row in result.scores.to_pylist()}
    assert detectors >= {"loss", "min_k", "min_k_plus_plus", "reference", "ez_mia", "wbc", "blind"}
    assert not detectors & {"zlib", "tag_tab", "lowercase", "pac", "grad_norm"}
    assert any("left out, as they read texts: zlib" in note for note in result.notes)
    # The reference model is the target, which read the same ids.
    assert scores_of(result, "reference") == pytest.approx([0.0] * len(rows), abs=1e-6)
    assert result.rows.texts[3] == ids_text(rows[3]["tokens"], 3)


def test_long_ids_are_read_in_windows(detect, write, tiny_model_path):
    [row] = id_rows(count=1, length=200)
    row["first"] = 150
    for long, reason in [("window", None), ("truncate", "cut before the first token to score")]:
        result = detect(write([row]), ids_column="tokens", ids_start_column="first", long=long)
        [score] = result.scores.to_pylist()
        assert score["reason"] == reason
        assert np.isnan(score["score"]) == (reason is not None)


def test_empty_ids_and_a_single_id_are_not_scored(detect, write):
    rows = [{"tokens": []}, {"tokens": [5]}, {"tokens": None}, {"tokens": [5, 6]}]
    reasons = [row["reason"] for row in detect(write(rows), ids_column="tokens").scores.to_pylist()]
    assert reasons[0] == reasons[2] == "empty text"
    assert reasons[1] == "one token, which has no history to be scored after"
    assert reasons[3] is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tokens": [1, 512]}, r"rows\.\w+:(row )?2: id 512 is outside.*Allowed: 0 to 511"),
        ({"tokens": [1, -3]}, r"rows\.\w+:(row )?2: id -3 at position 1 is below 0"),
        ({"tokens": [1, 2], "first": 2}, r":(row )?2: .* start at 2, .* 2 ids.*Allowed: 0 to 1"),
        ({"tokens": [1, 2], "first": -1}, r":(row )?2: .* start at -1, .*Allowed: 0 to 1"),
    ],
)
def test_bad_ids_are_refused_before_a_model_is_loaded(detect, file_of, monkeypatch, row, message):
    monkeypatch.setattr("detect.engine.target.load_target", None)
    rows = [{"tokens": [1, 2], "first": 0}, {"first": 0, **row}]
    with pytest.raises(InputError, match=message):
        detect(file_of(rows), ids_column="tokens", ids_start_column="first")


@pytest.mark.parametrize("ids", ["1 2", 7, [1, "2"], [1.0], [True, 2], [[1], [2]]])
def test_a_column_without_whole_numbers_is_refused(detect, write, ids):
    with pytest.raises(InputError, match=r"rows\.jsonl:1: .* is not a list of token ids"):
        detect(write([{"tokens": ids}]), ids_column="tokens")


def test_options_of_texts_are_refused(detect, write, tiny_model_path):
    file = write(id_rows())
    for options, message in [
        ({"bos": "always"}, "bos applies only to texts"),
        ({"held_out": write([{"text": "a"}], "h.jsonl")}, "held_out applies only to texts"),
        ({"detectors": "zlib"}, "zlib reads texts, and the rows are token ids"),
        ({"server": {"base_url": "http://localhost:1/v1"}}, "a model on this machine"),
        ({"ids_column": "ids"}, "there is no column 'ids'"),
    ]:
        with pytest.raises(InputError, match=message):
            detect(file, **{"ids_column": "tokens", **options})
    with pytest.raises(ValueError, match="the column of the ids is missing"):
        ScoringOptions(ids_start_column="first")


def test_identity_contains_the_ids_and_their_start(write, tiny_model_path, tmp_path):
    def digest_of(ids, first):
        file = write([{"tokens": ids, "first": first}])
        options = ScoringOptions(detectors="loss", ids_column="tokens", ids_start_column="first")
        return plan_file(file, str(tiny_model_path), tmp_path / "s.csv", options).step.digest

    same = digest_of([1, 2, 3, 4], 2)
    assert digest_of([1, 2, 3, 4], 2) == same
    assert len({same, digest_of([1, 2, 3, 4], 3), digest_of([1, 2, 4, 4], 2)}) == 3


def test_ids_are_not_the_text_that_spells_them(detect, write):
    ids = id_rows(count=1)[0]["tokens"]
    exact = detect(write([{"tokens": ids}]), ids_column="tokens")
    spelled = detect(write([{"text": ids_text(ids)}]))
    assert scores_of(exact, "loss") != scores_of(spelled, "loss")


def test_text_of_ids_round_trips():
    for ids, start in [([], 0), ([7], 0), ([7, 8, 9], 0), ([7, 8, 9], 2)]:
        assert parse_ids(ids_text(ids, start)) == (ids, start)
    assert ids_text([7, 8, 9], 2) == "7 8 | 9"
    assert ids_text([7, 8, 9], 1) == ids_text([7, 8, 9])
