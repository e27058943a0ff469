"""Coverage of the audit's intervals: one line per case in a file, a table on the page.

python -m scripts.calibration.unlearning_audit            # 1,000 studies per case: minutes
python -m scripts.calibration.unlearning_audit --studies 100 --print

Chunks are simulated by a latent normal number: chunks of one text share a part of it, and
neighbours in a book follow an autoregression. The audit's own functions make every interval. A case
outside of 92 to 97.5 % is simulated again with ten times as many new studies, and only these
are written.
The file is docs/data/unlearning-audit-coverage.csv; docs/unlearning.md sums it up.
"""

import argparse
import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from analysis.copy_bins import ALL
from analysis.intervals.estimate import Estimate
from analysis.unlearning_audit.audit import rows_of, share_rows
from analysis.unlearning_audit.checks import LEAST, LOSS_RUN
from analysis.unlearning_audit.evidence import AUDITED
from analysis.unlearning_audit.rule import calibrated_band
from analysis.unlearning_audit.shares import (
    Clusters,
    ControlOverlap,
    clusters_of,
    difference,
    mean,
    share,
    share_missed,
    written_of,
)
from inject.examples.example import Example
from inject.keyed import Stream, generator, item_key
from scripts.calibration.coverage import HIGH, LOW, Coverage, settled

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "unlearning.md"
FILE = DOCS / "data" / "unlearning-audit-coverage.csv"
BEGIN = "<!-- coverage: written by python -m scripts.calibration.unlearning_audit -->"
END = "<!-- end of coverage -->"
SHARED = 0.3
"""Part of a chunk's latent number that all chunks of its text share."""
CARRIED = 0.5
"""Correlation of the latent numbers of neighbours in a book."""
SHARES = (0.05, 0.2, 0.5, 0.9)
RATE = 0.05
SKEW = 0.3
"""Deviation of the logarithm of a lognormal loss; its skewness is 1."""
BY_SEED = 0.1
"""Part of a text's latent number that all texts of one training seed share."""

Floats = npt.NDArray[np.float64]
Random = np.random.Generator


class Case(NamedTuple):
    """One line of a table: its name, and a study of it."""

    name: str
    study: Callable[[Random], tuple[Estimate, float]]
    """Draws one study; returns its estimate and the truth."""


def coverage_of(case: Case, studies: int, draw: str = "") -> Coverage:
    """Return the coverage of a case's intervals."""
    random = generator(0, Stream.BOOTSTRAP, item_key(f"unlearning audit {case.name}{draw}"))
    n_covered = n_intervals = 0
    for _ in range(studies):
        estimate, truth = case.study(random)
        if np.isfinite(estimate.low):
            n_intervals += 1
            n_covered += estimate.low <= truth <= estimate.high
    return Coverage(n_covered, n_intervals, studies)


def texts(count: int, each: int) -> list[Example]:
    """Return chunks of several texts."""
    names = [f"text {at // each}" for at in range(count * each)]
    return [
        Example(example_id=str(at), dataset=AUDITED, source_id=name, group=name, text="")
        for at, name in enumerate(names)
    ]


def latent(random: Random, chunks: list[Example]) -> Floats:
    """Return a standard normal number per chunk, correlated within texts and by place in a book."""
    names = [chunk.source_id for chunk in chunks]
    count = len(set(names))
    each = len(chunks) // count
    noise = random.standard_normal((count, each))
    if count < 15 and each > 1:
        for at in range(1, each):
            noise[:, at] = CARRIED * noise[:, at - 1] + sqrt(1 - CARRIED**2) * noise[:, at]
        return noise.ravel()
    own = random.standard_normal((count, 1))
    shared = SHARED if each > 1 else 0.0
    return (sqrt(shared) * own + sqrt(1 - shared) * noise).ravel()


def share_cases() -> Iterator[Case]:
    """Yield shares of chunks, of many texts and of one book."""
    designs = [(15, 1), (40, 1), (15, 5), (40, 5), (200, 5), (1, 80), (1, 250), (4, 250)]
    for count, each in designs:
        chunks = texts(count, each)
        clusters = clusters_of(chunks)
        for truth in SHARES:
            yield Case(
                f"{described(count, each)}, {100 * truth:g} %",
                partial(_share, chunks=chunks, clusters=clusters, truth=truth),
            )


def missed_cases() -> Iterator[Case]:
    """Yield the share of remembered chunks that the rule misses, of all chunks and of a sample."""
    for count, each in ((100, 1), (300, 1), (100, 5), (4, 250)):
        for known_share in (0.2, 0.5):
            for truth in (0.1, 0.5):
                for others in (None, 50):
                    name = (
                        f"{described(count, each)}, {100 * known_share:g} % remembered, "
                        f"{100 * truth:g} % of these missed, "
                        f"{'all' if others is None else f'{others} others'}"
                    )
                    yield Case(
                        name,
                        partial(
                            _missed,
                            chunks=texts(count, each),
                            rates=(known_share, truth),
                            others=others,
                        ),
                    )


