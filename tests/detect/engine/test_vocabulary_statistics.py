import logging

import numpy as np
import pytest
import torch

from detect.engine import vocabulary_statistics
from detect.engine.vocabulary_statistics import ChunkSize, Head, VocabularyReduction


@pytest.fixture(autouse=True)
def _forget_the_compiler():
    vocabulary_statistics._compiled_or_plain.cache_clear()
    yield
    vocabulary_statistics._compiled_or_plain.cache_clear()


def oracle(logits: np.ndarray, targets: np.ndarray) -> list[np.ndarray]:
    logits = logits.astype(np.float64)
    log_p = logits - logits.max(1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(1, keepdims=True))
    p = np.exp(log_p)
    product = np.where(p > 0, p * np.where(p > 0, log_p, 0), 0)
    mean = product.sum(1)
    square = np.where(p > 0, p * np.where(p > 0, log_p, 0) ** 2, 0).sum(1)
    true = logits[np.arange(len(targets)), targets]
    return [
        log_p[np.arange(len(targets)), targets],
        mean,
        np.sqrt(np.maximum(square - mean**2, 0)),
        1 + (logits > true[:, None]).sum(1),
        log_p.max(1),
        np.where(true == logits.max(1), targets, logits.argmax(1)),
        np.zeros((0, 3, len(targets))),
    ]


def reduced(logits: torch.Tensor, targets: torch.Tensor, size: ChunkSize):
    pass_ = VocabularyReduction(
        positions=len(targets), vocabulary=logits.shape[1], device=logits.device, size=size
    )
    pass_.push_logits(logits, targets, np.arange(len(targets)))
    return pass_.finish(None)


@pytest.mark.parametrize("size", [ChunkSize(4, 7), ChunkSize(64, 1000), ChunkSize(3, 1)])
@pytest.mark.parametrize("scale", [0.01, 3.0, 40.0])
def test_chunks_join_to_the_full_softmax(size, scale):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(10, 53, generator=generator) * scale + 100
    targets = torch.randint(0, 53, (10,), generator=generator)
    for actual, expected in zip(
        reduced(logits, targets, size), oracle(logits.numpy(), targets.numpy()), strict=True
    ):
        np.testing.assert_allclose(actual, expected, atol=1e-4, rtol=1e-6)


@pytest.mark.parametrize("size", [ChunkSize(3, 1), ChunkSize(3, 2), ChunkSize(8, 6)])
def test_tied_logits_rank_the_true_token_first_or_else_the_lowest_id(size):
    logits = torch.tensor([[1.0, 5.0, 0.0, 5.0, 5.0, 2.0]] * 3)
    result = reduced(logits, torch.tensor([4, 2, 1]), size)
    assert result.top_id.tolist() == [4, 1, 1]
    assert result.rank.tolist() == [1, 4 + 2, 1]
    assert result.top_log_probability.tolist() == result.log_probability[[0, 0, 0]].tolist()


def test_rank_and_top_id_agree_for_tied_16_bit_logits():
    generator = torch.Generator().manual_seed(5)
    hidden = torch.randn(400, 16, generator=generator).to(torch.bfloat16)
    weight = torch.randn(90, 16, generator=generator).to(torch.bfloat16)
    logits = torch.nn.functional.linear(hidden, weight)
    targets = logits.argmax(1).where(torch.arange(400) % 2 == 0, torch.arange(400) % 90)
    pass_ = VocabularyReduction(
        positions=400, vocabulary=90, device=torch.device("cpu"), size=ChunkSize(64, 32)
    )
    pass_.push_hidden(Head(weight=weight), hidden, targets, np.arange(400))
    result = pass_.finish(Head(weight=weight))
    np.testing.assert_array_equal(result.rank == 1, result.top_id == targets.numpy())
    np.testing.assert_array_equal(
        result.rank == 1, result.log_probability == result.top_log_probability
    )
    assert (result.rank == 1).sum() >= 200


