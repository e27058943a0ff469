"""Norms against plain autograd in float64, and their sign on a memorising model."""

import copy
import math

import numpy as np
import pytest
import torch

from detect.detector_settings import parse_detectors, with_grids
from detect.engine.gradients import gradient_norms
from detect.engine.target import make_target
from detect.evidence import Evidence
from detect.scoring import score_rows
from detect.settings import ScoringPolicy
from detect.text_measures import GradientNorms
from detect.token_statistics import EMPTY_TEXT, ONE_TOKEN
from inject.errors import InputError
from tests.conftest import make_texts
from tests.detect.models import random_target

P = {"1": 1, "2": 2, "inf": math.inf}


def doubled(target):
    return make_target(copy.deepcopy(target.model).double(), target.tokenizer, name=target.name)


def naive(target, ids, parts=None):
    """One loss over the whole sequence (or parts of it), and norms of autograd's gradients."""
    model = copy.deepcopy(target.model).double()
    embedding = model.get_input_embeddings()
    losses, inputs, total = [], [], 0
    for part, first in parts or [(ids, 1)]:
        embedded = embedding(torch.tensor([part]))
        embedded.retain_grad()
        inputs.append(embedded)
        logits = model(inputs_embeds=embedded).logits[0]
        for place in range(first, len(part)):
            losses.append(-torch.log_softmax(logits[place - 1], -1)[part[place]])
            total += 1
    (sum(losses) / total).backward()
    gradients = [tensor.grad for tensor in model.parameters() if tensor.grad is not None]
    entries = torch.cat([tensor.flatten() for tensor in gradients])
    input_gradients = torch.cat([tensor.grad.flatten() for tensor in inputs])
    return GradientNorms(
        whole=float(torch.linalg.vector_norm(entries, 2)),
        tensors=tuple(
            float(np.mean([float(torch.linalg.vector_norm(tensor, p)) for tensor in gradients]))
            for p in P.values()
        ),
        embeddings=tuple(float(torch.linalg.vector_norm(input_gradients, p)) for p in P.values()),
    )


def agree(norms, expected, **tolerance):
    assert norms.whole == pytest.approx(expected.whole, **tolerance)
    assert norms.tensors == pytest.approx(expected.tensors, **tolerance)
    assert norms.embeddings == pytest.approx(expected.embeddings, **tolerance)


TEXTS = [make_texts(1, words=7)[0], "the the the the the", "Привет, мир. 世界 🌍", "ab"]


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_norms_match_autograd_in_float64(family, tiny_tokenizer):
    target = random_target(family, tiny_tokenizer)
    norms = gradient_norms(target, TEXTS, ScoringPolicy())
    exact = gradient_norms(doubled(target), TEXTS, ScoringPolicy())
    for text, single, double in zip(TEXTS, norms, exact, strict=True):
        expected = naive(target, tiny_tokenizer(text)["input_ids"])
        agree(double, expected, rel=1e-9)
        agree(single, expected, rel=1e-3)


def test_windows_of_a_long_text_add_their_gradients(tiny_tokenizer):
    target = doubled(random_target("llama", tiny_tokenizer, context=16))
    (text,) = make_texts(1, words=24)
    ids = tiny_tokenizer(text)["input_ids"]
    assert len(ids) > 24
    parts = [(ids[:16], 1)]
    start, stop = 8, 16
    while stop < len(ids):
        end = min(start + 16, len(ids))
        parts.append((ids[start:end], stop - start))
        start, stop = start + 8, end
    (norms,) = gradient_norms(target, [text], ScoringPolicy())
    agree(norms, naive(target, ids, parts), rel=1e-9)


def test_texts_without_a_loss_have_reasons_and_the_model_is_unchanged(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer)
    frozen = target.model.model.embed_tokens.weight
    frozen.requires_grad_(False)
    alone = gradient_norms(target, TEXTS[:1], ScoringPolicy())
    norms = gradient_norms(target, ["", "a", TEXTS[0]], ScoringPolicy())
    assert [item.reason for item in norms] == [EMPTY_TEXT, ONE_TOKEN, None]
    assert norms[2] == alone[0]
    assert not frozen.requires_grad
    assert all(item.grad is None for item in target.model.parameters())


def test_only_the_adapter_counts_in_a_model_with_an_adapter(tiny_tokenizer):
    from peft import LoraConfig, get_peft_model

    plain = random_target("llama", tiny_tokenizer)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = get_peft_model(plain.model, LoraConfig(r=2, target_modules=["q_proj"]))
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter)
    target = make_target(model.double(), tiny_tokenizer, name="lora")
    (norms,) = gradient_norms(target, TEXTS[:1], ScoringPolicy())
    ids = torch.tensor([tiny_tokenizer(TEXTS[0])["input_ids"]])
    model.zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()
    entries = [
        weight.grad.flatten() for name, weight in model.named_parameters() if "lora_" in name
    ]
    assert norms.whole == pytest.approx(float(torch.cat(entries).norm()), rel=1e-6)
    assert norms.embeddings is not None
    assert norms.embeddings[1] > 0


def scores(norms, specification="grad_norm"):
    evidence = Evidence(texts=["x"] * len(norms), statistics={}, gradients=norms)
    settings = with_grids(parse_detectors(specification))
    rows = score_rows([str(row) for row in range(len(norms))], evidence, settings)[0].to_pylist()
    return {(row["setting"], row["example_id"]): row for row in rows}


def test_scores_are_negative_norms():
    """A known mistake of public code: the gradient norm with the opposite sign."""
    results = scores(
        [GradientNorms(whole=1.5, tensors=(1.0, 2.0, 3.0), embeddings=(4.0, 5.0, 6.0))]
    )
    assert {setting: row["score"] for (setting, _), row in results.items()} == {
        "-": -1.5,
        "of=tensors:p=1": -1.0,
        "of=tensors": -2.0,
        "of=tensors:p=inf": -3.0,
        "of=embeddings:p=1": -4.0,
        "of=embeddings": -5.0,
        "of=embeddings:p=inf": -6.0,
    }
    refused = scores([GradientNorms(whole=1.0)], "grad_norm:p=1")["p=1", "0"]
    assert "only the 2-norm is defined" in refused["reason"]
    assert scores([GradientNorms(reason="why")])["-", "0"]["reason"] == "why"
    with pytest.raises(InputError, match="grad_norm needs gradients"):
        score_rows(["a"], Evidence(texts=["x"], statistics={}), parse_detectors("grad_norm"))