def difference_cases() -> Iterator[Case]:
    """Yield differences of recall between kept questions and the rest."""
    for count in (60, 250, 1000):
        for retained in (0.1, 0.5):
            for gap in (0.0, 0.13):
                name = f"{count:,} questions, {100 * retained:g} % kept, difference {gap:g}"
                yield Case(name, partial(_difference, count=count, retained=retained, gap=gap))


def loss_cases() -> Iterator[Case]:
    """Yield differences of losses: of two models on the same chunks, of one on two kinds of texts.

    A difference of two models is skewed (lognormal, skewness 1), a level of one model is not.
    """
    for count, each in ((5, 1), (8, 1), (15, 1), (40, 1), (15, 5), (1, 40), (1, 80), (1, 250)):
        chunks = texts(count, each)
        for paired in (True, False):
            name = "the same chunks" if paired else "two kinds of texts"
            yield Case(
                f"{described(count, each)}, {name}", partial(_loss, chunks=chunks, paired=paired)
            )


def edge_cases() -> Iterator[Case]:
    """Yield the upper edge of the calibrated band against the ratios' true quantile."""
    for count, each in ((40, 1), (100, 1), (300, 1), (100, 5), (1, 250), (4, 250)):
        yield Case(described(count, each), partial(_edge, chunks=texts(count, each)))


def pooled_cases() -> Iterator[Case]:
    """Yield shares over three seeds: of all texts of an audit, and of the few that count."""
    for count, each in ((48, 1), (16, 1), (24, 2), (8, 1)):
        for by_seed in (0.0, BY_SEED):
            for truth in SHARES:
                texts_of = f"{count} texts" if each == 1 else f"{count} groups of {each}"
                differing = " that differ" if by_seed else ""
                yield Case(
                    f"3 seeds{differing}, {texts_of}, {100 * truth:g} %",
                    partial(_pooled, count=count, each=each, by_seed=by_seed, truth=truth),
                )


def described(count: int, each: int) -> str:
    """Return a design in words."""
    if count < 15 and each > 1:
        return f"{count} {'book' if count == 1 else 'books'} of {each} chunks"
    return f"{count} texts of {each}" if each > 1 else f"{count} texts"


def _share(
    random: Random, *, chunks: list[Example], clusters: Clusters, truth: float
) -> tuple[Estimate, float]:
    flags = latent(random, chunks) < norm.ppf(truth)
    return share(flags.astype(float), clusters), truth


def _pooled(
    random: Random, *, count: int, each: int, by_seed: float, truth: float
) -> tuple[Estimate, float]:
    shared = SHARED if each > 1 else 0.0
    # The same groups are in each seed, and a group is alike in all of them.
    own = np.repeat(random.standard_normal(count), each)
    chunks, values = [], []
    for seed in range(3):
        noise = random.standard_normal(count * each)
        latents = sqrt(shared) * own + sqrt(1 - shared - by_seed) * noise
        latents += sqrt(by_seed) * random.standard_normal()
        values.append((latents < norm.ppf(truth)).astype(float))
        chunks += [{"seed": seed, "group": f"group {at // each}"} for at in range(len(latents))]
    all_chunks = np.ones(len(chunks), dtype=bool)
    (row,) = share_rows(rows_of(chunks), np.concatenate(values), {ALL: all_chunks})
    return Estimate(row["value"], row["low"], row["high"]), truth


def _missed(
    random: Random, *, chunks: list[Example], rates: tuple[float, float], others: int | None
) -> tuple[Estimate, float]:
    known_rate, truth = rates
    is_known = latent(random, chunks) < norm.ppf(known_rate)
    # A tenth of the chunks that are not remembered is also flagged.
    flagged = np.where(
        is_known,
        latent(random, chunks) > norm.ppf(truth),
        random.random(len(chunks)) < 0.1,
    )
    continued = np.ones(len(chunks), dtype=bool)
    unflagged = np.flatnonzero(~flagged)
    if others is not None and others < len(unflagged):
        continued[unflagged] = False
        continued[random.choice(unflagged, others, replace=False)] = True
    level, clusters = ControlOverlap(0.0, 100, ""), clusters_of(chunks)
    written = written_of(is_known.astype(float), flagged, continued, level, clusters)
    return share_missed(written, flagged), truth


def _difference(
    random: Random, *, count: int, retained: float, gap: float
) -> tuple[Estimate, float]:
    side = np.zeros(count, bool)
    side[: max(int(retained * count), 3)] = True
    values = random.beta(0.5, 4.5, count) + gap * side
    clusters = Clusters(tuple(str(at) for at in range(count)))
    return difference(values, side.tolist(), clusters), gap


