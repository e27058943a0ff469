"""`spikein detect` refuses unusable models and scores all others."""

import copy
import json
import math
import shutil

import numpy as np
import pytest

from inject.errors import InputError
from tests.conftest import make_texts

ROWS = [{"text": text, "label": at % 2} for at, text in enumerate(make_texts(24, words=9))]


def save(model, tokenizer, folder):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def make(name, tokenizer, folder, **config):
    import torch
    import transformers

    small = {
        "vocab_size": 512, "hidden_size": 16, "d_model": 16, "num_hidden_layers": 1,
        "num_layers": 1, "num_attention_heads": 2, "num_heads": 2, "num_key_value_heads": 2,
        "intermediate_size": 16, "d_ff": 16, "d_kv": 8, "max_position_embeddings": 64,
        "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "n_layer": 1, "n_head": 2,
    }  # fmt: skip
    kind = getattr(transformers, name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return save(kind(kind.config_class(**{**small, **config})), tokenizer, folder)


def assert_scored(result):
    assert not np.isnan(result.scores["score"].to_numpy()).any()


@pytest.mark.parametrize(
    "name",
    [
        "BertLMHeadModel",
        "BertModel",
        "ElectraForPreTraining",
        "T5ForConditionalGeneration",
        "LlamaForSequenceClassification",
    ],
)
def test_a_model_that_is_not_causal_is_refused_before_its_weights_are_read(
    name, tmp_path, detect, tiny_tokenizer
):
    tied = {"tie_word_embeddings": True, "pad_token_id": 0}
    folder = make(name, tiny_tokenizer, tmp_path / "model", **tied)
    # No weights are read: their file is empty.
    (tmp_path / "model" / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"not a causal language model|a causal language model's"):
        detect(ROWS, model=folder)


def test_an_encoder_is_also_refused_as_reference(detect, tmp_path, tiny_tokenizer):
    folder = make("BertForMaskedLM", tiny_tokenizer, tmp_path / "bert")
    with pytest.raises(InputError, match=r"bert.*sees the words that follow"):
        detect(ROWS, "reference", reference=folder)


@pytest.mark.parametrize(
    ("name", "config"),
    [("GPT2LMHeadModel", {}), ("BertLMHeadModel", {"is_decoder": True})],
)
def test_causal_models_are_scored(name, config, tmp_path, detect, tiny_tokenizer):
    assert_scored(detect(ROWS, model=make(name, tiny_tokenizer, tmp_path / "model", **config)))


def test_a_causal_model_with_a_custom_architecture_name_is_scored(detect, tmp_path, tiny_tokenizer):
    folder = make("LlamaForCausalLM", tiny_tokenizer, tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    named = {**json.loads(path.read_text()), "architectures": ["LLaMAForCausalLM"]}
    path.write_text(json.dumps(named))
    assert_scored(detect(ROWS, model=folder))


def test_a_special_token_beyond_the_embedding_is_tokenized_as_letters(
    detect, tmp_path, tiny_tokenizer
):
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    number = tokenizer.convert_tokens_to_ids("<image>")
    folder = make("LlamaForCausalLM", tokenizer, tmp_path / "model", vocab_size=number)
    assert_scored(detect([{"text": "plain"}, {"text": "words <image> words"}], model=folder))


def test_a_tokenizer_larger_than_the_model_is_refused_before_weights_are_read(
    detect, tmp_path, tiny_tokenizer
):
    folder = make("LlamaForCausalLM", tiny_tokenizer, tmp_path / "model", vocab_size=300)
    (tmp_path / "model" / "model.safetensors").write_bytes(b"")
    highest = max(tiny_tokenizer.get_vocab().values())
    with pytest.raises(InputError, match=rf"ids up to {highest}, .* embedding has 300 rows"):
        detect(ROWS, model=folder)


def test_a_model_that_looks_ahead_is_refused_under_any_configuration():
    """Such as a model that brings its own code and names a causal head."""
    import torch

    from train.models.weight_check import check_looks_back

    class Toy(torch.nn.Module):
        device = torch.device("cpu")

        def __init__(self, ahead: bool) -> None:
            super().__init__()
            self.ahead = ahead
            with torch.random.fork_rng():
                torch.manual_seed(0)
                self.embedding = torch.nn.Embedding(40, 8)

        def get_input_embeddings(self):
            return self.embedding

        def forward(self, input_ids):
            states = self.embedding(input_ids)
            seen = states.mean(1, keepdim=True) + states if self.ahead else states.cumsum(1)
            return type("Output", (), {"logits": seen @ self.embedding.weight.T})

    check_looks_back(Toy(ahead=False), "toy")
    with pytest.raises(InputError, match="toy: its predictions change with the words that follow"):
        check_looks_back(Toy(ahead=True), "toy")


def test_weights_that_are_not_finite_are_named(detect, tmp_path, tiny_model_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(tiny_model_path, folder)
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][3, 5] = math.nan
    weights["model.norm.weight"][0] = -math.inf
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        InputError, match=r"NaN or infinity: model\.layers\.1\.mlp\.up_proj\.weight and 1"
    ):
        detect(ROWS, model=str(folder))
