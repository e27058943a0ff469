"""A law of AUC by copies, size and learning rate: predict an arm, then compare it.

python -m scripts.studies.dose_law predict runs/dose --leave-out "arm recency" \\
    --parameters 15.4e6 --rate 2e-3 --out prediction.json
python -m scripts.studies.dose_law verdict prediction.json runs/dose-16m --into docs

`predict` fits the law and its rivals (`scripts.studies.laws`) to a finished run and writes the
AUCs that they expect of another arm, with their digest and the time. It refuses if the run has
scores of that arm. `verdict` checks the digest, and that the arm was scored later, and compares
both. With `--into`, both write `data/dose-law-NAME.csv` and `images/dose-law-NAME-DETECTOR.png`,
NAME being that of the file. Takes seconds.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from analysis.arm import find_arm
from analysis.page.drawing.picture import png_bytes, svg_file
from inject.errors import InputError
from scripts.studies.dose_picture import draw_detector
from scripts.studies.laws import LAWS, DoseCells, fit_law, jackknife_half, join_cells
from scripts.studies.prediction import (
    MARGIN,
    Prediction,
    Verdict,
    judge_prediction,
    means_without,
    observed_aucs,
    predict_aucs,
)
from scripts.studies.prediction_file import (
    FittedPoint,
    PredictionFile,
    read_predictions,
    write_predictions,
)
from scripts.studies.run_cells import SizedArm, arm_cells, first_scored, sized_arms, without_arms
from scripts.study_pages import COLUMNS
from spikein import __version__
from spikein.api.finished_run import Run, load_run

READ = ("scores.parquet", "examples.parquet", "exposures.parquet", "experiment.yaml")
WIDTH = 760.0


def predict(
    run: Run,
    *,
    detectors: Sequence[str],
    leave_out: Sequence[str],
    copies: Sequence[int],
    parameters: float,
    rate: float,
) -> PredictionFile:
    """Return the predictions of all laws for an arm.

    Args:
        run: the finished run that the laws are fitted to.
        detectors: whose AUCs.
        leave_out: labels of arms that no law is fitted to.
        copies: numbers of copies to predict.
        parameters: of the arm that is predicted.
        rate: its learning rate.

    Raises:
        InputError: when the run has scores of that arm, has two arms of one size and learning
            rate, or supports no fit.
    """
    arms = sized_arms(run)
    scored = [arm.label for arm in arms if arm.has(parameters, rate)]
    if scored:
        raise InputError(
            f"arm {scored[0]!r} has {parameters:g} parameters and learning rate {rate:g}, and is "
            "already scored",
            where=str(run.folder),
            hint="A prediction comes first: run the experiment without this arm, and predict from "
            "that run.",
        )
    fitted = without_arms(arms, leave_out, place="--leave-out")
    _check_distinct(fitted, run)
    predictions, points = [], []
    for detector in detectors:
        cells = {arm.label: arm_cells(run, arm, detector) for arm in fitted}
        joined = join_cells([*cells.values()])
        predictions += [
            predict_aucs(detector, fit_law(joined, name), copies, parameters=parameters, rate=rate)
            for name in LAWS
        ]
        points += [
            point for label, own in cells.items() for point in arm_points(own, label, detector)
        ]
    return PredictionFile(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        run=run.record.id,
        inputs={name: run.record.digests[name][1] for name in READ},
        parameters=parameters,
        rate=rate,
        predictions=tuple(predictions),
        points=tuple(points),
    )


def _check_distinct(arms: Sequence[SizedArm], run: Run) -> None:
    """Require that no two arms have one size and learning rate."""
    by_place: dict[tuple[int | None, float], str] = {}
    for arm in arms:
        other = by_place.setdefault((arm.parameters, arm.rate), arm.label)
        if other != arm.label:
            raise InputError(
                f"arms {other!r} and {arm.label!r} have one size and learning rate, so they differ "
                "in something that the law does not contain",
                where=str(run.folder),
                hint="Leave out one of them with --leave-out.",
            )


def arm_points(cells: DoseCells, label: str, detector: str) -> Iterator[FittedPoint]:
    """Yield the mean AUC of each number of copies, with Student's t over seeds."""
    mean = cells.auc.mean(axis=0)
    half = jackknife_half(means_without(cells.auc), 0.95)
    for at, count in enumerate(cells.copies.tolist()):
        yield FittedPoint(
            arm=label,
            detector=detector,
            parameters=float(cells.parameters[at]),
            rate=float(cells.rate[at]),
            copies=int(count),
            value=float(mean[at]),
            low=max(float(mean[at] - half[at]), 0.0),
            high=min(float(mean[at] + half[at]), 1.0),
        )


