"""Slow oracles of the losses: one text and one token at a time, in double precision, without
padding and without code of the package."""

import math
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel


class Text(NamedTuple):
    """A text and the index of the first token with a loss."""

    ids: np.ndarray
    behind: int = 1


def rows(model: PreTrainedModel, text: Text) -> list[list[float]]:
    """Return log-probabilities over the vocabulary at each position."""
    with torch.no_grad():
        logits = model(torch.from_numpy(text.ids)[None]).logits[0].double().tolist()
    predicted = []
    for row in logits:
        top = max(row)
        total = top + math.log(sum(math.exp(logit - top) for logit in row))
        predicted.append([logit - total for logit in row])
    return predicted


def log_probability(model: PreTrainedModel, text: Text) -> float:
    predicted = rows(model, text)
    total = 0.0
    for place in range(max(text.behind, 1), len(text.ids)):
        total += predicted[place - 1][int(text.ids[place])]
    return total


def n_labels(text: Text) -> int:
    return len(text.ids) - max(text.behind, 1)


def mean_log_probability(model: PreTrainedModel, text: Text) -> float:
    return log_probability(model, text) / n_labels(text)


def log_sigmoid(value: float) -> float:
    return -math.log1p(math.exp(-value))


def kl(original: PreTrainedModel, model: PreTrainedModel, text: Text) -> float:
    """Return the mean of KL(original || model) over the positions that predict a label."""
    reference, now = rows(original, text), rows(model, text)
    total = 0.0
    for place in range(1, len(text.ids)):
        for p, q in zip(reference[place - 1], now[place - 1], strict=True):
            total += math.exp(p) * (p - q)
    return total / n_labels(text)


def npo(original, model, text: Text, beta: float, reduction: str) -> float:
    ratio = log_probability(model, text) - log_probability(original, text)
    if reduction == "mean":
        ratio /= n_labels(text)
    return -2 / beta * log_sigmoid(-beta * ratio)


def simnpo(model, text: Text, beta: float, gamma: float, reduction: str) -> float:
    value = log_probability(model, text)
    if reduction == "mean":
        value /= n_labels(text)
    return -2 / beta * log_sigmoid(-beta * value - gamma)


def dpo(original, model, true: Text, idk: Text, beta: float, reduction: str) -> float:
    ratios = []
    for text in (idk, true):
        ratio = log_probability(model, text) - log_probability(original, text)
        ratios.append(ratio / n_labels(text) if reduction == "mean" else ratio)
    return -log_sigmoid(beta * (ratios[0] - ratios[1]))


def hidden(model: PreTrainedModel, text: Text, layer: int) -> list[list[float]]:
    with torch.no_grad():
        states = model(torch.from_numpy(text.ids)[None], output_hidden_states=True).hidden_states
    return states[layer + 1][0].double().tolist()


def squared_distance(first: list[list[float]], second: list[list[float]], text: Text) -> float:
    """Return the mean squared distance over the states of the text's labels."""
    total = 0.0
    for place in range(text.behind, len(text.ids)):
        for a, b in zip(first[place], second[place], strict=True):
            total += (a - b) ** 2 / len(first[place])
    return total / (len(text.ids) - text.behind)


def generic_label(original, reinforced, text: Text, place: int, alpha: float) -> int:
    """Return the token of the largest generic logit at a position."""
    with torch.no_grad():
        ids = torch.from_numpy(text.ids)[None]
        before = original(ids).logits[0, place].tolist()
        after = reinforced(ids).logits[0, place].tolist()
    generic = [b - alpha * max(a - b, 0.0) for a, b in zip(after, before, strict=True)]
    return max(range(len(generic)), key=generic.__getitem__)
