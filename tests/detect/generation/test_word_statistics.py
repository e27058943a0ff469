"""Surprise of words, against one float64 pass per word."""

import numpy as np
import pytest
import torch

from detect.engine.target import make_target
from detect.generation.word_statistics import (
    causal_words,
    masked_words,
    open_reference,
)
from inject.errors import InputError
from tests.detect.masked_models import tiny_masked_parts
from tests.detect.models import random_target, with_start_token

TEXT = "The river's school, in winter-market 1984, was Élodie's. nothing"


@pytest.fixture(scope="module")
def masked_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    for part in tiny_masked_parts():
        part.save_pretrained(folder)
    return folder


def log_softmax(row):
    row = row.double().numpy()
    return row - row.max() - np.log(np.exp(row - row.max()).sum())


def held_by(word, places):
    """Return the pieces of a text that form a word."""
    return [
        place
        for place, (start, stop) in enumerate(places)
        if stop > start and start < word.stop and stop > word.start
    ]


def check_word(word, pieces):
    """Compare a word with the distribution at each of its pieces, and the piece itself."""
    likely = [own[piece] for own, piece in pieces]
    ranks = [int((own > own[piece]).sum()) for own, piece in pieces]
    assert word.log_probability == pytest.approx(sum(likely), abs=1e-3)
    assert word.rank == max(ranks)
    assert word.first_log_probability == pytest.approx(likely[0], abs=1e-3)
    assert word.first_rank == ranks[0]


def test_masked_model_reads_the_text_without_the_word(masked_folder):
    model = open_reference(str(masked_folder), load_causal=lambda _: pytest.fail("causal"))
    encoding = model.tokenizer(TEXT, return_offsets_mapping=True)
    ids, places = encoding["input_ids"], encoding["offset_mapping"]
    (statistics,) = masked_words(model, [TEXT])
    words = [TEXT[word.start : word.stop] for word in statistics]
    # The maskable nouns include `river` of `river's`, and the year.
    assert words == [
        "The", "river", "river's", "school", "in", "winter-market", "1984", "was", "Élodie",
        "Élodie's", "nothing",
    ]  # fmt: skip
    for word in statistics:
        masked = held_by(word, places)
        hidden = [
            model.tokenizer.mask_token_id if at in masked else ids[at] for at in range(len(ids))
        ]
        with torch.inference_mode():
            logits = model.model(input_ids=torch.tensor([hidden])).logits[0]
        # Every piece of the word is masked, and its first one is scored.
        check_word(word, [(log_softmax(logits[at]), ids[at]) for at in masked])
    assert any(word.first_rank < word.rank for word in statistics)


@pytest.mark.parametrize("start", [False, True])
def test_a_causal_model_reads_from_left_to_right(tiny_tokenizer, start):
    tokenizer = with_start_token(tiny_tokenizer) if start else tiny_tokenizer
    target = make_target(random_target("llama", tiny_tokenizer).model, tokenizer, name="causal")
    text = "the school, in winter-market 1984"
    encoding = tokenizer(text, return_offsets_mapping=True)
    ids, places = encoding["input_ids"], encoding["offset_mapping"]
    with torch.inference_mode():
        logits = target.model(torch.tensor([ids])).logits[0]
    (statistics, empty) = causal_words(target, [text, ""])
    assert empty == []
    words = [text[word.start : word.stop] for word in statistics]
    # Without a start token the first word has no history.
    assert words == ["the", "school", "in", "winter-market", "1984"][0 if start else 1 :]
    for word in statistics:
        pieces = held_by(word, places)
        check_word(word, [(log_softmax(logits[at - 1]), ids[at]) for at in pieces])


def test_masked_model_without_weights_is_rejected(masked_folder, tmp_path):
    from shutil import copytree

    from safetensors.torch import load_file, save_file

    broken = copytree(masked_folder, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    weights.pop("bert.encoder.layer.0.output.dense.weight")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="lack 1 of the model's weights"):
        open_reference(str(broken), load_causal=lambda _: pytest.fail("causal"))
