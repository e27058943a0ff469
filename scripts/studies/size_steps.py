"""Secondary readings of the study `size-steps`: comparisons beyond its claims.

`python -m scripts.studies.size_steps runs/size-steps --into docs` prints the part of Figure 5a's
contrast that the fitted effects add up to, the effects with the tail counted in steps, and the
contrasts of arms with more members. With `--into`, it writes them to `data/size-steps.csv` and
draws the effects of the claims as `images/size-steps-claims.png`. Each reading is a comparison of
probits within each seed, reported as a change from AUC 0.70, with Student's t over seeds; all of
them are one family (Bonferroni). Takes seconds.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from analysis.intervals.influence import Floats
from analysis.intervals.rows import auc_numbers
from analysis.page.drawing.picture import png_bytes, svg_file
from analysis.page.sections.claims import effects_picture
from analysis.studies.claims import Effect
from analysis.studies.contrasts import effect_over_seeds, from_reported, probits
from scripts.studies.dose_law import Line, write_csv
from scripts.studies.run_cells import scored_rows, sized_arms
from spikein.api.experiment import read
from spikein.api.finished_run import Run, load_run
from spikein.config.design_rows import Rows, design_rows, log_columns

COLUMNS = ("unique", "steps", "batch", "tail")
CROSSED = 8
"""The first arms, to which effects are fitted."""
Weights = Mapping[str, float]
"""By arm, summing to 0."""


def readings(rows: Rows) -> dict[str, Weights]:
    """Return each comparison as weights of arms.

    Args:
        rows: values of the design's columns by arm (`design_rows`).
    """
    figure = {"large-spread": 1.0, "small-spread": -1.0}
    fitted = total(*(_effect(rows, column) for column in ("unique", "steps", "tail")))
    in_steps = {arm: {**row, "tail": row["tail"] / row["batch"]} for arm, row in rows.items()}
    return {
        "spread copies: large − small": figure,
        "fitted: unique, steps and tail × 4": fitted,
        "spread copies, not fitted": total(figure, {arm: -each for arm, each in fitted.items()}),
        "large-members − large": {"large-members": 1.0, "large": -1.0},
        "large-members − small-members": {"large-members": 1.0, "small-members": -1.0},
        **{f"{column} × 4, tail in steps": _effect(in_steps, column) for column in COLUMNS},
    }


def total(*parts: Weights) -> Weights:
    """Return the sum of comparisons."""
    summed: Counter[str] = Counter()
    for part in parts:
        for arm, weight in part.items():
            summed[arm] += weight
    return summed


def _effect(rows: Rows, column: str) -> Weights:
    crossed = dict([*rows.items()][:CROSSED])
    effect = Effect(of=column, columns=COLUMNS, factor=4.0, arms=tuple(crossed))
    return effect.weights(log_columns(crossed))


def arm_probits(run: Run, detector: str) -> dict[str, Floats]:
    """Return the probits of the AUC of all members with a copy, by arm and seed."""
    result = {}
    for arm in sized_arms(run):
        rows, scores, copies = scored_rows(run, arm, detector)
        aucs = auc_numbers(rows, scores, (copies > 0)[None], least=1).by_seed()
        sides = aucs.members.sum(axis=1), aucs.nonmembers.max(axis=1)
        result[arm.label] = probits(aucs.value[:, 0], *sides)
    return result


def reading_lines(run: Run, detectors: Sequence[str]) -> Iterator[Line]:
    """Yield a line per detector and comparison: the change from AUC 0.70, or why there is none."""
    compared = readings(design_rows(read(run.settings).arms))
    family = len(compared) * len(detectors)
    for detector in detectors:
        by_arm = arm_probits(run, detector)
        for name, weights in compared.items():
            seeds = np.sum([weight * by_arm[arm] for arm, weight in weights.items()], axis=0)
            effect = from_reported(effect_over_seeds(seeds, confidence=0.95, family=family))
            ends = (effect.note, "", "") if effect.note else effect[:3]
            yield ("Change from AUC 0.70", detector, name, *ends)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the readings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="name or folder of a finished run")
    parser.add_argument("--detectors", default="min_k,reference", help="with commas")
    parser.add_argument("--into", type=Path, help="folder for data/, such as docs")
    options = parser.parse_args(arguments)
    run = load_run(options.run)
    lines = [*reading_lines(run, options.detectors.split(","))]
    for _, detector, name, *ends in lines:
        texts = [f"{end:+.3f}" if isinstance(end, float) else end for end in ends]
        print(f"{detector}, {name}: {' '.join(texts)}")
    if options.into is not None:
        write_csv(options.into / "data" / "size-steps.csv", lines)
        if effects := effects_picture(run.table("claims").to_pylist(), {}):
            image = png_bytes(svg_file(effects.drawing))
            (options.into / "images" / "size-steps-claims.png").write_bytes(image)


if __name__ == "__main__":
    main()
