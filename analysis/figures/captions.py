"""What captions and alternative texts say of the points drawn: their rows, and where they stand."""

from collections.abc import Iterable, Mapping, Sequence

from analysis.metrics_table import Cell
from analysis.selection.ranking import common_rows, highest_first

_MAX_NAMED = 4


def describe_sample_sizes(arms: Sequence[Mapping[str, Cell | None]]) -> str:
    """Say how many rows and seeds stand behind the points, and behind those on rows of their own.

    Args:
        arms: the points of each panel, by detector.
    """
    drawn = [
        {name: cell for name, cell in arm.items() if cell is not None and cell.available}
        for arm in arms
    ]
    drawn = [arm for arm in drawn if arm]
    if not drawn:
        return ""
    shared = [common_rows(arm) for arm in drawn]
    own: dict[str, set[tuple[int, int]]] = {}
    for arm, rows in zip(drawn, shared, strict=True):
        for name, cell in arm.items():
            if (cell.n_members, cell.n_nonmembers) != rows:
                own.setdefault(name, set()).add((cell.n_members, cell.n_nonmembers))
    sentence = (
        f"{range_text(rows[0] for rows in shared)} members and "
        f"{range_text(rows[1] for rows in shared)} non-members of the test split, "
        f"{seeds_text(cell.n_seeds for arm in drawn for cell in arm.values())}"
    )
    apart = "; ".join(
        f"{name} {range_text(rows[0] for rows in counts)} and "
        f"{range_text(rows[1] for rows in counts)}"
        for name, counts in own.items()
    )
    return f"{sentence} On rows of their own: {apart}." if apart else sentence


def range_text(numbers: Iterable[int]) -> str:
    """Return `112`, or `99 to 112`."""
    ends = list(numbers)
    return " to ".join(dict.fromkeys(f"{end:,}" for end in (min(ends), max(ends))))


def seeds_text(counts: Iterable[int]) -> str:
    """Return how many training seeds there are at most, and a full stop."""
    most = max(counts)
    return "one training seed." if most == 1 else f"{most} training seeds."


def further_text(count: int, what: str) -> str:
    """Return a sentence on what is not drawn; empty where everything is."""
    return f" {count} further {what}." if count > 0 else ""


def interval_text(value: float, low: float, high: float) -> str:
    """Return a number with its interval, for reading aloud."""
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def describe_extremes(cells: Mapping[str, Cell | None]) -> str:
    """Say which points stand highest and lowest of one panel."""
    known = [(name, cell) for name, cell in cells.items() if cell is not None and cell.available]
    known = [known[at] for at in highest_first([cell.value for _, cell in known])]
    ends = [("", known)]
    if len(known) > _MAX_NAMED:
        ends = [("highest", known[:3]), ("lowest", known[-1:])]
    parts = []
    for word, some in ends:
        listed = ", ".join(
            f"{name} {interval_text(cell.value, cell.low, cell.high)}" for name, cell in some
        )
        parts += [f"{word} {listed}".strip()] if listed else []
    return "; ".join(parts) or "nothing measured"


def cell_columns(cell: Cell) -> dict[str, object]:
    """Return a cell's number, its interval and what stands behind it, as columns of a CSV file."""
    names = ("value", "low", "high", "n_members", "n_nonmembers", "n_seeds")
    return {name: getattr(cell, name) for name in names}
