"""A value with its interval, its sample size, and its caveats."""

from collections.abc import Mapping
from math import isfinite, nan
from typing import Any, NamedTuple


class Estimate(NamedTuple):
    """A value with its interval and sample size; the ends are NaN if there is none."""

    value: float
    low: float
    high: float
    about: str = ""
    """The models that the interval applies to (`any seed`, `this model`) and `; ` cautions;
    or `none: ` and why there is no value or no interval."""
    members: int = 0
    """Rows that the number is of, summed over seeds."""
    nonmembers: int = 0
    """Rows that they are compared with, counted in the same way."""
    groups: int = 0
    """Different groups of the members over all seeds."""
    seeds: int = 0
    """Seeds that have a value."""
    seed_low: float = nan
    """The lowest of the seeds' values; of two seeds this and the next are both."""
    seed_high: float = nan

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Estimate":
        """Return the number of a row of findings."""
        return cls(
            value=row["value"],
            low=row["low"],
            high=row["high"],
            about=row.get("interval", ""),
            members=row.get("n_members", 0),
            nonmembers=row.get("n_nonmembers", 0),
            seeds=row.get("n_seeds", 0),
            seed_low=row.get("seed_low", nan),
            seed_high=row.get("seed_high", nan),
        )

    @property
    def reason(self) -> str | None:
        """Why there is no value, or no interval."""
        scope = self.about.partition("; ")[0]
        return scope.removeprefix("none: ") if scope.startswith("none: ") else None

    @property
    def caution(self) -> str | None:
        """Why the interval is not to be trusted, or its narrower scope."""
        return self.about.partition("; ")[2] or None

    @property
    def note(self) -> str:
        """The reason for its absence, or its caution, without the scope, which the seeds imply."""
        return self.about if self.about.startswith("none") else self.caution or ""

    @property
    def available(self) -> bool:
        """Whether there is a number with an interval."""
        return isfinite(self.value) and isfinite(self.low) and isfinite(self.high)

    def contains(self, value: float) -> bool:
        """Whether the interval contains `value`."""
        return self.low <= value <= self.high

    def text(self, digits: int = 2) -> str:
        """Return `0.79 [0.75, 0.82]`."""
        ends = f"[{self.low:.{digits}f}, {self.high:.{digits}f}]"
        return f"{self.value:.{digits}f} {ends if isfinite(self.low) else '(no interval)'}"

    def around(self, value: float) -> "Estimate":
        """Return an estimate at another value, its interval reaching as far as that."""
        if not isfinite(value):
            nothing = no_estimate("no value")._replace(value=value)
            return nothing._replace(**{name: getattr(self, name) for name in self._fields[4:8]})
        return self._replace(value=value, low=min(self.low, value), high=max(self.high, value))

    def said(self, about: str, *cautions: str | None) -> "Estimate":
        """Return an estimate with other words: its scope or `none: ` and the reason, cautions."""
        return self._replace(about="; ".join(filter(None, (about, *cautions))))

    def measures(self) -> dict[str, float | str]:
        """Return its columns in tables of findings."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "seed_low": self.seed_low,
            "seed_high": self.seed_high,
            "interval": self.about,
        }

    def counts(self) -> dict[str, int]:
        """Return its numbers of rows and seeds, by the columns of findings tables."""
        return {"n_members": self.members, "n_nonmembers": self.nonmembers, "n_seeds": self.seeds}

    def row(self) -> dict[str, float | str]:
        """Return both; what `of` reads again."""
        return {**self.measures(), **self.counts()}

    def columns(self) -> dict[str, float | str | None]:
        """Return its entries in files and `--json`."""
        ends = {"value": self.value, "low": self.low, "high": self.high}
        return {**ends, "reason": self.reason, "caution": self.caution}


def no_estimate(reason: str) -> Estimate:
    """Return an empty estimate with the reason for its absence."""
    return Estimate(nan, nan, nan, f"none: {reason}")
