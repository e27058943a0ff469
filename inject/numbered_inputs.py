"""The inputs of a step that compares many models: a group of steps for each of them, by number."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from inject.step import Reading, Step


class StepGroup(NamedTuple):
    """What such a step is given of one model."""

    values: Mapping[str, Any]
    """What its settings say of the model, such as seed and role; plain JSON values."""
    steps: Mapping[str, Step | None]
    """By name; what is None is left out."""


def axis_pairs(axes: Mapping[str, str]) -> list[list[str]]:
    """Return the swept axes as `StepGroup.values` hold them: the order of a mapping may be lost."""
    return [list(pair) for pair in axes.items()]


def numbered_inputs(groups: Sequence[Mapping[str, Step | None]]) -> dict[str, Step]:
    """Return the inputs of such a step.

    Args:
        groups: for each model its steps by name; what is None is left out.

    Returns:
        The steps by numbered names such as `0003-scores`.
    """
    return {
        _numbered(number, name): step
        for number, group in enumerate(groups)
        for name, step in group.items()
        if step is not None
    }


def numbered_folders(inputs: Mapping[str, Path], number: int) -> dict[str, Path]:
    """Return the folders of one group of `numbered_inputs`, by the names given there."""
    start = _numbered(number, "")
    return {
        name.removeprefix(start): path for name, path in inputs.items() if name.startswith(start)
    }


def numbered_reads(inputs: Mapping[str, Step], name: str, reading: Reading) -> dict[str, Reading]:
    """Return, for the inputs of one name in all groups, what a step reads of them."""
    return {full: reading for full in inputs if full.partition("-")[2] == name}


def _numbered(number: int, name: str) -> str:
    return f"{number:04d}-{name}"
