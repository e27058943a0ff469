"""`spikein detect`: score any file of texts with any model, no experiment needed."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spikein.cli import completion
from spikein.cli.detect_table import print_json, print_result
from spikein.cli.output import warn
from spikein.cli.task_progress import task_progress


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
            "[cyan]label[/] (1 = member), [cyan]group[/], in upper or lower case: JSON "
            "Lines, Parquet, CSV; .gz too.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where the scores go: [cyan].parquet[/], [cyan].csv[/] or [cyan].jsonl[/].",
        ),
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
            "[cyan]min_k:k=0.2,zlib[/] or [cyan]surp:entropy=2.0:k=40[/] (listed by `spikein "
            "detectors`); [cyan]FILE.py:NAME[/] for one of your own.",
            autocompletion=completion.detectors,
        ),
    ] = "all",
    word_reference: Annotated[
        str | None,
        typer.Option(
            "--word-reference",
            metavar="PATH",
            help="A masked or causal model that says which words surprise, for the detector "
            "`info_probe`; by default that of [cyan]--reference[/].",
            show_default=False,
        ),
    ] = None,
    knowledge_filter: Annotated[
        str | None,
        typer.Option(
            "--knowledge-filter",
            metavar="PATH",
            help="A model whose guesses `info_probe:filtered=true` leaves out.",
            show_default=False,
        ),
    ] = None,
    generate: Annotated[
        bool,
        typer.Option(
            "--generate",
            help="Let the model write, for the detectors of [cyan]all[/] that read what it writes.",
        ),
    ] = False,
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
        typer.Option("--trust-remote-code", help="Run the code that the model's repository holds."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the table as one JSON object, and nothing else."),
    ] = False,
) -> None:
    """Score the rows of any file with any causal language model.

    Higher scores always mean: more likely seen in training.
    Where the rows carry labels, a table of AUCs and true-positive rates with intervals is printed.

    [bold]Examples[/]

      spikein detect --model EleutherAI/pythia-160m --examples rows.jsonl

      spikein detect --model my/model --examples my.csv --detectors min_k:k=0.2,zlib

      spikein detect --model my/model --examples rows.jsonl --detectors loss,my_detector.py:score

      spikein detect --model my/model --examples rows.jsonl --out scores.csv --json > table.json
    """
    from detect.policy import ScoringPolicy
    from detect.score_file.request import DetectFileRequest
    from detect.score_file.score import detect_file

    request = DetectFileRequest(
        model=model,
        examples=examples,
        out=out,
        reference=reference,
        frequency=frequency,
        detectors=detectors,
        generate=generate,
        word_reference=word_reference,
        knowledge_filter=knowledge_filter,
        policy=ScoringPolicy(bos=bos.value, long=long.value, score_first=score_first.value),
        device=device,
        dtype=dtype.value,
        batch_tokens=batch_tokens,
        revision=revision,
        trust_remote_code=trust_remote_code,
    )
    with task_progress(f"detect {Path(examples).name}") as on_tokens:
        result = detect_file(request, lambda what, done, total: on_tokens(done, total, what))
    for note in result.notes:
        warn(note)
    if as_json:
        print_json(result)
    else:
        print_result(result)
