"""Cells and tables in Markdown, for the pages of docs/results/."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd


def interval(row: pd.Series, *, sign: str = "", digits: int = 2) -> str:
    """Return a value with its interval, if the run has one.

    Args:
        row: with `value`, `low` and `high`.
        sign: `+` to also write the sign of positive numbers.
        digits: decimals.
    """
    if not pd.notna(row["value"]):
        return "–"
    value, low, high = (f"{row[name]:{sign}.{digits}f}" for name in ("value", "low", "high"))
    if not (pd.notna(row["low"]) and pd.notna(row["high"])):
        return f"{value} (no interval)"
    return f"{value} [{low}, {high}]"


def sides_per_seed(counts: pd.Series) -> str:
    """Return the mean numbers of members and non-members of a seed."""
    members, nonmembers = (
        counts[name] / counts["n_seeds"] for name in ("n_members", "n_nonmembers")
    )
    return f"{members:.0f} / {nonmembers:.0f}"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def arm_name(values: Sequence[Any], model: str, *, n_shown: int = 0) -> str:
    """Return the name of an arm: its values of the swept axes, or the model that saw no member.

    Args:
        values: of the swept axes.
        model: `contaminated`, `base` or `clean`.
        n_shown: the number of values that distinguish several models without members.
    """
    if model == "contaminated":
        return ", ".join(str(value) for value in values) or "all"
    return ", ".join([f"{model} model", *(str(value) for value in values[:n_shown])])
