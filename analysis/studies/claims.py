"""Claims of a study: hypotheses, each with the comparison and the margin that decide it.

They are written in the experiment file before it runs. Their digest is recorded when the run
starts, so a later change is refused. They affect no training and no score.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import log2
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from inject.digest import digest
from inject.errors import InputError, did_you_mean
from inject.settings import PositiveFloat, Settings

Measure = Literal["auc", "probit", "dose75"]
Term = str
"""`ARM`, or `ARM/DATASET` for the rows of one dataset."""
Design = Mapping[str, Mapping[str, float]]
"""The columns' values, on a log2 scale, by arm."""


class Effect(Settings):
    """The effect of one column of the design: its coefficient in a line through the arms."""

    of: str
    """One of `columns`."""
    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    """Columns of the design, fitted together with a constant by least squares in each seed."""
    factor: Annotated[float, Field(gt=1)] = 4.0
    """The change of the column that the effect is reported for: `4` for a fourfold value."""
    arms: tuple[str, ...] = ()
    """The arms that the line is fitted to; empty for all of them."""

    @model_validator(mode="after")
    def _names_columns(self) -> "Effect":
        if self.of not in self.columns:
            raise ValueError(f"of: {self.of!r} is not one of columns: {', '.join(self.columns)}")
        for key, names in (("columns", self.columns), ("arms", self.arms)):
            if len(set(names)) < len(names):
                raise ValueError(f"{key}: a name is given twice")
        return self

    def weights(self, design: Design) -> dict[Term, float]:
        """Return the weight of each arm in the effect; the design has full rank."""
        # Late: the command line reads experiment files without numpy.
        import numpy as np

        arms = self.arms or tuple(design)
        columns = [[1.0, *(design[arm][name] for name in self.columns)] for arm in arms]
        coefficient = np.linalg.pinv(np.array(columns))[1 + self.columns.index(self.of)]
        scaled = log2(self.factor) * coefficient
        return dict(zip(arms, scaled.tolist(), strict=True))


class Spread(Settings):
    """The standard deviation of one arm's true AUC over seeds."""

    arm: str
    """The arm."""
    limit: PositiveFloat = 0.05
    """The claim is answered if the upper end of the interval is below this."""


