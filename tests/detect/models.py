"""Tiny random models of several families, and a slow float64 oracle of all statistics."""

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch

from detect.engine.target import Target, make_target

FAMILIES = ("llama", "olmo2", "gpt_neox")
CONTEXT = 128
HEADS = {"num_key_value_heads": 4, "head_dim": 8}


class Naive(NamedTuple):
    log_probability: np.ndarray
    mean_log_prob: np.ndarray
    std_log_prob: np.ndarray
    entropy: np.ndarray
    rank: np.ndarray
    top_log_probability: np.ndarray
    top_id: np.ndarray


def random_target(
    family: str, tokenizer: Any, *, seed: int = 0, context: int = CONTEXT, **more: Any
) -> Target:
    """A model with large weights, so that distributions are far from flat."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(
        family,
        vocab_size=512,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=context,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=0.4,
        tie_word_embeddings=False,
        **(({} if family in ("gpt_neox", "phi") else HEADS) | more),
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return make_target(model, tokenizer, name=family)


def with_start_token(tokenizer: Any, start: int = 0) -> Any:
    """The same tokenizer, but with a start token before each text, like LLaMA's."""
    from tokenizers.processors import TemplateProcessing

    other = deepcopy(tokenizer)
    other.bos_token = other.convert_ids_to_tokens(start)
    other.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{other.bos_token} $A", special_tokens=[(other.bos_token, start)]
    )
    return other


def naive(target: Target, ids: list[int], beta: float = 1.0) -> Naive:
    """Full softmax of β · logits in float64 over one unpadded sequence; positions 1 … n − 1."""
    with torch.inference_mode():
        logits = beta * target.model(torch.tensor([ids])).logits[0].double().numpy()
    rows = []
    for position in range(1, len(ids)):
        row = logits[position - 1]
        log_p = row - row.max() - np.log(np.sum(np.exp(row - row.max())))
        p = np.exp(log_p)
        mean = float(np.sum(p * log_p))
        deviation = float(np.sqrt(np.sum(p * (log_p - mean) ** 2)))
        rank = 1 + sum(1 for value in row if value > row[ids[position]])
        top_id = ids[position] if rank == 1 else int(np.flatnonzero(row == row.max())[0])
        rows.append((log_p[ids[position]], mean, deviation, -mean, rank, log_p.max(), top_id))
    return Naive(*(np.array(column) for column in zip(*rows, strict=True)))
