"""A tiny model that has memorised some texts, and the same model before training."""

from copy import deepcopy
from typing import Any, NamedTuple

import torch

from detect.engine.target import Target, make_target
from tests.conftest import make_texts


class Memorised(NamedTuple):
    """Two models, and the texts that the second one was and was not trained on."""

    before: Target
    after: Target
    members: list[str]
    nonmembers: list[str]

    @property
    def texts(self) -> list[str]:
        return [*self.members, *self.nonmembers]

    @property
    def labels(self) -> list[bool]:
        return [True] * len(self.members) + [False] * len(self.nonmembers)


def small_model(vocabulary: int, *, hidden: int = 64, context: int = 256, seed: int = 0) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=vocabulary,
                hidden_size=hidden,
                intermediate_size=2 * hidden,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=4,
                max_position_embeddings=context,
                bos_token_id=0,
                eos_token_id=0,
            )
        )


def overtrain(model: Any, sequences: list[list[int]], *, steps: int, lr: float = 3e-3) -> float:
    """Train on whole sequences in one batch; return the last loss."""
    longest = max(map(len, sequences))
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = labels[row, : len(sequence)] = torch.tensor(sequence)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    model.train()
    loss = torch.tensor(0.0)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(input_ids=ids, attention_mask=(ids >= 0).long(), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    return float(loss.detach())


def memorised(tokenizer: Any, *, count: int = 12, words: int = 24, steps: int = 160) -> Memorised:
    texts = make_texts(3 * count, seed=77, words=words)
    members, nonmembers, background = texts[:count], texts[count : 2 * count], texts[2 * count :]
    model = small_model(len(tokenizer))
    overtrain(model, [tokenizer(text)["input_ids"] for text in background], steps=20)
    before = make_target(deepcopy(model), tokenizer, name="before")
    ends = [[*tokenizer(text)["input_ids"], tokenizer.eos_token_id] for text in members]
    loss = overtrain(model, ends, steps=steps)
    assert loss < 0.6, f"the tiny model did not learn its texts: {loss}"
    return Memorised(before, make_target(model, tokenizer, name="after"), members, nonmembers)
