"""Rounded weights against a search over single numbers, and unchanged layers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from inject.corpus.tokenizer import train_tokenizer
from tests.conftest import make_texts
from tests.train.shapes import tiny_shape
from train.models.rounded_weights import BLOCK, NORMAL_FLOAT, rounded, write_rounded
from train.models.shapes import build_model

NUMBERS = st.floats(-3, 3, width=32, allow_nan=False)


def by_hand(rows: list[list[float]], bits: str) -> list[list[float]]:
    """Return the nearest allowed number of each value by trying all of them."""
    if bits == "8bit":
        nearest = []
        for row in rows:
            scale = max(map(abs, row)) / 127
            allowed = [scale * step for step in range(-127, 128)]
            nearest.append(
                [min(allowed, key=lambda candidate: abs(candidate - value)) for value in row]
            )
        return nearest
    flat = [value for row in rows for value in row]
    result = []
    for start in range(0, len(flat), BLOCK):
        block = flat[start : start + BLOCK]
        scale = max(map(abs, block))
        allowed = [scale * level for level in NORMAL_FLOAT]
        result += [min(allowed, key=lambda candidate: abs(candidate - value)) for value in block]
    width = len(rows[0])
    return [result[start : start + width] for start in range(0, len(result), width)]


@given(
    rows=st.integers(1, 30).flatmap(
        lambda width: st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1)
    ),
    bits=st.sampled_from(["8bit", "4bit"]),
)
@settings(max_examples=60, deadline=None)
def test_weights_are_rounded_to_the_nearest_allowed_number(rows, bits):
    weight = torch.tensor(rows)
    rounded_weight, expected = rounded(weight, bits), torch.tensor(by_hand(rows, bits))
    assert rounded_weight.shape == weight.shape
    # Half-way between two numbers both are equally near.
    assert torch.allclose((rounded_weight - weight).abs(), (expected - weight).abs(), atol=1e-6)
    assert torch.allclose(rounded(rounded_weight, bits), rounded_weight, atol=1e-6)


def test_four_bit_values_match_bitsandbytes_nf4():
    """Appendix E of Dettmers et al. 2023, to four places."""
    published = [
        -1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0,
        0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0,
    ]  # fmt: skip
    assert list(NORMAL_FLOAT) == pytest.approx(published, abs=1e-4)


@pytest.mark.parametrize("bits", ["8bit", "4bit"])
def test_a_model_keeps_its_embeddings_norms_and_output_layer(tmp_path, bits):
    tokenizer = train_tokenizer(make_texts(40, seed=1, words=20), 300)
    source, out = tmp_path / "source", tmp_path / "out"
    model = build_model(tiny_shape(), len(tokenizer), 0, 0)
    model.save_pretrained(source)
    tokenizer.save_pretrained(source)
    write_rounded(source, out, bits)
    before, after = (
        AutoModelForCausalLM.from_pretrained(folder).state_dict() for folder in (source, out)
    )
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    linear = {name for name in before if name.endswith("_proj.weight")}
    assert changed == linear
    for name in linear:
        assert torch.equal(after[name], rounded(before[name], bits))
    assert (out / "tokenizer.json").is_file()
