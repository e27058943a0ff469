"""Answers of simulated models to the questions of a simulated arm's examples."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis.arm import Arm
from detect.task_accuracy.answers import AccuracyRow, write_accuracy
from inject.examples.example import read_examples

OPTIONS = 4


def answered(
    arm: Arm, folder: Path, *, seed: int = 0, clean: float = 0.6, gain: float = 0.3
) -> Arm:
    """Return an arm with answers: its own, those of its clean twin and those of its base model.

    Args:
        arm: a contaminated arm.
        folder: where files are written.
        seed: of the answers.
        clean: accuracy without contamination; item difficulties spread around it.
        gain: share of the wrong answers to members that contamination turns right.
    """
    draw = np.random.default_rng(seed)
    examples = read_examples(arm.examples)
    ability = np.clip(clean + 0.2 * draw.standard_normal(len(examples)), 0.02, 0.98)
    seen = np.array([arm.copies is not None and arm.copies.get(e.example_id, 0) > 0
                     for e in examples])  # fmt: skip
    twin = draw.random(len(examples)) < ability
    own = twin | (seen & (draw.random(len(examples)) < gain))
    base = draw.random(len(examples)) < ability
    further = dict(arm.further)
    for name, right in (("answers", own), ("twin_answers", twin), ("base_answers", base)):
        further[name] = folder / name
        further[name].mkdir(parents=True)
        write_accuracy(
            further[name],
            [
                AccuracyRow(
                    e.example_id, e.dataset, e.side, OPTIONS,
                    bool(hit), bool(hit), float(chance), float(chance),
                )
                for e, hit, chance in zip(examples, right, ability, strict=True)
            ],
        )  # fmt: skip
    return replace(arm, further=further)


def without(arm: Arm, *names: str) -> Arm:
    """Return an arm without the answers of some models."""
    further: Mapping[str, Path] = {k: v for k, v in arm.further.items() if k not in names}
    return replace(arm, further=further)