class Claim(Settings):
    """One hypothesis, with exactly one of contrast, high and low, effect, and spread."""

    hypothesis: Annotated[str, Field(min_length=1)]
    """The expected result, in a sentence."""
    detectors: Annotated[tuple[str, ...], Field(min_length=1)] = ("min_k", "reference")
    """The detectors that it is about, each with its default setting."""
    measure: Measure = "auc"
    """What is compared: `auc`; `probit`, the probit of AUC, reported as a change from AUC 0.70;
    `dose75`, the log2 of the copies at which AUC reaches 0.75."""
    copies: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | None = None
    """The fewest and the most copies of the members compared; null for all with a copy."""
    contrast: dict[Term, float] | None = None
    """Weights that sum to 0, by arm, or by `ARM/DATASET` for the rows of one dataset."""
    high: Term | None = None
    """With `low`: short for the contrast `high` minus `low`."""
    low: Term | None = None
    """The arm that `high` is compared with."""
    effect: Effect | None = None
    """The effect of one column of the design."""
    spread: Spread | None = None
    """The standard deviation over seeds, instead of a comparison."""
    margin: PositiveFloat | None = None
    """The smallest effect that matters, in units of the measure; null for 0.03, or for 0.485
    (a factor of 1.4) if the measure is `dose75`."""

    @model_validator(mode="after")
    def _one_comparison(self) -> "Claim":
        if (self.high is None) != (self.low is None):
            raise ValueError("give high and low together, or neither")
        forms = [
            form
            for form in ("contrast", "high", "effect", "spread")
            if getattr(self, form) is not None
        ]
        if len(forms) != 1:
            given = ", ".join(forms) or "none"
            raise ValueError(f"give exactly one of contrast, high, effect, spread; got {given}")
        if self.copies is not None and self.copies[0] > self.copies[1]:
            raise ValueError(f"copies: [{self.copies[0]}, {self.copies[1]}] is empty")
        if self.measure == "dose75" and (self.copies is not None or self.spread is not None):
            raise ValueError("dose75 is made of all copy counts: remove copies and spread")
        if self.spread is not None and self.measure != "auc":
            raise ValueError("spread is the deviation of AUC: remove measure")
        if len(set(self.detectors)) < len(self.detectors):
            raise ValueError("detectors: a name is given twice")
        return self

    @model_validator(mode="after")
    def _check_weights(self) -> "Claim":
        weights = [] if self.contrast is None else [*self.contrast.values()]
        if self.contrast is not None and not any(weights):
            raise ValueError("contrast: every weight is 0")
        if abs(sum(weights)) > 1e-6:
            raise ValueError(f"contrast: the weights sum to {sum(weights):g}; they must sum to 0")
        if self.high is not None and self.high == self.low:
            raise ValueError(f"high and low are both {self.high!r}")
        return self

    @property
    def least_effect(self) -> float:
        """The margin, with its default."""
        if self.margin is not None:
            return self.margin
        return 0.485 if self.measure == "dose75" else 0.03

    @property
    def form(self) -> str:
        """The key that gives the comparison."""
        forms = ("contrast", "high", "effect", "spread")
        return next(form for form in forms if getattr(self, form) is not None)

    @property
    def comparison(self) -> str:
        """What is compared, such as `m4 − m1`."""
        if self.effect is not None:
            return f"{self.effect.of} × {self.effect.factor:g}"
        if self.spread is not None:
            return self.spread.arm
        parts = [
            f"{'−' if weight < 0 else '+'} {'' if abs(weight) == 1 else f'{abs(weight):g} '}{term}"
            for term, weight in self.weights({}).items()
        ]
        return " ".join(parts).removeprefix("+ ")

    @property
    def terms(self) -> tuple[Term, ...]:
        """The arms that it names, some with a dataset; an effect may name none, for all."""
        if self.effect is not None:
            return self.effect.arms
        if self.spread is not None:
            return (self.spread.arm,)
        return tuple(self.contrast or (term for term in (self.high, self.low) if term))

    def weights(self, design: Design) -> dict[Term, float]:
        """Return the weights of the comparison.

        Args:
            design: of an effect; otherwise unused.
        """
        if self.effect is not None:
            return self.effect.weights(design)
        return dict(self.contrast or {str(self.high): 1.0, str(self.low): -1.0})


Claims = Mapping[str, Claim]


def split_term(term: Term) -> tuple[str, str | None]:
    """Return the arm and the dataset of a term; None for all datasets."""
    arm, _, dataset = term.partition("/")
    return arm, dataset or None


def plain_claims(claims: Claims) -> dict[str, Any]:
    """Return claims as plain JSON values, without nulls."""
    return {
        name: claim.model_dump(mode="json", exclude_none=True) for name, claim in claims.items()
    }


def claims_digest(claims: Claims) -> str:
    """Return the digest of claims."""
    return digest(plain_claims(claims))


def claim_problems(
    claims: Claims, arms: Collection[str], datasets: Collection[str], detectors: Sequence[str]
) -> Iterator[tuple[tuple[str, str], InputError]]:
    """Yield what claims name that the experiment lacks, each with the claim's name and key.

    Args:
        claims: of the experiment.
        arms: the names of its arms.
        datasets: the names of its datasets.
        detectors: the names of those that score.
    """
    named = "; ".join(sorted(arms)) or "none: give `arms` in place of `sweep`"
    for name, claim in claims.items():
        key = claim.form
        for arm, dataset in map(split_term, claim.terms):
            if arm not in arms:
                yield (
                    (name, key),
                    InputError(
                        f"no arm is called {arm!r}.{did_you_mean(arm, arms)}", allowed=named
                    ),
                )
            elif dataset is not None and dataset not in datasets:
                text = f"no dataset is called {dataset!r}.{did_you_mean(dataset, datasets)}"
                yield (name, key), InputError(text, allowed=", ".join(datasets))
        if claim.effect is not None and not arms:
            yield (name, key), InputError("an effect compares the arms of `arms`", allowed=named)
        for detector in claim.detectors:
            if detector not in detectors:
                text = f"{detector!r} does not score here.{did_you_mean(detector, detectors)}"
                yield (
                    (name, "detectors"),
                    InputError(
                        text, allowed=", ".join(detectors), hint="Add it to `detect.detectors`."
                    ),
                )
