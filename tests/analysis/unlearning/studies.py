"""Synthetic studies of unlearning, written as the files of real models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.unlearning.evidence import ArmEvidence, ModelEvidence
from detect.scores.table import SCHEMA, write_scores
from detect.task_accuracy.answers import AccuracyRow, write_accuracy
from detect.token_statistics import TokenStatistics, unscored, write_statistics
from inject.examples.example import Example, example_id, write_examples

DEFAULTS = {"loss": "default", "min_k": "k=0.2", "blind": "default"}
KNOWS = {"original": 1.5, "retrained": 0.0, "base": 0.0}
"""The advantage of a forget-set text over an unseen one, in nats per token."""
DOSES = (1, 2, 4)


@dataclass(frozen=True, kw_only=True)
class Study:
    """The parameters of a synthetic study."""

    seeds: Sequence[int] = (0,)
    datasets: Sequence[str] = ("people", "news")
    groups: int = 24
    """Groups of members per dataset, and as many of non-members; the first third is forgotten."""
    group_size: int = 2
    methods: Mapping[str, float] | None = None
    """The remaining advantage of the forget set under each method."""
    utility: Mapping[str, float] | None = None
    """The loss of each method, or the original, on all other texts, in nats per token."""
    diverged: tuple[tuple[str, int], ...] = ()
    """Methods that diverged in a seed."""
    unscored: int = 0
    """The number of unscorable texts in the forget set."""
    doses: Sequence[int] = DOSES
    by_dose: float = 0.0
    """The additional advantage per copy under a method."""


def statistics_of(random: np.random.Generator, level: float, tokens: int) -> TokenStatistics:
    """Return synthetic statistics whose mean log-probability is near a level."""
    values = (level + 0.3 * random.normal(size=tokens)).astype(np.float32)
    probability = 1 / (1 + np.exp(-(values + 3)))
    rank = np.where(random.random(tokens) < probability, 1, random.integers(2, 50, tokens))
    nothing = np.zeros(tokens, np.float32)
    return TokenStatistics(
        ids=np.arange(tokens, dtype=np.int32),
        log_probability=values,
        mean_log_prob=nothing,
        std_log_prob=nothing,
        entropy=nothing,
        rank=rank.astype(np.int32),
        top_log_probability=nothing,
        top_id=np.zeros(tokens, np.int32),
        offsets=np.zeros((tokens, 2), np.int32),
    )


def pool(seed: int, study: Study) -> list[Example]:
    """Return the examples of a seed; all seeds have the same texts with independent sides."""
    examples = []
    for dataset in study.datasets:
        order = np.random.default_rng([seed, len(dataset)]).permutation(2 * study.groups)
        for place, group in enumerate(order.tolist()):
            for number in range(study.group_size):
                text = f"{dataset} {group} {number} says nothing of anybody"
                examples.append(
                    Example(
                        example_id=example_id(text),
                        dataset=dataset,
                        source_id=f"{group}-{number}",
                        group=f"g{group}",
                        text=text,
                        side="member" if place < study.groups else "nonmember",
                        split="tune" if place % 4 == 3 else "test",
                    )
                )
    return examples


def write_study(folder: Path, study: Study) -> list[ArmEvidence]:
    """Write every model of every seed."""
    return [_write_arm(folder / f"seed{seed}", seed, study) for seed in study.seeds]


def _write_arm(folder: Path, seed: int, study: Study) -> ArmEvidence:
    examples = pool(seed, study)
    folder.mkdir(parents=True)
    write_examples(folder, examples)
    rows = study.group_size
    per_side = study.groups * rows
    forget: dict[str, int] = {}
    retain = []
    for at, example in enumerate(examples):
        place = at % (2 * per_side)
        if example.side == "member":
            group = place // rows
            if group < study.groups // 3:
                forget[example.example_id] = study.doses[group % len(study.doses)]
            else:
                retain.append(example.example_id)
    copies = {**forget, **dict.fromkeys(retain, 2)}
    models = [("original", "-"), ("retrained", "-"), ("base", "-")]
    models += [("unlearned", name) for name in study.methods or {"npo": 0.2}]
    return ArmEvidence(
        axes={"train.lr": "0.001"},
        seed=seed,
        examples=folder,
        forget=frozenset(forget),
        retain=frozenset(retain),
        copies=copies,
        models=tuple(
            _write_model(folder / f"{model}-{method}", seed, study, examples, forget, model, method)
            for model, method in models
        ),
    )


def _write_model(
    folder: Path,
    seed: int,
    study: Study,
    examples: list[Example],
    forget: Mapping[str, int],
    model: str,
    method: str,
) -> ModelEvidence:
    folder.mkdir()
    knows = (study.methods or {"npo": 0.2})[method] if model == "unlearned" else KNOWS[model]
    lost = (study.utility or {}).get(method if model == "unlearned" else model, 0.0)
    dead = (method, seed) in study.diverged
    own = np.random.default_rng([seed, sum(map(ord, model + method))])
    statistics, scores, answers = [], [], []
    left = study.unscored
    for example in examples:
        shared = np.random.default_rng([int(example.example_id[:8], 16)])
        of_group = np.random.default_rng([sum(map(ord, example.dataset + example.group)), 7])
        level = -4 + 0.5 * of_group.normal() + 0.4 * shared.normal() + 0.2 * own.normal()
        if example.example_id in forget:
            level += knows + (study.by_dose * forget[example.example_id] if method != "-" else 0)
        elif example.side == "member" and model != "base":
            level += 1.5 - lost
        else:
            level -= lost
        text_statistics = statistics_of(own, np.nan if dead else level, int(shared.integers(8, 20)))
        if example.example_id in forget and left > 0:
            left -= 1
            text_statistics = unscored("empty text")
        statistics.append(text_statistics)
        mean = float(text_statistics.log_probability.mean()) if len(text_statistics) else np.nan
        low = (
            float(np.sort(text_statistics.log_probability)[:3].mean())
            if len(text_statistics)
            else np.nan
        )
        for detector, setting, score in (
            ("loss", "default", mean),
            ("min_k", "k=0.2", low),
            ("min_k", "k=0.5", low + 1),
            ("blind", "default", shared.normal()),
        ):
            scores.append(
                {
                    "row": len(statistics) - 1,
                    "example_id": example.example_id,
                    "detector": detector,
                    "setting": setting,
                    "score": score,
                    "reason": None if np.isfinite(score) else "no score",
                }
            )
        right = bool(own.random() < (0.8 if example.example_id in forget and knows > 1 else 0.6))
        answers.append(
            AccuracyRow(example.example_id, example.dataset, example.side, 4, right, right)
        )
    write_statistics(folder, [example.example_id for example in examples], statistics)
    write_scores(folder, pa.Table.from_pylist(scores, schema=SCHEMA), record={})
    write_accuracy(folder, answers)
    general = folder / "general"
    general.mkdir()
    names = [f"document {number}" for number in range(12)]
    write_statistics(
        general,
        names,
        [
            statistics_of(own, np.nan if dead else -5 - lost - 0.1 * number, 30)
            for number in range(len(names))
        ],
    )
    return ModelEvidence(
        model=model,
        method=method,
        defaults=DEFAULTS,
        folders={"scores": folder, "statistics": folder, "general": general, "accuracy": folder},
    )
