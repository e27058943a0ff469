"""The tables of `spikein plan --power`: what is assumed, and what so many seeds can see."""

from typing import TYPE_CHECKING

from spikein.cli.output import print_table, say, with_noun

if TYPE_CHECKING:
    from spikein.api.power import PowerResult

_WORDS = {
    "delta": "difference of two arms that is looked for",
    "auc": "AUC of the arm that is looked at",
    "seed_deviation": "standard deviation of the true AUC over seeds",
    "correlation": "correlation of two arms by their rows",
    "seed_correlation": "correlation of two arms by their seeds",
    "shared": "part of the rows' variance that all seeds share",
    "design_effect": "variance over that of independent rows (groups)",
    "nonmembers_per_member": "non-members for each tested member",
    "confidence": "confidence of the interval",
}


def print_power(result: "PowerResult") -> None:
    """Print both tables and a sentence."""
    values = {"delta": result.delta, **vars(result.assumed)}
    print_table(
        ("assumed", "value", "what", "from"),
        ((name, f"{values[name]:.3g}", _WORDS[name], result.sources[name]) for name in _WORDS),
    )
    say("")
    auc, delta = f"AUC {result.assumed.auc:g}", f"{result.delta:g}"
    print_table(
        (
            "seeds",
            f"power: {auc} against 0.5",
            f"power: difference {delta}",
            "AUC seen",
            "difference seen",
            f"members for {auc}",
            f"members for {delta}",
        ),
        (
            (
                row.seeds,
                f"{row.auc_power:.0%}",
                f"{row.difference_power:.0%}",
                _number(row.seen_auc),
                _number(row.seen_difference),
                _count(row.needed_for_auc),
                _count(row.needed_for_difference),
            )
            for row in result.rows
        ),
    )
    say(
        f"{result.name}: {result.members:,} members in the file, of which about "
        f"{result.tested:,.0f} are tested and have a copy; {with_noun(result.seeds, 'seed')}. Seen "
        "and needed: with 80 % power. Members: in the file, all datasets together, non-members in "
        "proportion; none: the seeds differ too much for any number."
    )
    say(
        "With one seed or two the interval speaks of the models at hand, so those rows hold no "
        "doubt about other seeds. Other values: --assume KEY=VALUE, --from RUN. Nothing was run."
    )


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _count(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"
