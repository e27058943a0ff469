"""`spikein correct`: what a benchmark's accuracy would have been without contamination."""

from typing import TYPE_CHECKING, Annotated, Any

from spikein.cli.options import AsJson, argument, option
from spikein.cli.output import print_json, say, show_table, warn, with_noun

if TYPE_CHECKING:
    from analysis.correction.user_file import CorrectedScore, UserItems

_CONFIDENCE = 0.95


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
    [cyan]clean_probability[/] (of the right answer, by a model without contamination), which the
    estimators imputed and combined require. Values may also be 1, true, yes or 0, false, no.

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
    from analysis.correction.user_file import check_above_chance, correct_items, read_items
    from inject.errors import InputError

    columns = list(dict.fromkeys(name.strip() for name in scores.split(",") if name.strip()))
    if not columns:
        raise InputError("names no column", where="--scores", allowed="names of columns of FILE")
    items = read_items(file, columns)
    if options is not None:
        check_above_chance(items, options, file, confidence=_CONFIDENCE)
    results = correct_items(items, confidence=_CONFIDENCE)
    if as_json:
        print_json({"file": file, **_head(items), "estimates": [_entry(each) for each in results]})
        return
    _print(items, results)
    if options is None:
        warn("Not compared with chance: --options N gives the number of answer options.")


def _head(items: "UserItems") -> dict[str, Any]:
    from analysis.correction.user_file import INTERVAL, REPLICATES

    return {
        "corrected": int(items.corrected.sum()),
        "known_members": int(items.member.sum()),
        "known_nonmembers": int(items.nonmember.sum()),
        "left_out": items.left_out,
        "interval": INTERVAL,
        "replicates": REPLICATES,
        "confidence": _CONFIDENCE,
    }


def _entry(result: "CorrectedScore") -> dict[str, Any]:
    return {
        "estimator": result.estimator,
        "scores": result.detector,
        **result.accuracy.columns(),
        "unscored": result.unscored,
    }


def _print(items: "UserItems", results: "list[CorrectedScore]") -> None:
    from analysis.correction.user_file import INTERVAL, REPLICATES
    from analysis.page.table import listing
    from analysis.unit import Unit

    unit = Unit("accuracy", 3)
    head = _head(items)
    lines = [
        (
            *(result.estimator.replace("_", " "), result.detector or ""),
            unit.brief(result.accuracy) or result.accuracy.reason or "undefined",
            f"{result.unscored:,}" if result.unscored else "",
        )
        for result in results
    ]
    caption = f"{_CONFIDENCE:.0%} intervals: {INTERVAL}, {REPLICATES:,} replicates, groups whole."
    table = listing("Accuracy", ("Estimator", "Scores", "Accuracy", "Not scored"), lines, caption)
    if table is not None:
        show_table(table)
    say(
        f"{with_noun(head['corrected'], 'row')} corrected; calibrated by "
        f"{head['known_members']:,} members and {head['known_nonmembers']:,} non-members."
    )
    if items.left_out:
        say(f"{with_noun(items.left_out, 'row')} left out: their group has a known row.")