def left_out_arm(
    content: PredictionFile, run: Run, *, label: str | None, leave_out: Sequence[str]
) -> SizedArm:
    """Return the arm of a run that was predicted.

    Raises:
        InputError: when there is none, several, or one that was scored before the prediction.
    """
    arms = without_arms(sized_arms(run), leave_out, place="--leave-out")
    if label is not None:
        name = find_arm(label, [arm.label for arm in arms], place="--arm")
        matches = [arm for arm in arms if arm.label == name]
    else:
        matches = [arm for arm in arms if arm.has(content.parameters, content.rate)]
    if len(matches) != 1:
        raise InputError(
            f"{len(matches)} arms have {content.parameters:g} parameters and learning rate "
            f"{content.rate:g}",
            where=str(run.folder),
            allowed=", ".join(repr(arm.label) for arm in matches or arms),
            hint="Name the predicted arm with --arm.",
        )
    scored = first_scored(run, matches[0]) or datetime.fromisoformat(run.record.finished)
    if scored <= datetime.fromisoformat(content.made):
        raise InputError(
            f"arm {matches[0].label!r} was scored at {scored.isoformat()}, before the prediction "
            f"of {content.made}",
            where=str(run.folder),
            hint="It is not a prediction.",
        )
    return matches[0]


def judge_all(
    content: PredictionFile, run: Run, arm: SizedArm, *, margin: float
) -> list[tuple[Prediction, DoseCells, Verdict]]:
    """Return each prediction with what was observed, and its verdict."""
    sized = SizedArm(
        label=arm.label, columns=arm.columns, parameters=round(content.parameters), rate=arm.rate
    )
    cells = {
        detector: arm_cells(run, sized, detector)
        for detector in dict.fromkeys(each.detector for each in content.predictions)
    }
    judged = []
    for prediction in content.predictions:
        observed = cells[prediction.detector]
        aucs = observed_aucs(observed, prediction.copies, place=f"{run.folder}, arm {arm.label!r}")
        verdict = judge_prediction(prediction, aucs, observed.seeds, margin=margin)
        judged.append((prediction, observed, verdict))
    return judged


Line = tuple[str, str, str, str | float, float | str, float | str]


def predicted_lines(content: PredictionFile) -> Iterator[Line]:
    """Yield the lines of the CSV file that precede any observation: one number each."""
    for prediction in content.predictions:
        name = f"{prediction.detector}; {prediction.law}"
        for term, ends in prediction.terms.items():
            yield ("Terms of the laws", name, term, *ends)
        for noun in ("fitted", "left_out", "misfit"):
            yield ("Fits", name, noun, getattr(prediction, noun), "", "")
        for at, copies in enumerate(prediction.copies):
            ends = prediction.auc[at], prediction.low[at], prediction.high[at]
            yield ("Predicted AUC by copies", name, str(copies), *ends)
    yield from _point_lines(content.points)


def judged_lines(
    judged: Sequence[tuple[Prediction, DoseCells, Verdict]], arm: SizedArm
) -> Iterator[Line]:
    """Yield the lines on the left-out arm, with the verdicts."""
    for prediction, observed, verdict in judged:
        name = f"{prediction.detector}; {prediction.law}"
        difference = verdict.difference
        ends = difference.value, difference.low, difference.high
        yield ("Predicted minus observed AUC", name, "difference", *ends)
        yield ("Predicted minus observed AUC", name, "verdict", verdict.text, "", "")
        if prediction.law == next(iter(LAWS)):
            yield from _point_lines(
                arm_points(observed, f"{arm.label}; left out", prediction.detector)
            )


def _point_lines(points: Iterable[FittedPoint]) -> Iterator[Line]:
    for point in points:
        row = f"{point.detector}; {point.arm}"
        ends = point.value, point.low, point.high
        yield ("Observed AUC by copies", row, str(point.copies), *ends)


