"""Simulated arms, written as the files of a real experiment: scores that grow with the copies, a
blind control and an uninformed base model."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.arm import Arm
from analysis.settings import AnalysisSettings
from detect.scores.table import SCHEMA, write_scores
from inject.examples.example import Example, example_id, write_examples
from inject.stream.exposures import write_exposures
from train.loop.log import LogRow, write_log

FAST = AnalysisSettings(dataset_detectors=())
"""Without dataset detectors, whose fits take most of the time of an analysis."""
DEFAULTS = {
    "loss": "default",
    "zlib": "default",
    "min_k": "k=0.2",
    "surp": "entropy=2.0:k=40",
    "blind": "default",
}
GRID = {
    "loss": {"default": 1.0},
    "zlib": {"default": 0.8},
    "min_k": {"k=0.1": 1.1, "k=0.2": 1.2, "k=0.5": 1.4},
    "surp": {"entropy=2.0:k=40": 0.9, "entropy=4.0:k=40": 0.9},
    "blind": {"default": 0.0},
}
"""The effect of the logarithm of the copies on each setting."""


def make_examples(
    seed: int, *, datasets: tuple[str, ...] = ("fictional", "news"), n: int = 120
) -> list[Example]:
    """Return n members and n non-members of each dataset, a quarter of them for tuning."""
    examples = []
    for dataset in datasets:
        for number in range(2 * n):
            text = f"{dataset} {seed} {number}: <b>a text & its facts</b> about nobody."
            examples.append(
                Example(
                    example_id=example_id(text),
                    dataset=dataset,
                    source_id=str(number),
                    group=f"g{number // 2}",
                    text=text,
                    side="member" if number < n else "nonmember",
                    split="tune" if number % 8 < 2 else "test",
                )
            )
    return examples


def make_arm(
    folder: Path,
    *,
    axes: Mapping[str, str],
    seed: int,
    effect: float,
    copies_rate: float | None = 4.0,
    fixed: int | None = None,
    model: str = "contaminated",
    examples: list[Example] | None = None,
    datasets: tuple[str, ...] = ("fictional", "news"),
    unscored: Mapping[str, int] | None = None,
    n: int = 120,
    further: int = 0,
) -> Arm:
    """Write one arm's files; `effect` scales the effect of copies on scores, 0 is a base model.

    `unscored` maps detectors to how many of their first test rows fail; `further` is a number of
    additional detectors of increasing strength.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pool = examples if examples is not None else make_examples(seed, datasets=datasets, n=n)
    write_examples(folder, pool)
    random = np.random.default_rng([seed, len(str(axes)), int(effect * 100)])
    counts = {
        example.example_id: fixed if fixed is not None else int(random.poisson(copies_rate or 0))
        for example in pool
        if example.side == "member"
    }
    strength = np.array([np.log1p(counts.get(example.example_id, 0)) for example in pool])
    offset = np.array([3.0 * (example.dataset == "news") for example in pool])
    shared = random.normal(size=len(pool))
    test_rows = [row for row, example in enumerate(pool) if example.split == "test"]
    rows = []
    more = {further_name(at): {"default": 0.05 * at} for at in range(further)}
    for detector, grid in {**GRID, **more}.items():
        for setting, sensitivity in grid.items():
            noise = 0.8 * shared + 0.6 * random.normal(size=len(pool))
            if detector == "blind":
                noise = random.normal(size=len(pool))
            score = effect * sensitivity * strength + noise + offset
            missing = set(test_rows[: (unscored or {}).get(detector, 0)])
            rows += [
                {
                    "row": row,
                    "example_id": example.example_id,
                    "detector": detector,
                    "setting": setting,
                    "score": float("nan") if row in missing else float(score[row]),
                    "reason": "empty selection" if row in missing else None,
                }
                for row, example in enumerate(pool)
            ]
    write_scores(folder, pa.Table.from_pylist(rows, schema=SCHEMA), record={})
    _write_training(folder, counts, random)
    contaminated = model == "contaminated"
    return Arm(
        axes=axes,
        seed=seed,
        model=model,
        scores=folder,
        examples=folder,
        copies=counts if contaminated else None,
        defaults={**DEFAULTS, **dict.fromkeys(more, "default")},
        training=folder if contaminated else None,
    )


def further_name(number: int) -> str:
    """Return the name of one of the further detectors, as long as real ones are."""
    return f"another_detector_{number:02d}"


def make_experiment(folder: Path, *, seeds: tuple[int, ...] = (0,), n: int = 120) -> list[Arm]:
    """Return a sweep of two learning rates and two doses with its base models."""
    arms = []
    for seed in seeds:
        for lr, effect in (("0.0003", 0.3), ("0.001", 0.8)):
            for label, rate, fixed in (("poisson=4", 4.0, None), ("fixed=1", None, 1)):
                arms.append(
                    make_arm(
                        folder / f"{lr}-{label}-{seed}",
                        axes={"train.lr": lr, "copies": label},
                        seed=seed,
                        effect=effect,
                        copies_rate=rate,
                        fixed=fixed,
                        n=n,
                    )
                )
        arms.append(
            make_arm(folder / f"base-{seed}", axes={}, seed=seed, effect=0.0, model="base", n=n)
        )
    return arms


def _write_training(folder: Path, counts: Mapping[str, int], random: np.random.Generator) -> None:
    steps = np.arange(1, 123)
    tokens = steps * 4096
    losses = 3.6 + 1.2 * np.exp(-steps / 30) + 0.06 * random.normal(size=len(steps))
    speeds = 9000 + 300 * random.normal(size=len(steps))
    rows = zip(steps.tolist(), tokens.tolist(), losses.tolist(), speeds.tolist(), strict=True)
    write_log(
        folder,
        [
            LogRow(step=step, tokens=seen, loss=loss, lr=1e-3, tokens_per_second=speed)
            for step, seen, loss, speed in rows
        ],
    )
    copies = [(name, copy) for name, count in counts.items() for copy in range(count)]
    step = random.integers(1, 123, size=len(copies))
    exposures = {
        "example_id": pa.array([name for name, _ in copies], pa.string()),
        "copy": pa.array([copy for _, copy in copies], pa.int64()),
        "epoch": pa.array(np.zeros(len(copies), dtype=np.int64)),
        "step": pa.array(step),
        "tokens_before": pa.array((step - 1) * 4096),
        "intact": pa.array([True] * len(copies)),
        "status": pa.array(["seen"] * len(copies), pa.string()),
    }
    write_exposures(folder, pa.table(exposures))
