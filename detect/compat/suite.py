"""A public suite: which of its detectors are computed as it does, and how these differ from ours.

Only differences that were read in a suite's code are here; what is known to differ and is not
reproduced is said. The suites' detectors are functions of the same token statistics as ours: one
pass serves both numbers.
"""

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from detect.access import Access
from detect.detector import Detector, NoParameters, one_score
from detect.detector_settings import DetectorSetting, parse_detectors
from detect.detectors.loss import mean_log_probability
from detect.evidence import ExampleEvidence
from detect.needs import View
from detect.registry import KnownDetector
from detect.token_statistics import TokenStatistics
from detect.views import TEXT

FewTokens = Callable[[int], int]
"""How many of so many tokens are selected."""


@dataclass(frozen=True, kw_only=True)
class SuiteDetector:
    """One detector of a suite, and ours beside it."""

    name: str
    """As the suite calls it."""
    score: Callable[[TokenStatistics, str], float | str]
    """The suite's number, larger = member; a text says why it has none."""
    ours: str
    """The detector and setting that stand beside it, such as `min_k:k=0.2`."""
    difference: str
    """What the suite does otherwise; empty where nothing was found."""
    access: Access = Access.TOKENS


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A public suite."""

    name: str
    """What `--compat` calls it."""
    repository: str
    files: Mapping[str, str]
    """The files of its code that were read, each with the commit that it was read at."""
    detectors: tuple[SuiteDetector, ...]
    not_reproduced: tuple[str, ...]
    """What it does otherwise and is not done here."""

    def settings(self) -> list[DetectorSetting]:
        """Return its detectors, each called `SUITE.NAME`, as they are scored."""
        return [
            DetectorSetting(known=self._known(one), parameters=NoParameters())
            for one in self.detectors
        ]

    def corrected(self) -> list[DetectorSetting]:
        """Return ours, in the same order."""
        return [parse_detectors(one.ours)[0] for one in self.detectors]

    def scored_name(self, one: SuiteDetector) -> str:
        """Return the name that a detector has in tables."""
        return f"{self.name}.{one.name}"

    def _known(self, one: SuiteDetector) -> KnownDetector:
        def score(example: ExampleEvidence) -> float | str:
            return one.score(example.statistics[TEXT], example.text)

        detector = Detector(
            name=self.scored_name(one),
            summary=f"{one.name} as {self.repository} computes it",
            source=f"github {self.repository}",
            needs=(View(TEXT),),
            access=one.access,
            score=one_score(score),
        )
        return KnownDetector(detector=detector, origin=f"suite {self.name}", code=())


def float_floor(share: float) -> FewTokens:
    """Return `int(n * share)` as Python computes it on floats: 0.29 of 100 is 28."""
    return lambda count: int(count * share)


def per_cent_floor(per_cent: int) -> FewTokens:
    """Return `int(k / 100 * n)` on floats."""
    return lambda count: int(per_cent / 100 * count)


def at_least_one(few: FewTokens) -> FewTokens:
    """Return the same, and 1 in place of 0."""
    return lambda count: max(1, few(count))


def loss(statistics: TokenStatistics, text: str) -> float:
    """Return the mean log-probability."""
    return mean_log_probability(statistics)


def zlib_over_bytes(statistics: TokenStatistics, text: str) -> float:
    """Return mean ℓ over the bytes of the compressed text."""
    return mean_log_probability(statistics) / len(zlib.compress(bytes(text, "utf-8")))


def zlib_over_ratio(statistics: TokenStatistics, text: str) -> float:
    """Return mean ℓ over compressed bytes per character."""
    return mean_log_probability(statistics) / (len(zlib.compress(text.encode())) / len(text))


def min_k(few: FewTokens) -> Callable[[TokenStatistics, str], float | str]:
    """Return Min-K with a rule for the number of tokens."""

    def score(statistics: TokenStatistics, text: str) -> float | str:
        return _mean_of_lowest(statistics.log_probability.astype(np.float64), few)

    return score


def min_k_plus_plus(few: FewTokens) -> Callable[[TokenStatistics, str], float | str]:
    """Return Min-K++ with a rule for the number of tokens; the variance has no lower bound."""

    def score(statistics: TokenStatistics, text: str) -> float | str:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = (
                statistics.log_probability.astype(np.float64) - statistics.mean
            ) / statistics.deviation
        return _mean_of_lowest(values, few)

    return score


def _mean_of_lowest(values: npt.NDArray[np.float64], few: FewTokens) -> float | str:
    count = few(len(values))
    if not count:
        return f"{len(values)} tokens: the suite's mean of none is not a number"
    found = float(np.sort(values)[:count].mean())
    return found if math.isfinite(found) else "the suite divides by a deviation of 0"
