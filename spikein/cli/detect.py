"""`spikein detect`: score any file of texts with any model, no experiment needed."""

from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spikein.cli.output import Column, print_table, say, warn

if TYPE_CHECKING:
    from analysis.auc_table import AucRow
    from detect.file_command import DetectFileResult


class LongText(StrEnum):
    """What to do with a text longer than the model's context."""

    window = "window"
    truncate = "truncate"
    error = "error"


class ScoreFirst(StrEnum):
    """Whether a text's first token is scored."""

    drop = "drop"
    start_token = "start_token"


class Dtype(StrEnum):
    """Number format of the model."""

    auto = "auto"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class StartToken(StrEnum):
    """Whether a start token goes before each text."""

    auto = "auto"
    always = "always"
    never = "never"


def detect(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="PATH",
            help="The model to test: a folder or a hub id.",
            show_default=False,
        ),
    ],
    examples: Annotated[
        str,
        typer.Option(
            "--examples",
            metavar="FILE",
            help="Rows with [cyan]text[/] or [cyan]input[/], optional [cyan]id[/], "
            "[cyan]label[/] (1 = member), [cyan]group[/]: JSON Lines, Parquet, CSV; .gz too.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Where the scores go (Parquet)."),
    ] = Path("scores.parquet"),
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="PATH",
            help="A second model that has not seen the texts, for the detector `reference`.",
            show_default=False,
        ),
    ] = None,
    frequency: Annotated[
        str | None,
        typer.Option(
            "--frequency",
            metavar="FILE",
            help="Any text source, counted once for the detector `dc_pdd`.",
            show_default=False,
        ),
    ] = None,
    detectors: Annotated[
        str,
        typer.Option(
            "--detectors",
            metavar="LIST",
            help="[cyan]all[/], or names with parameters such as "
            "[cyan]min_k:k=0.2,zlib[/] or [cyan]surp:entropy=2.0:k=40[/]; see `spikein detectors`.",
        ),
    ] = "all",
    long: Annotated[
        LongText,
        typer.Option("--long", help="What to do with a text longer than the model's context."),
    ] = LongText.window,
    bos: Annotated[
        StartToken, typer.Option("--bos", help="Whether a start token goes before each text.")
    ] = StartToken.auto,
    score_first: Annotated[
        ScoreFirst,
        typer.Option(
            "--score-first", help="Drop the first token, or score it after a start token."
        ),
    ] = ScoreFirst.drop,
    device: Annotated[
        str, typer.Option("--device", help="[cyan]auto[/], [cyan]cpu[/], [cyan]cuda:1[/] …")
    ] = "auto",
    dtype: Annotated[
        Dtype, typer.Option("--dtype", help="Number format; statistics are float32 in any case.")
    ] = Dtype.auto,
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            "--batch-tokens",
            min=1,
            help="Padded tokens in one batch; no influence on the scores.",
            show_default="chosen for the device",
        ),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(
            "--revision", help="Branch, tag or commit of a hub model.", show_default=False
        ),
    ] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option(
            "--trust-remote-code", help="Run code that the model's repository brings along."
        ),
    ] = False,
) -> None:
    """Score the rows of any file with any causal language model.

    Higher scores always mean: more likely seen in training.
    Where the rows carry labels, a table of AUCs with intervals is printed.

    [bold]Examples[/]

      spikein detect --model EleutherAI/pythia-160m --examples rows.jsonl

      spikein detect --model my/model --examples my.csv --detectors min_k:k=0.2,zlib
    """
    from detect.file_command import DetectFileRequest, detect_file
    from detect.policy import ScoringPolicy
    from spikein.progress import showing

    request = DetectFileRequest(
        model=model,
        examples=examples,
        out=out,
        reference=reference,
        frequency=frequency,
        detectors=detectors,
        policy=ScoringPolicy(bos=bos.value, long=long.value, score_first=score_first.value),
        device=device,
        dtype=dtype.value,
        batch_tokens=batch_tokens,
        revision=revision,
        trust_remote_code=trust_remote_code,
    )
    with showing() as progress:
        name = f"detect {Path(examples).name}"
        progress.started(name, number=1, total=1)
        result = detect_file(
            request,
            lambda what, done, total: progress.advanced(name, done, total, "tokens", what),
        )
    for note in result.notes:
        warn(note)
    if result.rows.labels is None:
        say("The rows carry no labels, so there is no AUC to report.", style="dim")
    else:
        _print_aucs(result)
    say(f"Scores of {len(result.rows.texts)} rows: {result.out}", style="bold")


def _print_aucs(result: "DetectFileResult") -> None:
    from analysis.auc_table import auc_table
    from analysis.settings import AnalysisSettings

    settings = AnalysisSettings()
    rows = auc_table(result.scores, result.rows.labels or [], result.rows.groups, settings)
    print_table(
        [
            Column("detector", whole=True),
            Column("setting", whole=True),
            Column("AUC", right=True),
            Column(f"{settings.confidence:.0%} interval", right=True),
            Column("members", right=True),
            Column("non-members", right=True),
            Column("remark"),
        ],
        (
            (
                row.detector,
                row.setting,
                "" if isnan(row.auc.value) else f"{row.auc.value:.3f}",
                "" if isnan(row.auc.low) else f"{row.auc.low:.3f} – {row.auc.high:.3f}",
                str(row.n_members),
                str(row.n_nonmembers),
                _remark(row),
            )
            for row in rows
        ),
    )
    say("Above 0.5: members score higher. The interval is a bootstrap over groups.", style="dim")


def _remark(row: "AucRow") -> str:
    parts = [
        row.auc.reason or "",
        f"{row.unscored} rows not scored" if row.unscored else "",
        "measured on its own rows" if row.own_rows else "",
    ]
    return "; ".join(part for part in parts if part)
