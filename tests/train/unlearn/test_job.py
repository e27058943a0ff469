"""Jobs end to end: what they write, what they refuse."""

import math

import pytest
from transformers import AutoTokenizer

from inject.errors import InputError
from inject.stream.exposures import read_exposures
from tests.train.unlearn.made import examples, forget_ids, load, retain_ids, text_loss, unlearn
from train.loop.log import read_log


@pytest.mark.parametrize("method", ["gradient_ascent", "npo"])
def test_forget_texts_become_less_likely(world, tmp_path, method):
    out = unlearn(world, tmp_path, method)
    before, after = load(world / "model"), load(out)
    tokenizer = AutoTokenizer.from_pretrained(out)
    forget = [one for one in examples() if one.example_id in forget_ids()]
    for one in forget:
        ids = tokenizer(one.text, return_tensors="np")["input_ids"][0]
        assert text_loss(after, ids) > text_loss(before, ids)
    log = read_log(out)
    assert [row.step for row in log] == [1, 2, 3, 4]
    assert all(math.isfinite(row.loss) for row in log)
    fed = read_exposures(out).to_pylist()
    assert {row["example_id"] for row in fed if row["role"] == "forget"} == set(forget_ids())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"forget_ids": ()}, "the forget set is empty"),
        ({"forget_ids": (*forget_ids(), "0" * 16)}, "1 of 8 texts are not among the members"),
        ({"retain_ids": (examples()[-1].example_id,)}, "1 of 1 texts are not among the members"),
        ({"retain_ids": forget_ids()[:1]}, "1 texts are in the forget set and in the retain set"),
        (
            {"retain_ids": (), "method": {"method": "npo", "retain_weight": 1.0}},
            "needs a retain set, and this one is empty",
        ),
        ({"method": {"method": "npo", "sweep": {"lr": [1, 2]}}}, "a job has one setting"),
    ],
)
def test_what_is_refused_before_training(world, tmp_path, more, message):
    with pytest.raises(InputError, match=message):
        unlearn(world, tmp_path, **{"method": "npo", **more})


def test_a_retain_set_may_be_empty_where_none_is_needed(world, tmp_path):
    unlearn(world, tmp_path, "npo", retain_ids=())
    assert retain_ids()
