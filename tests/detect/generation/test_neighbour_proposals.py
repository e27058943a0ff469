"""Neighbours against a slow re-implementation, and independent of batches and other texts."""

import numpy as np
import pytest
import torch

from detect.engine.masked_model import make_masked_model
from detect.generation.neighbour_proposals import DROPOUT, EMPTY_TEXT, PER_PLACE, find_neighbours
from detect.text_measures import (
    Neighbours,
)
from inject.keyed import item_key
from tests.conftest import make_texts
from tests.detect.masked_models import tiny_masked_parts

TEXT = "The river town was a winter garden."


@pytest.fixture(scope="module")
def masked():
    model, tokenizer = tiny_masked_parts()
    return make_masked_model(model, tokenizer, name="tiny")


def test_special_token_in_a_text_is_read_as_letters():
    """It is a replaceable place in the text, regardless of its tokens."""
    from tokenizers import pre_tokenizers

    model, tokenizer = tiny_masked_parts(context=8)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    [neighbours] = find_neighbours(
        make_masked_model(model, tokenizer, name="tiny"), ["river [SEP] town"], count=100
    )
    assert any("[SEP]" not in text for text in neighbours.texts)
    [cut] = find_neighbours(
        make_masked_model(model, tokenizer, name="tiny"), ["river town " * 5], count=100
    )
    assert all(text.endswith("river town " * 2) for text in cut.texts)


def naive(masked, text, count):
    """One place after the other, probabilities in float64, p(w) / (1 − p(token))."""
    model, tokenizer = masked.model, masked.tokenizer
    encoded = tokenizer(text, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    places = [at for at, (start, stop) in enumerate(offsets) if stop > start]
    random = np.random.Generator(np.random.Philox(key=item_key(text)))
    size = model.config.hidden_size
    mask = random.random((len(places), size)) >= DROPOUT
    candidates = []
    for row, at in enumerate(places):
        with torch.inference_mode():
            inputs = model.get_input_embeddings()(torch.tensor([ids])).clone()
            inputs[0, at] *= torch.from_numpy(mask[row]) / (1 - DROPOUT)
            p = torch.softmax(model(inputs_embeds=inputs).logits[0, at].double(), -1).tolist()
        weights = {
            token: p[token] / (1 - p[ids[at]])
            for token in range(len(p))
            if token != ids[at] and token not in tokenizer.all_special_ids
        }
        best = sorted(weights, key=lambda token: -weights[token])[:PER_PLACE]
        candidates += [(weights[token], at, token) for token in best]
    texts = []
    for _, at, token in sorted(candidates, reverse=True):
        word = tokenizer.decode([token]).replace("##", "").strip()
        changed = text[: offsets[at][0]] + word + text[offsets[at][1] :]
        if word and changed != text and changed not in texts:
            texts.append(changed)
    return texts[:count]


def test_neighbours_have_the_largest_weights(masked):
    (neighbours,) = find_neighbours(masked, [TEXT], count=25)
    assert list(neighbours.texts) == naive(masked, TEXT, 25)
    assert len(neighbours.texts) == 25


def test_neighbours_depend_only_on_the_text(masked):
    texts = [TEXT, *make_texts(3, words=6)]
    together = find_neighbours(masked, texts)
    assert find_neighbours(masked, texts[::-1])[::-1] == together
    assert find_neighbours(masked, texts, batch_tokens=1) == together
    state = torch.random.get_rng_state()
    find_neighbours(masked, texts[:1])
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_text_without_words_has_a_reason(masked, text):
    assert find_neighbours(masked, [text]) == [Neighbours(reason=EMPTY_TEXT)]
