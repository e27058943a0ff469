"""Claims of a study: hypotheses, each with the comparison and the margin that decide it.

They are written in the experiment file before it runs. They are recorded with their design when the
run starts, so a later change is refused. They affect no training and no score.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from math import log2
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from inject.digest import digest
from inject.errors import InputError, did_you_mean
from inject.settings import PositiveFloat, Settings

Names = Annotated[tuple[str, ...], Field(min_length=1)]
Copies = Annotated[int, Field(ge=0)]
Design = Mapping[str, Mapping[str, float]]
"""By arm, log2 of the values of the design's columns."""
RECORD_FORMAT = 2
"""Before it, a record had only the claims, and there was none without any."""
_FORMS = ("contrast", "effect", "spread")
_MARGINS = {"auc": 0.03, "probit": 0.03, "dose75": log2(1.4), "spread": 0.05}


def _check_distinct(key: str, names: tuple[str, ...]) -> None:
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{key}: {repeated[0]!r} is given twice")


class Effect(Settings):
    """The effect of one column of the design: its coefficient in a line through the arms."""

    of: str
    """One of `columns`."""
    columns: Names
    """Numeric columns of the design, whose logarithms, with a constant, are fitted by least squares
    in each seed."""
    factor: Annotated[float, Field(gt=1)] = 4.0
    """The change of the column for which the effect is reported: `4` for a fourfold value."""
    arms: tuple[str, ...] = ()
    """The arms to which the line is fitted; empty for all."""

    @model_validator(mode="after")
    def _names_columns(self) -> "Effect":
        if self.of not in self.columns:
            raise ValueError(f"of: {self.of!r} is not one of columns: {', '.join(self.columns)}")
        if any("/" in arm for arm in self.arms):
            raise ValueError("arms: a line is fitted to whole arms, not to one of their datasets")
        _check_distinct("arms", self.arms)
        return self

    def weights(self, design: Design) -> dict[str, float]:
        """Return the weight of each arm in the effect, of a design of full rank."""
        # Late: the command line reads experiment files without numpy.
        import numpy as np

        arms = self.arms or tuple(design)
        rows = [[1.0, *(design[arm][name] for name in self.columns)] for arm in arms]
        coefficient = np.linalg.pinv(np.array(rows))[1 + self.columns.index(self.of)]
        return dict(zip(arms, (log2(self.factor) * coefficient).tolist(), strict=True))


