"""The number of copies at which each arm of a study reaches AUC 0.75.

`python -m scripts.studies.doses runs/dose --into docs` prints it for each arm and detector, with
the interval of Student's t over the jackknife of seeds (`analysis.studies.contrasts`), and writes
`data/doses-NAME.csv` and `images/doses-NAME.png`, NAME being that of the run. Takes seconds.
"""

from collections.abc import Iterator, Sequence
from math import ceil, isfinite, log2

import numpy as np

from analysis.page.drawing.matrix import AxisHeading, Matrix, MatrixAxis, dot_ends
from analysis.page.drawing.picture import png_bytes, svg_file
from analysis.studies.contrasts import dose_by_seed, effect_over_seeds
from analysis.unit import Dot
from scripts.studies.dose_law import Line, write_csv
from scripts.studies.run_cells import arm_cells, read_arguments, sized_arms
from spikein.api.finished_run import Run, load_run

TABLE = "Copies at AUC 0.75"
_WIDTH = 560.0


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
            if note := bound or effect.note:
                yield (TABLE, detector, arm.label, note, "", "")
            else:
                value, low, high = (2**end for end in effect[:3])
                yield (TABLE, detector, arm.label, value, low, high)


def picture(lines: Sequence[Line]) -> Matrix:
    """Return a row per arm and a column per detector, on a scale of doublings."""
    arms = list(dict.fromkeys(arm for _, _, arm, *_ in lines))
    columns = [
        (
            AxisHeading(name),
            [_dot(*ends) for _, detector, _, *ends in lines if detector == name],
        )
        for name in dict.fromkeys(detector for _, detector, *_ in lines)
    ]
    high = max((ceil(end) for end in dot_ends(columns) if isfinite(end)), default=1)
    ticks = [(float(power), str(2**power)) for power in range(high + 1)]
    return Matrix(
        rows=[AxisHeading(arm) for arm in arms],
        columns=columns,
        axis=MatrixAxis(0.0, float(high), 0.0, ticks),
        label=f"{TABLE}, by arm and detector",
    )


def _dot(value: float | str, low: float | str, high: float | str) -> Dot | str:
    if isinstance(value, str):
        return value
    low, high = float(low), float(high)
    return Dot(log2(value), log2(low), log2(high), "", _text(value, low, high))


def _text(value: float | str, low: float | str, high: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.1f} [{low:.1f}, {high:.1f}]"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the copies of every arm."""
    options = read_arguments(__doc__, arguments)
    run = load_run(options.run)
    lines = [*dose_lines(run, options.detectors)]
    for _, detector, arm, *ends in lines:
        print(f"{detector}, {arm}: {_text(*ends)}")
    if options.into is not None:
        write_csv(options.into / "data" / f"doses-{run.record.name}.csv", lines)
        images = options.into / "images"
        images.mkdir(parents=True, exist_ok=True)
        image = png_bytes(svg_file(picture(lines).draw(_WIDTH)))
        (images / f"doses-{run.record.name}.png").write_bytes(image)


if __name__ == "__main__":
    main()