def _loss(random: Random, *, chunks: list[Example], paired: bool) -> tuple[Estimate, float]:
    clusters = clusters_of(chunks, least_run=LOSS_RUN)
    own, truth = np.exp(SKEW * latent(random, chunks)), float(np.exp(SKEW**2 / 2))
    if paired:
        return mean(own, clusters, least=LEAST), truth
    others = 2 + 0.3 * latent(random, chunks)
    both = Clusters((*clusters.names, *(f"control {name}" for name in clusters.names)))
    side = [True] * len(own) + [False] * len(others)
    return difference(np.concatenate([own, others]), side, both, least=LEAST), truth - 2


def _edge(random: Random, *, chunks: list[Example]) -> tuple[Estimate, float]:
    ratios = np.exp(0.3 + 0.2 * latent(random, chunks))
    _, edge, _ = calibrated_band(ratios, clusters_of(chunks), 0.1, RATE)
    return edge, float(np.exp(0.3 + 0.2 * norm.ppf(RATE)))


def realised(count: int, each: int, studies: int) -> tuple[float, float]:
    """Return the mean false-positive rates of new chunks and of cross-fitting."""
    chunks = texts(count, each)
    clusters = clusters_of(chunks)
    random = generator(0, Stream.BOOTSTRAP, item_key(f"unlearning audit edges {count} {each}"))
    real, claimed = [], []
    for _ in range(studies):
        band, _, alarms = calibrated_band(np.exp(latent(random, chunks)), clusters, 0.0, RATE)
        if band is not None:
            real.append(norm.cdf(np.log(band.high)))
            claimed.append(alarms.value)
    return float(np.mean(real)), float(np.nanmean(claimed))


class Line(NamedTuple):
    """One line of the file, as text."""

    table: str
    case: str
    coverage: str
    """Share of the intervals that contain the truth; empty if no study has one."""
    refused: str
    """Share of the studies without an interval."""
    studies: str


TABLES: dict[str, Callable[[], Iterator[Case]]] = {
    "share of chunks": share_cases,
    "share over three seeds": pooled_cases,
    "remembered and not flagged": missed_cases,
    "kept questions less the rest": difference_cases,
    "difference of losses": loss_cases,
    "calibrated edge": edge_cases,
}


def lines(studies: int) -> Iterator[Line]:
    """Simulate all cases."""
    for table, cases in TABLES.items():
        for case in cases():
            cell = settled(partial(coverage_of, case, studies))
            covered_text = f"{cell.share:.3f}" if cell.given else ""
            refused = f"{1 - cell.given / cell.studies:.3f}"
            yield Line(table, case.name, covered_text, refused, str(cell.studies))


def read_lines(file: Path = FILE) -> list[Line]:
    """Return the lines of the file."""
    with file.open(encoding="utf-8", newline="") as opened:
        return [Line(*line) for line in list(csv.reader(opened))[1:]]


def summary(results: Sequence[Line]) -> str:
    """Return the page's table: one line per kind of interval, coverage in percent."""
    rows = [
        "| interval | cases | lowest | median | highest | outside |",
        "|---|---|---|---|---|---|",
    ]
    for table in dict.fromkeys(line.table for line in results):
        lines_of_table = [line for line in results if line.table == table]
        coverages = np.array([float(line.coverage) for line in lines_of_table if line.coverage])
        low, middle, high = (f"{100 * at:.1f}" for at in np.quantile(coverages, [0, 0.5, 1]))
        outside = int(((coverages < LOW) | (coverages > HIGH)).sum())
        without = len(lines_of_table) - len(coverages)
        cases = (
            f"{len(lines_of_table)} ({without} refused)" if without else f"{len(lines_of_table)}"
        )
        rows.append(f"| {table} | {cases} | {low} | {middle} | {high} | {outside} |")
    return "\n".join(rows)


def page(text: str, results: Sequence[Line]) -> str:
    """Return the page with its table between the marks."""
    head, after_begin = text.split(BEGIN)
    return f"{head}{BEGIN}\n\n{summary(results)}\n\n{END}{after_begin.split(END)[1]}"


def main() -> None:
    """Simulate, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    results = list(lines(options.studies))
    for count, each in ((20, 1), (40, 1), (100, 1), (100, 5), (1, 250)):
        real, claimed = realised(count, each, options.studies)
        print(
            f"false alarms of the calibrated band, {described(count, each)}: {100 * real:.1f} % of "
            f"new chunks, {100 * claimed:.1f} % cross-fitted"
        )
    print(summary(results))
    if options.print:
        return
    with FILE.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows([Line._fields, *results])
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