class Claim(Settings):
    """One hypothesis, with exactly one of contrast, effect and spread."""

    hypothesis: Annotated[str, Field(min_length=1)]
    """The expected result, in a sentence."""
    detectors: Names = ("min_k", "reference")
    """Its detectors, each once, with the default setting."""
    measure: Literal["auc", "probit", "dose75"] = "auc"
    """What is compared: `auc`; `probit`, the probit of AUC, reported as a change from AUC 0.70;
    `dose75`, the log2 of the copies at which AUC reaches 0.75."""
    copies: tuple[Copies, Copies] | None = None
    """The fewest and the most copies of the members compared; null for all with a copy."""
    contrast: dict[str, float] | None = None
    """Weights by arm, or by `ARM/DATASET` for the rows of one dataset, that sum to 0, such as
    `{large: 1, small: -1}`."""
    effect: Effect | None = None
    """The effect of one column of the design."""
    spread: str | None = None
    """An arm, for the standard deviation of its true AUC over seeds instead of a comparison."""
    margin: PositiveFloat | None = None
    """The smallest effect that matters, in units of the measure, or the upper limit of a spread;
    null: 0.03, for `dose75` 0.485 (a factor of 1.4), for a spread 0.05."""

    @model_validator(mode="after")
    def _is_consistent(self) -> "Claim":
        forms = [form for form in _FORMS if getattr(self, form) is not None]
        if len(forms) != 1:
            keys = ", ".join(forms) or "none"
            raise ValueError(f"give exactly one of {', '.join(_FORMS)}; got {keys}")
        if self.copies is not None and self.copies[0] > self.copies[1]:
            raise ValueError(f"copies: [{self.copies[0]}, {self.copies[1]}] is empty")
        if self.measure == "dose75" and self.copies is not None:
            raise ValueError("copies: dose75 is made of all copy counts; remove copies")
        if self.spread is not None and self.measure != "auc":
            raise ValueError("measure: a spread is the deviation of AUC; remove measure")
        weights = [1.0, -1.0] if self.contrast is None else [*self.contrast.values()]
        if abs(sum(weights)) > 1e-6 or not any(weights):
            raise ValueError(f"contrast: weights must sum to 0, not all of them 0; got {weights}")
        if unused := [term for term, weight in (self.contrast or {}).items() if not weight]:
            raise ValueError(f"contrast: {unused[0]!r} has the weight 0; remove it")
        _check_distinct("detectors", self.detectors)
        return self

    @property
    def form(self) -> str:
        """The key that gives the comparison."""
        return next(form for form in _FORMS if getattr(self, form) is not None)

    @property
    def least_effect(self) -> float:
        """The margin, with its default."""
        return self.margin or _MARGINS["spread" if self.spread else self.measure]

    @property
    def comparison(self) -> str:
        """What is compared, such as `large − small`."""
        if self.effect is not None:
            return f"{self.effect.of} × {self.effect.factor:g}"
        parts = [
            f"{'−' if weight < 0 else '+'} {'' if abs(weight) == 1 else f'{abs(weight):g} '}{term}"
            for term, weight in self.weights({}).items()
        ]
        return " ".join(parts).removeprefix("+ ")

    def weights(self, design: Design) -> dict[str, float]:
        """Return the weights of arms, some with a dataset.

        Args:
            design: of an effect; otherwise unused.
        """
        if self.effect is not None:
            return self.effect.weights(design)
        return {self.spread: 1.0} if self.spread else dict(self.contrast or {})


Claims = Mapping[str, Claim]


def split_term(term: str) -> tuple[str, str | None]:
    """Return the arm and the dataset of a term; None for all datasets."""
    arm, _, dataset = term.partition("/")
    return arm, dataset or None


def plain_claims(claims: Claims) -> dict[str, Any]:
    """Return claims as plain JSON values, without nulls."""
    return {
        name: claim.model_dump(mode="json", exclude_none=True) for name, claim in claims.items()
    }


def claims_record(claims: Claims, design: Mapping[str, Any]) -> dict[str, Any]:
    """Return claims with the design that they are decided by, as plain JSON values.

    Args:
        claims: of the experiment; empty if it has none, and the design is then free.
        design: plain values by key.
    """
    return {
        "format": RECORD_FORMAT,
        "claims": plain_claims(claims),
        "design": dict(design) if claims else {},
    }


def claims_digest(claims: Claims, design: Mapping[str, Any]) -> str | None:
    """Return the digest of claims and their design; None without any claims."""
    return digest(claims_record(claims, design)) if claims else None


def claim_problems(
    claims: Claims, arms: Collection[str], datasets: Collection[str], detectors: Collection[str]
) -> Iterator[tuple[tuple[str, str], InputError]]:
    """Yield each name in a claim that the experiment lacks, with the claim's name and key.

    Args:
        claims: of the experiment.
        arms, datasets, detectors: the names in the experiment.
    """
    for name, claim in claims.items():
        terms = claim.effect.arms if claim.effect else tuple(claim.weights({}))
        pairs = [split_term(term) for term in terms]
        places = [dataset for _, dataset in pairs if dataset is not None]
        for key, kind, used, allowed in (
            (claim.form, "arm", [arm for arm, _ in pairs], arms),
            (claim.form, "dataset", places, datasets),
            ("detectors", "detector", claim.detectors, detectors),
        ):
            for unknown in (each for each in used if each not in allowed):
                problem = (
                    f"the experiment has no {kind} {unknown!r}.{did_you_mean(unknown, allowed)}"
                )
                yield (name, key), InputError(problem, allowed=", ".join(allowed) or None)
        if not arms:
            hint = "Give `arms`, not `sweep`."
            yield (name, claim.form), InputError("claims are about named arms", hint=hint)
