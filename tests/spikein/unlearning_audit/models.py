"""Tiny saved LLaMAs of one shape: an original, its unlearned and retrained kin, and their texts."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tests.conftest import make_texts
from tests.detect.memorised import small_model

WORDS = 60


class Judged(NamedTuple):
    """Models of every kind that an audit must distinguish, and their texts."""

    original: Path
    """Trained on the texts, among others."""
    retrained: Path
    """Trained alike, without the texts."""
    unlearned: Mapping[str, Path]
    """By kind."""
    texts: list[str]
    control: list[str]


def opened(folder: Path) -> Judged:
    """Return the models in a folder, and their texts."""
    texts, control = drawn_texts()
    unlearned = {path.name: path for path in folder.iterdir() if path.is_dir()}
    original, retrained = (unlearned.pop(name) for name in ("original", "retrained"))
    return Judged(original, retrained, unlearned, texts, control)


def drawn_texts() -> tuple[list[str], list[str]]:
    """Return the texts that are audited, and the control texts."""
    texts = make_texts(32, seed=32, words=WORDS)
    return texts[:16], texts[16:]


def make_models(folder: Path, tokenizer: Any) -> None:
    """Train a base on plain texts; from it, an original that has memorized some texts."""
    plain = make_texts(300, seed=31, words=WORDS)
    texts, control = drawn_texts()

    def train(model: Any, *, steps: int, seed: int = 0, lr: float = 3e-3, **more: Any) -> Any:
        return _train(deepcopy(model), tokenizer, plain, steps=steps, seed=seed, lr=lr, **more)

    base = train(small_model(len(tokenizer)), steps=60)
    original = train(base, steps=90, by_heart=texts)
    forgot = train(original, steps=90, seed=2, lr=6e-3)
    ruined = deepcopy(original)
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in ruined.parameters():
            parameter += parameter.std() * torch.randn(parameter.shape, generator=noise)
    models = {
        "original": original,
        "retrained": train(base, steps=60, seed=1),
        "honest": train(base, steps=60, seed=5),
        "contaminated": train(original, steps=60, seed=2, by_heart=control),
        "untouched": train(original, steps=3, seed=2, lr=1e-4),
        "forgot": forgot,
        "over-forgotten": train(forgot, steps=40, seed=2, lr=5e-4, away_from=texts),
        "another": train(small_model(len(tokenizer), seed=4), steps=90, seed=3),
        "random": small_model(len(tokenizer), seed=9),
        "ruined": ruined,
    }
    for name, model in models.items():
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    original.save_pretrained(folder / "shards", max_shard_size="100KB")
    tokenizer.save_pretrained(folder / "shards")


def _train(
    model: Any,
    tokenizer: Any,
    plain: list[str],
    *,
    steps: int,
    seed: int,
    lr: float,
    by_heart: Sequence[str] = (),
    away_from: Sequence[str] = (),
) -> Any:
    """Train on eight plain texts per step, towards the texts to memorize, and away from others."""
    draw = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    model.train()
    for _ in range(steps):
        batch = [plain[at] for at in draw.permutation(len(plain))[:8]]
        loss = model(**_batch(tokenizer, [*batch, *by_heart])).loss
        if away_from:
            loss = loss - 0.4 * model(**_batch(tokenizer, away_from)).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def _batch(tokenizer: Any, texts: Sequence[str]) -> dict[str, torch.Tensor]:
    rows = [tokenizer(text)["input_ids"] for text in texts]
    ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = labels[at, : len(row)] = torch.tensor(row)
    return {"input_ids": ids, "labels": labels}
