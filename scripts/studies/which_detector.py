"""Readings of the study `which-detector`: every detector against `loss`, by copies and by length.

`python -m scripts.studies.which_detector runs/which-detector --into docs` prints, for each model:

- the AUC of each detector minus that of `loss`, and of `lira` if there are shadow models, each as
  one family of all detectors;
- the detectors that may be the best (Hsu 1984) for 1 to 2 copies, 4 to 8 copies, and each third of
  the texts of a dataset by length;
- gains that newer methods report over a baseline, next to ours over the same baseline, as one
  family. A gain *does not hold here* if the upper end of its interval is below half of the
  published one.

Numbers are of default settings on the `test` rows that all these detectors score, within each
dataset, with the intervals of the report's comparisons (`analysis.factors.contrasts`); gains that
were published for tuned settings are compared with tuned settings. The best detectors of each
dataset are in the report. With `--into`, the readings are written to `data/NAME.csv`, and a picture
of the differences to `images/NAME-loss.png`, after the run's name. Takes half a minute.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from analysis.arm import MODEL_FREE, UPPER_BOUNDS
from analysis.factors.contrasts import best_set, contrasts
from analysis.intervals.influence import Floats, Mask
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import auc_numbers
from analysis.page.crossed import AxisHeading, cross
from analysis.page.drawing.picture import picture, png_bytes, svg_file
from analysis.unit import DIFFERENCE, POINTS
from scripts.studies.dose_law import Line, write_csv
from scripts.studies.run_cells import (
    CONTAMINATED,
    SizedArm,
    frame_rows,
    read_arguments,
    scored_frame,
    sized_arms,
)
from spikein.api.finished_run import Run, load_run

LOSS = "loss"
LIRA = "lira"
TUNED = "tuned"
LEAST_SCORED = 0.9
"""A detector that scores a smaller share of the rows is left out."""


class Gain(NamedTuple):
    """A published difference of mean AUCs."""

    method: str
    baseline: str
    published: float
    source: str
    selection: str = "default"
    """Of both settings."""


GAINS = (
    Gain("min_k", "loss", 0.05, "Shi et al. 2024, Table 1: WikiMIA, average"),
    Gain("surp", "min_k", 0.063, "Zhang and Wu 2024, Table 1: WikiMIA, mean of 12", TUNED),
    Gain("dc_pdd", "min_k", 0.027, "Zhang et al. 2024, Table 2: BookMIA, PatentMIA, WikiMIA"),
    Gain("min_k_plus_plus", "min_k", 0.035, "Zhang et al. 2024, Table 2: WikiMIA, four models"),
    Gain("gap_k", "min_k_plus_plus", 0.024, "arXiv 2601.19936: WikiMIA, three lengths"),
    Gain("wbc", "reference", 0.085, "arXiv 2601.02751: over its best baseline, 11 sets"),
)


@dataclass(frozen=True, kw_only=True)
class ArmScores:
    """The test rows of one model under all seeds that every detector scores."""

    frame: pd.DataFrame
    """Rows as `scored_frame` returns them."""
    scores: Mapping[str, Floats]
    """By detector."""
    left_out: Mapping[str, float]
    """The share of rows that each detector scores that is left out."""

    def aucs(self, members: Mask, compared: Mask) -> dict[str, Numbers]:
        """Return the AUC of some members by detector, against the non-members that are compared."""
        frame = self.frame[compared]
        rows, within = frame_rows(frame), members[compared][None]
        return {
            name: auc_numbers(rows, scores[compared], within)
            for name, scores in self.scores.items()
        }


def read_scores(
    run: Run, arm: SizedArm, detectors: Sequence[str], *, selection: str = "default"
) -> ArmScores:
    """Return the rows of an arm that all detectors score, except for those that miss many."""
    columns, left_out = {}, {}
    for name in detectors:
        frame = scored_frame(run, arm, name, selection=selection)
        share = float(frame["score"].notna().mean())
        if share >= LEAST_SCORED:
            columns[name] = frame["score"].to_numpy(dtype=float)
        else:
            left_out[name] = share
    scored = np.all([np.isfinite(column) for column in columns.values()], axis=0)
    return ArmScores(
        frame=frame[scored].reset_index(drop=True),
        scores={name: column[scored] for name, column in columns.items()},
        left_out=left_out,
    )


def classes(frame: pd.DataFrame) -> dict[str, tuple[Mask, Mask]]:
    """Return by name which members each class compares, and which rows it keeps of both sides."""
    copies = frame["copies"].to_numpy()
    rank = frame.groupby("dataset")["length"].rank(pct=True, method="average").to_numpy()
    third = np.minimum((3 * rank).astype(int), 2)
    everywhere, seen = np.ones(len(frame), dtype=bool), copies > 0
    return {
        "all": (seen, everywhere),
        "1 to 2 copies": (seen & (copies <= 2), everywhere),
        "4 to 8 copies": ((copies >= 4) & (copies <= 8), everywhere),
        **{
            f"{name} third": (seen, third == at)
            for at, name in enumerate(("shortest", "middle", "longest"))
        },
    }


def gap_rows(aucs: Mapping[str, Numbers], versus: str) -> dict[str, dict[str, Any]]:
    """Return each detector's AUC minus that of one, all as one family."""
    others = [name for name in aucs if name != versus]
    gaps = contrasts([(aucs[name], aucs[versus]) for name in others])
    return dict(zip(others, gaps, strict=True))


