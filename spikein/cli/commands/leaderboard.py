"""`spikein leaderboard`: the page of a benchmark, from submissions."""

from pathlib import Path
from typing import Annotated

from spikein.cli.options import AsJson, PageFile, argument, option
from spikein.cli.output import print_json, say, show_parts


def leaderboard(
    folder: Annotated[
        Path,
        argument("FOLDER", "The folder with the submissions, at any depth."),
    ],
    bench: Annotated[
        Path, option("--bench BUNDLE", "The benchmark's folder.", show_default=True)
    ] = Path("bench.bundle"),
    labels: Annotated[
        Path | None,
        option(
            "--labels BUNDLE",
            "Rank by the held-out models, with these labels; else by the public ones, whose labels "
            "every submitter knows.",
        ),
    ] = None,
    out: PageFile = None,
    as_json: AsJson = False,
) -> None:
    """Rank the submissions to a benchmark.

    Submissions are written by [cyan]spikein validate --bench[/]. Those for another version of the
    benchmark end the command before any work. Others are listed as rejected, with the reason: an
    unreadable one, the name and parameters of another one, and scores that cannot come from a
    detector: missing on one side, or separating the sides on a clean twin, which saw no member.
    Seconds and failed checks are declared by the submitter: run [cyan]spikein validate --bench[/]
    on the detector's file to verify them.

    [bold]Examples[/]

      spikein leaderboard submissions --bench bench.bundle --out leaderboard.html

      spikein leaderboard submissions --labels bench.labels --out leaderboard.html
    """
    from analysis.leaderboard.page import sections, sentences, write_page
    from spikein.api.leaderboard import leaderboard as rank

    findings, truth = rank(folder, bench, labels=labels)
    page = None if out is None else write_page(out, findings, truth)
    if as_json:
        print_json({"benchmark": truth.content, "findings": findings.rows})
        return
    say(*sentences(findings, truth), style="bold")
    for section in sections(findings):
        show_parts(section.parts)
    if page is not None:
        say(f"Page: {page}", style="bold")
