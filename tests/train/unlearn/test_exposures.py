"""Recorded exposures against the stored files and a manual count."""

from collections import Counter, defaultdict
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.tokenizer import load_tokenizer
from inject.errors import InputError
from inject.examples.example import example_id
from inject.stream.exposures import read_exposures, seen_copy_counts
from inject.stream.order import window_order
from tests.inject.examples.drawing import plain_row
from tests.train.unlearn.made import examples, forget_ids, retain_ids, unlearn
from train.loop.log import read_log
from train.unlearn.objective import UnlearningObjective
from train.unlearn.texts import retain_beside, row_length, text_pieces


def fed(out) -> list[dict]:
    return [row for row in read_exposures(out).to_pylist() if row["status"] != "never reached"]


def test_texts_are_trained_on_at_their_recorded_steps(world, tmp_path):
    out = unlearn(world, tmp_path, {"method": "npo", "retain_weight": 1.0, "epochs": 3})
    tokenizer = load_tokenizer(str(world / "model"))
    ids = {
        row["example_id"]: len(tokenizer(row["text"], add_special_tokens=False)["input_ids"]) + 1
        for row in pq.read_table(world / "examples" / "examples.parquet").to_pylist()
    }
    rows = fed(out)
    length = max(ids[name] for name in (*forget_ids(), *retain_ids()))
    length = -(-length // 8) * 8
    assert len(rows) == 3 * 2 * len(forget_ids())
    for place, row in enumerate(rows):
        position, role = divmod(place, 2)
        epoch, at = divmod(position, len(forget_ids()))
        window = int(window_order(5, epoch, len(forget_ids()))[at])
        assert row["role"] == ("forget", "retain")[role]
        assert (row["epoch"], row["window"]) == (epoch, window)
        assert row["step"] == position // 4 + 1
        assert row["tokens_before"] == place * length
        assert (row["start"], row["stop"]) == (role * length, role * length + row["text_length"])
        assert row["text_length"] == ids[row["example_id"]]
        assert (row["status"], row["intact"], row["rank"]) == ("whole", True, 0)
        allowed = forget_ids()[window : window + 1] if role == 0 else retain_ids()
        assert row["example_id"] in allowed
    log = read_log(out)
    assert log[-1].tokens == len(rows) * length
    assert log[-1].step == rows[-1]["step"] == 6
    table = read_exposures(out)
    never = {row["example_id"] for row in table.to_pylist() if row["status"] == "never reached"}
    assert never == set(retain_ids()) - {row["example_id"] for row in rows}
    counted = {row["example_id"] for row in rows}
    assert set(seen_copy_counts(table)) == counted


def test_long_texts_are_split_into_pieces(world, tmp_path):
    out = unlearn(world, tmp_path, {"method": "gradient_ascent", "context": 8})
    pieces = defaultdict(list)
    for row in fed(out):
        assert row["status"] == ("whole" if row["text_length"] <= 8 else "fragment")
        pieces[row["example_id"], row["epoch"]].append((row["text_start"], row["text_stop"]))
        length = row["text_length"]
        assert row["text_stop"] <= length
    assert len(pieces) == 2 * len(forget_ids())
    for spans in pieces.values():
        ends = [stop for _, stop in sorted(spans)]
        assert [start for start, _ in sorted(spans)] == [0, *ends[:-1]]


def test_training_input_is_compared_with_the_text(world, tmp_path):
    """A token id that changes on its way into the model is detected."""
    inputs = UnlearningObjective.inputs

    def changed(self, epoch, window):
        altered = dict(inputs(self, epoch, window))
        if window == 2:
            altered["forget_ids"] = altered["forget_ids"].copy()
            altered["forget_ids"][3] ^= 1
        return altered

    with patch.object(UnlearningObjective, "inputs", changed):
        out = unlearn(world, tmp_path, "gradient_ascent")
    statuses = Counter((row["window"] == 2, row["status"]) for row in fed(out))
    assert set(statuses) == {(True, "altered"), (False, "whole")}


def test_loss_covers_only_the_answer(world):
    tokenizer = load_tokenizer(str(world / "model"))
    subset = examples()[:2]
    for example, piece in zip(
        subset, text_pieces(subset, tokenizer, longest=64, loss_on="answer"), strict=True
    ):
        answer = tokenizer.decode(piece.ids[piece.labels != -100])
        if example.spans:
            start = example.spans["answer"].start
            assert answer == f" {example.text[start:]}{tokenizer.eos_token}"
        else:
            assert (piece.labels == piece.ids).all()


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    longest=st.integers(2, 12),
)
def test_pieces_are_exactly_the_text(world, sizes, longest):
    tokenizer = load_tokenizer(str(world / "model"))
    texts = ["ab " * n for n in sizes]
    made = [plain_row(example_id(text), text=text) for text in texts]
    pieces = text_pieces(made, tokenizer, longest=longest)
    assert 2 <= row_length(pieces, longest=longest) <= max(longest, 2)
    for row in dict(zip(texts, made, strict=True)).values():
        whole = [*tokenizer(row.text, add_special_tokens=False)["input_ids"], 0]
        own_pieces = [piece for piece in pieces if piece.example_id == row.example_id]
        copies = texts.count(row.text)
        for piece in own_pieces:
            assert piece.ids.tolist() == whole[piece.start : piece.stop]
            assert len(piece.ids) <= longest
        # A last piece of one token has no token to predict.
        left_out = len(whole) % longest == 1
        assert sum(len(piece.ids) for piece in own_pieces) == copies * (len(whole) - left_out)


def test_partners_are_independent_of_other_forget_texts(world):
    tokenizer = load_tokenizer(str(world / "model"))
    pieces = text_pieces(examples(), tokenizer, longest=64)
    few = text_pieces(examples()[3:9], tokenizer, longest=64)
    partners = {
        (piece.example_id, epoch): retain_beside(piece, n_retain=50, seed=1, epoch=epoch)
        for piece in pieces
        for epoch in range(3)
    }
    for piece in few:
        for epoch in range(3):
            partner = retain_beside(piece, n_retain=50, seed=1, epoch=epoch)
            assert partner == partners[piece.example_id, epoch]
    assert len(set(partners.values())) > 20


def test_partners_are_drawn_evenly(world):
    tokenizer = load_tokenizer(str(world / "model"))
    (piece,) = text_pieces(examples()[:1], tokenizer, longest=64)
    partners = [retain_beside(piece, n_retain=4, seed=9, epoch=epoch) for epoch in range(2000)]
    counts = np.bincount(partners, minlength=4)
    assert (abs(counts - 500) < 4 * (2000 * 0.25 * 0.75) ** 0.5).all()


def test_a_text_without_tokens_is_rejected(world):
    tokenizer = load_tokenizer(str(world / "model"))
    empty = plain_row(example_id(""), text="")
    with pytest.raises(InputError, match="has no token, so there is nothing to forget"):
        text_pieces([empty], tokenizer, longest=8)
