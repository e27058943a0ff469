"""Numbers of an unlearning study in words, as its tables show them."""

from collections.abc import Iterable

from analysis.figures.unlearning.measured import (
    NO_METHOD,
    ORIGINAL,
    RETRAINED,
    Row,
    has_interval,
    has_value,
)
from analysis.page.table import p_text

MINUS = "\N{MINUS SIGN}"


def number_with_interval(row: Row | None, *, digits: int = 2, signed: bool = False) -> str:
    """Return `0.61 [0.52, 0.69]`; the number alone where it has no interval; empty without one.

    Args:
        row: with `value`, `low` and `high`.
        digits: decimals.
        signed: write the sign of positive numbers, too.
    """
    if row is None or not has_value(row):
        return ""
    form = f"{{:{'+' if signed else ''}.{digits}f}}"
    value = form.format(row["value"])
    if has_interval(row):
        value = f"{value} [{form.format(row['low'])}, {form.format(row['high'])}]"
    return value.replace("-", MINUS)


def p_value(row: Row | None) -> str:
    """Return a p-value, never as zero; empty without one."""
    return "" if row is None or not has_value(row) else p_text(row["value"])


def steps_text(row: Row | None) -> str:
    """Return a number of steps, which has no interval, or that it was not reached."""
    if row is None:
        return ""
    if not has_value(row):
        return "not reached" if row["note"].startswith("not back") else ""
    return f"{row['value']:g}"


def model_text(model: str, method: str) -> str:
    """Return what a row of a table is called."""
    if method != NO_METHOD:
        return method
    return {ORIGINAL: "original model", RETRAINED: "retrained model"}.get(model, f"{model} model")


def counts_text(rows: Iterable[Row]) -> str:
    """Say how many texts, groups and seeds stand behind rows; empty for none.

    Texts are summed over the seeds; groups are different ones, over all of them.
    """
    found = [row for row in rows if row["seeds"]]
    if not found:
        return ""

    def span(name: str) -> str:
        ends = sorted({int(row[name]) for row in found if row[name]})
        return f"{ends[0]:,}" if len(ends) == 1 else f"{ends[0]:,} to {ends[-1]:,}"

    parts = []
    if any(row["forget"] for row in found):
        parts.append(f"{span('forget')} texts")
    if any(row["holdout"] for row in found):
        parts.append(f"{span('holdout')} that no model saw")
    if any(row["groups"] for row in found):
        parts.append(f"{span('groups')} different groups")
    seeds = span("seeds")
    parts.append(f"{seeds} training {'seed' if seeds == '1' else 'seeds'}")
    return f"{', '.join(parts)}{'' if seeds == '1' else '; texts are summed over seeds'}."
