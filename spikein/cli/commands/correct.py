"""`spikein correct`: what a benchmark's accuracy would have been without contamination."""

from typing import Annotated

from spikein.cli.options import AsJson, argument, option
from spikein.cli.output import print_json, print_rows, say, warn


def correct(
    file: Annotated[
        str,
        argument(
            "FILE",
            "One row per answer, with the columns [cyan]correct[/], [cyan]member[/] and the "
            "detectors' scores: CSV, TSV, JSON Lines, JSON or Parquet.",
        ),
    ],
    scores: Annotated[
        str,
        option(
            "--scores LIST",
            "Columns of scores (higher: more likely a member), separated by commas.",
            show_default=True,
        ),
    ] = "score",
    options: Annotated[
        int | None,
        option(
            "--options N",
            "Answer options of each question: refuse an accuracy within noise of 1 / N.",
            min=2,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Correct a benchmark's accuracy for contamination: six estimators with intervals.

    Columns of the file: [cyan]correct[/] (right or wrong), [cyan]member[/] (member, nonmember, or
    empty if it is unknown), scores, and optionally [cyan]group[/] (rows that share a passage) and
    [cyan]clean_probability[/] (of the right answer, by a model without contamination; without it,
    the accuracy of the known non-members). Values may also be 1, true, yes or 0, false, no.

    Rows of unknown membership are corrected. At least 10 known members and 10 known non-members
    calibrate the scores; members should be as frequent among them as among the other rows.
    Intervals: 95 % percentile bootstrap over groups of rows.

    [bold]Examples[/]

      spikein correct answers.csv

      spikein correct answers.csv --scores min_k,zlib --options 4

      spikein correct answers.csv --json | jq '.estimates[] | select(.estimator == "combined")'

    A file begins like this:

      correct,member,score,clean_probability

      right,member,-1.2,0.61

      wrong,,-2.9,0.20
    """
    from analysis.unit import Unit
    from spikein.api.correction import correct as correct_answers

    result = correct_answers(file, scores=scores, options=options)
    if as_json:
        rest = {name: value for name, value in result._asdict().items() if name != "rows"}
        print_json({"file": file, **result.rows, **rest})
        return
    print_rows(
        {
            "estimator": each.estimator.replace("_", " "),
            "scores": each.scores,
            "accuracy": Unit("", 3).brief(each.accuracy, no_interval="(no interval)")
            or "undefined",
            "not scored": each.unscored or None,
        }
        for each in result.estimates
    )
    rows = ", ".join(f"{n:,} {kind}" for kind, n in result.rows.items())
    say(f"Intervals: {result.interval}. Rows: {rows}.")
    for reason in dict.fromkeys(each.accuracy.reason for each in result.estimates):
        if reason is not None:
            warn(f"No interval: {reason}.")
    if result.unused_columns:
        say(f"Columns not used: {', '.join(result.unused_columns)}.")
    if options is None:
        warn("Not compared with chance: give --options N.")