def may_be_best(aucs: Mapping[str, Numbers]) -> list[str]:
    """Return the detectors that may be the best, best first; all of them with too few rows."""
    names = [name for name in aucs if name not in UPPER_BOUNDS | MODEL_FREE]
    inside = best_set([aucs[name] for name in names], confidence=0.95) or [True] * len(names)
    chosen = [name for name, may_be in zip(names, inside, strict=True) if may_be]
    return sorted(chosen, key=lambda name: -mean_auc(aucs[name]))


def mean_auc(numbers: Numbers) -> float:
    """Return the mean over seeds."""
    return float(np.nanmean(numbers.by_seed().value))


def gain_verdict(gain: Gain, high: float) -> str:
    """Return whether the interval excludes half of the published gain."""
    return "does not hold here" if high < gain.published / 2 else "not refuted"


def arm_lines(arm: str, scored: ArmScores, tuned: ArmScores | None = None) -> Iterator[Line]:
    """Yield the readings of one model.

    Args:
        arm: its name.
        scored: default settings.
        tuned: the settings chosen on `tune` rows; None without.
    """
    for name, share in scored.left_out.items():
        yield ("Left out: share of rows scored", arm, name, share, "", "")
    by_class = {name: scored.aucs(*masks) for name, masks in classes(scored.frame).items()}
    for versus in (name for name in (LOSS, LIRA) if name in scored.scores):
        for name, gap in gap_rows(by_class["all"], versus).items():
            yield (f"Minus {versus}", arm, name, *_ends(gap))
    for name, aucs in by_class.items():
        for detector in may_be_best(aucs):
            yield (f"May be the best: {name}", arm, detector, mean_auc(aucs[detector]), "", "")
    by_selection = {"default": by_class["all"], TUNED: {}}
    if tuned is not None:
        by_selection[TUNED] = tuned.aucs(*classes(tuned.frame)["all"])
    measured = [
        gain
        for gain in GAINS
        if {gain.method, gain.baseline} <= by_selection[gain.selection].keys()
    ]
    gaps = contrasts(
        [
            (by_selection[gain.selection][gain.method], by_selection[gain.selection][gain.baseline])
            for gain in measured
        ]
    )
    for gain, gap in zip(measured, gaps, strict=True):
        verdict = gain_verdict(gain, gap["high"]) if "high" in gap else gap["reason"]
        published = f"published {DIFFERENCE.number(gain.published)} ({gain.source})"
        comparison = f"{gain.method} − {gain.baseline}: {published}: {verdict}"
        yield ("Published gain", arm, comparison, *_ends(gap))


def _ends(gap: Mapping[str, Any]) -> tuple[float | str, ...]:
    return gap["value"], gap.get("low", gap["reason"]), gap.get("high", "")


def draw_gaps(lines: Sequence[Line]) -> bytes:
    """Return the picture of the differences to loss, best first, a column per model."""
    rows = [line for line in lines if line[0] == "Minus loss" and not isinstance(line[4], str)]
    means = pd.DataFrame(rows).groupby(2)[3].mean()
    crossed = cross(
        sorted(rows, key=lambda line: -means[line[2]]),
        lambda line: AxisHeading(str(line[2])),
        lambda line: AxisHeading(str(line[1])),
        unit=POINTS,
        cell=lambda line: dict(zip(("value", "low", "high"), line[3:], strict=True)),
        bold=lambda line: line[4] > 0 or line[5] < 0,
    )
    gap_picture = picture("loss", "AUC minus that of loss", "", crossed.matrix(), 560, [])
    return png_bytes(svg_file(gap_picture.drawing))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the readings."""
    options = read_arguments(__doc__, arguments, detectors=())
    run = load_run(options.run)
    scores = run.scores.filter(pc.equal(run.scores["model"], CONTAMINATED))
    detectors = options.detectors or scores["detector"].unique().to_pylist()
    tuned = scores.filter(pc.equal(scores["selection"], TUNED))["detector"].unique().to_pylist()
    lines = [
        line
        for arm in sized_arms(run)
        for line in arm_lines(
            arm.label,
            read_scores(run, arm, detectors),
            read_scores(run, arm, tuned, selection=TUNED) if tuned else None,
        )
    ]
    for question, arm, comparison, *ends in lines:
        texts = [f"{end:+.3f}" if isinstance(end, float) else end for end in ends]
        print(f"{question}, {arm}, {comparison}: {' '.join(texts)}")
    if options.into is not None:
        write_csv(options.into / "data" / f"{run.name}.csv", lines)
        image = options.into / "images" / f"{run.name}-loss.png"
        image.write_bytes(draw_gaps(lines))


if __name__ == "__main__":
    main()