def write_csv(path: Path, lines: Iterable[Line]) -> None:
    """Write the lines, numbers with four digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(COLUMNS)
        for line in lines:
            numbers = [f"{cell:.4g}" if isinstance(cell, float) else cell for cell in line[3:]]
            writer.writerow([*line[:3], *numbers])


def write_results(
    into: Path,
    path: Path,
    content: PredictionFile,
    judged: Sequence[tuple[Prediction, DoseCells, Verdict]] = (),
    arm: SizedArm | None = None,
) -> None:
    """Write the CSV file, and a picture for each detector: every arm with the law.

    Args:
        into: folder for `data/` and `images/`.
        path: of the file of predictions, which names them.
        content: of that file.
        judged: the predictions with what was observed, once it is.
        arm: the left-out arm, with `judged`.
    """
    name = f"dose-law-{path.stem}"
    lines = [*predicted_lines(content), *(judged_lines(judged, arm) if arm else ())]
    write_csv(into / "data" / f"{name}.csv", lines)
    images = into / "images"
    images.mkdir(parents=True, exist_ok=True)
    cells = {prediction.detector: observed for prediction, observed, _ in judged}
    for prediction in content.predictions:
        if prediction.law != next(iter(LAWS)):
            continue
        detector = prediction.detector
        fitted = [point for point in content.points if point.detector == detector]
        observed = [*arm_points(cells[detector], "", detector)] if detector in cells else []
        title = f"{content.parameters / 1e6:g} M, {content.rate:g}"
        svg = svg_file(draw_detector(prediction, fitted, observed, title).draw(WIDTH))
        (images / f"{name}-{detector}.png").write_bytes(png_bytes(svg))


def report(judged: Sequence[tuple[Prediction, DoseCells, Verdict]]) -> Iterator[str]:
    """Yield a line per prediction: the law's terms, predicted minus observed, and the verdict."""
    for prediction, _, verdict in judged:
        yield f"{_head(prediction)}: {verdict.difference.text(3)}: {verdict.text}" + (
            "" if verdict.paired else " (other seeds: not paired)"
        )


def _head(prediction: Prediction) -> str:
    return f"{prediction.detector}, {prediction.law}"


def _describe(prediction: Prediction) -> str:
    terms = ", ".join(
        f"{term} {value:.2f} [{low:.2f}, {high:.2f}]"
        for term, (value, low, high) in prediction.terms.items()
    )
    aucs = ", ".join(
        f"{copies}: {auc:.2f} [{low:.2f}, {high:.2f}]"
        for copies, auc, low, high in zip(
            prediction.copies, prediction.auc, prediction.low, prediction.high, strict=True
        )
    )
    return (
        f"{_head(prediction)}: {terms}; misfit {prediction.misfit:.1f}, {prediction.fitted} AUCs, "
        f"{prediction.left_out} left out\n  AUC by copies: {aucs}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Predict, or compare."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "predict":
            _predict(options)
        else:
            _verdict(options)
    except InputError as error:
        sys.exit(str(error))


def _predict(options: argparse.Namespace) -> None:
    content = predict(
        load_run(options.run),
        detectors=options.detectors.split(","),
        leave_out=options.leave_out,
        copies=[int(count) for count in options.copies.split(",")],
        parameters=options.parameters,
        rate=options.rate,
    )
    write_predictions(options.out, content)
    print("\n".join(map(_describe, content.predictions)))
    print(options.out)
    if options.into is not None:
        write_results(options.into, options.out, content)


def _verdict(options: argparse.Namespace) -> None:
    content, run = read_predictions(options.prediction), load_run(options.run)
    arm = left_out_arm(content, run, label=options.arm, leave_out=options.leave_out)
    judged = judge_all(content, run, arm, margin=options.margin)
    print("Predicted minus observed AUC, mean over copies [95 % interval]")
    print("\n".join(report(judged)))
    if options.into is not None:
        write_results(options.into, options.prediction, content, judged, arm)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("predict", help="fit the laws, and write what they predict")
    second = commands.add_parser("verdict", help="compare a prediction with the scored arm")
    first.add_argument("run", help="name or folder of the run to fit")
    first.add_argument("--parameters", type=float, required=True, help="of the predicted arm")
    first.add_argument("--rate", type=float, required=True, help="learning rate of that arm")
    first.add_argument("--detectors", default="min_k,reference", help="with commas")
    first.add_argument("--copies", default="1,2,4,8", help="predicted numbers, with commas")
    first.add_argument("--out", type=Path, required=True, help="the file of predictions")
    second.add_argument("prediction", type=Path, help="the file of predictions")
    second.add_argument("run", help="name or folder of the run with the predicted arm")
    second.add_argument("--arm", help="label of that arm, if several match")
    second.add_argument("--margin", type=float, default=MARGIN, help=f"default {MARGIN}")
    for command in (first, second):
        command.add_argument("--into", type=Path, help="folder for data/ and images/, such as docs")
        command.add_argument(
            "--leave-out", action="append", default=[], metavar="LABEL", help="an arm; repeatable"
        )
    return parser


if __name__ == "__main__":
    main()