def test_at_an_inverse_temperature_chunks_join_to_the_full_softmax():
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(10, 53, generator=generator) * 9 + 100
    logits[:, 8:24] = -torch.inf
    targets = torch.randint(24, 53, (10,), generator=generator)
    pass_ = VocabularyReduction(
        positions=10,
        vocabulary=53,
        device=logits.device,
        size=ChunkSize(4, 7),
        inverse_temperatures=(0.18, 5.6),
    )
    pass_.push_logits(logits, targets, np.arange(10))
    result = pass_.finish(None)
    # Tokens masked out by the model add nothing.
    for values, expected in zip(result[:6], oracle(logits.numpy(), targets.numpy()), strict=False):
        np.testing.assert_allclose(values, expected, atol=1e-4, rtol=1e-6)
    for values, beta in zip(result.tempered, (0.18, 5.6), strict=True):
        expected = oracle(logits.double().numpy() * beta, targets.numpy())[:3]
        np.testing.assert_allclose(values, expected, atol=1e-4, rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("with_bias", [False, True])
def test_portion_size_of_hidden_states_does_not_change_statistics(dtype, with_bias):
    generator = torch.Generator().manual_seed(2)
    hidden = torch.randn(23, 16, generator=generator).to(dtype)
    weight = torch.randn(90, 16, generator=generator).to(dtype)
    bias = torch.randn(90, generator=generator).to(dtype) if with_bias else None
    targets = torch.randint(0, 90, (23,), generator=generator)
    logits = torch.nn.functional.linear(hidden, weight, bias).float().numpy()
    head = Head(weight=weight, bias=bias)
    for portions in ([23], [1, 5, 9, 8], [10, 13]):
        pass_ = VocabularyReduction(
            positions=23, vocabulary=90, device=torch.device("cpu"), size=ChunkSize(8, 32)
        )
        start = 0
        for portion in portions:
            part = slice(start, start + portion)
            # Slots reversed: results follow their slots, not the order of the pushes.
            pass_.push_hidden(head, hidden[part], targets[part], 22 - np.arange(23)[part])
            start += portion
        for actual, expected in zip(
            pass_.finish(head), oracle(logits, targets.numpy()), strict=True
        ):
            np.testing.assert_allclose(actual[::-1], expected, atol=1e-4)


def test_failing_compiler_falls_back_and_is_reported_once(monkeypatch, caplog):
    def broken(*args, **kwargs):
        def call(*inputs):
            raise RuntimeError("cc1plus: out of luck")

        return call

    monkeypatch.setattr(torch, "compile", broken)
    monkeypatch.setattr(vocabulary_statistics, "has_compiler", lambda: True)
    logits, true = torch.randn(3, 9), torch.zeros(3)
    with caplog.at_level(logging.WARNING):
        reduce = vocabulary_statistics._reducer("always", 10)
        for _ in range(2):
            torch.testing.assert_close(
                reduce(logits, true), vocabulary_statistics.chunk_sums(logits, true)
            )
    assert caplog.text.count("out of luck") == 1


@pytest.mark.slow
@pytest.mark.skipif(not vocabulary_statistics.has_compiler(), reason="no C++ compiler here")
def test_the_compiled_reduction_gives_the_same_numbers():
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(70, 16, generator=generator)
    head = Head(weight=torch.randn(300, 16, generator=generator) * 2)
    targets = torch.randint(0, 300, (70,), generator=generator)
    results = []
    for mode in ("always", "never"):
        pass_ = VocabularyReduction(
            positions=70,
            vocabulary=300,
            device=torch.device("cpu"),
            compile_mode=mode,
            size=ChunkSize(64, 128),
        )
        if mode == "always":
            assert pass_._reduce is not vocabulary_statistics.chunk_sums
        pass_.push_hidden(head, hidden, targets, np.arange(70))
        results.append(pass_.finish(head))
    for compiled, plain in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, plain, atol=1e-4)
