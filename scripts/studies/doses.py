"""The number of copies at which each arm of a study reaches AUC 0.75.

`python -m scripts.studies.doses runs/dose --into docs` prints it for each arm and detector, with
the interval of Student's t over the jackknife of seeds (`analysis.studies.contrasts`), and writes
`data/doses-NAME.csv`, NAME being that of the run. Takes seconds.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from analysis.studies.contrasts import dose_by_seed, effect_over_seeds
from scripts.studies.dose_law import Line, write_csv
from scripts.studies.run_cells import arm_cells, sized_arms
from spikein.api.finished_run import Run, load_run

TABLE = "Copies at AUC 0.75"


def dose_lines(run: Run, detectors: Sequence[str]) -> Iterator[Line]:
    """Yield a line per detector and arm: copies with their 95 % interval, or a bound in words.

    Args:
        run: the finished run.
        detectors: whose AUCs.
    """
    for detector in detectors:
        for arm in sized_arms(run):
            cells = arm_cells(run, arm, detector)
            variance = np.tile(cells.variance * len(cells.seeds), (len(cells.seeds), 1))
            doses, bound = dose_by_seed(cells.auc, variance, cells.copies)
            effect = effect_over_seeds(doses, confidence=0.95)
            place = (TABLE, detector, arm.label)
            if bound or effect.note:
                yield (*place, bound or effect.note, "", "")
            else:
                yield (*place, *(float(end) for end in np.exp2(effect[:3])))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the copies of every arm."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="name or folder of a finished run")
    parser.add_argument("--detectors", default="min_k,reference", help="with commas")
    parser.add_argument("--into", type=Path, help="folder for data/, such as docs")
    options = parser.parse_args(arguments)
    run = load_run(options.run)
    lines = [*dose_lines(run, options.detectors.split(","))]
    for _, detector, arm, *ends in lines:
        text = "{:.2f} [{:.2f}, {:.2f}]".format(*ends) if isinstance(ends[0], float) else ends[0]
        print(f"{detector}, {arm}: {text}")
    if options.into is not None:
        write_csv(options.into / "data" / f"doses-{run.record.name}.csv", lines)


if __name__ == "__main__":
    main()
