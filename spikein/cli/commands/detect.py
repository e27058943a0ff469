"""`spikein detect`: score any file of texts with any model, no experiment needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inject.errors import InputError
from spikein.cli import completion
from spikein.cli.detect_options import Api, DeviceMap, Dtype, LongText, ScoreFirst, StartToken
from spikein.cli.detect_table import print_json, print_result
from spikein.cli.options import Generate, KnowledgeFilter, Tagger, WordReference
from spikein.cli.output import tell, warn, with_noun
from spikein.progress import task_progress

if TYPE_CHECKING:
    from inject.server.client import Estimate


def detect(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="PATH",
            help="The model to test: a folder (of a model, or of a LoRA adapter that names its "
            "base), a hub id, or with [cyan]--server[/] the name that "
            "the server knows it by.",
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
            "Lines, Parquet, CSV; .gz and .zst too.",
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
            help="Any text source, counted once for `dc_pdd` and `tag_tab`.",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            "--held-out",
            metavar="FILE",
            help="Further texts, not scored, that the model has not seen: shots and populations "
            "for `recall`, `codec` and the like; they calibrate which rows are flagged. Rows with "
            "[cyan]label[/] 1 are known members.",
            show_default=False,
        ),
    ] = None,
    neighbours: Annotated[
        str | None,
        typer.Option(
            "--neighbours",
            metavar="PATH",
            help="A masked language model such as BERT, for the detector `neighbour`.",
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
    word_reference: WordReference = None,
    knowledge_filter: KnowledgeFilter = None,
    tagger: Tagger = None,
    generate: Generate = False,
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
    inverse_temperature: Annotated[
        list[float] | None,
        typer.Option(
            "--inverse-temperature",
            help="A β at which softmax(β · logits) is looked at, too: for [cyan]acmia:beta=2[/].",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="[cyan]auto[/], [cyan]cpu[/], [cyan]cuda:1[/] …")
    ] = "auto",
    dtype: Annotated[
        Dtype,
        typer.Option(
            "--dtype",
            help="Number format; statistics are float32 in any case. 8bit and 4bit quantise, and "
            "need bitsandbytes.",
        ),
    ] = Dtype.auto,
    device_map: Annotated[
        DeviceMap,
        typer.Option(
            "--device-map",
            help="[cyan]auto[/] spreads a large model over all GPUs, then memory and disk.",
        ),
    ] = DeviceMap.none,
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
    benchmark: Annotated[
        str | None,
        typer.Option(
            "--benchmark",
            metavar="NAME",
            help="What the rows are: [cyan]wikimia-32[/], [cyan]-64[/], [cyan]-128[/], "
            "[cyan]-256[/], [cyan]mimir[/], [cyan]arxivtection[/], [cyan]rows[/]. They are "
            "checked, and `blind` stands beside every number.",
            show_default=False,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="URL",
            help="Address of an OpenAI-compatible server that the model is asked on, such as "
            "[cyan]http://localhost:8000/v1[/]; detectors that read what it writes run.",
            show_default=False,
        ),
    ] = None,
    api: Annotated[
        Api,
        typer.Option(
            "--api",
            help="How the server is asked: prompts as they are, or as a user's message.",
        ),
    ] = Api.completions,
    api_key_variable: Annotated[
        str | None,
        typer.Option(
            "--api-key-variable",
            metavar="NAME",
            help="Environment variable that holds the server's key; the key is written nowhere.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int,
        typer.Option("--concurrency", min=1, help="Requests in flight on the server at most."),
    ] = 8,
    send_protected: Annotated[
        list[str] | None,
        typer.Option(
            "--send-protected",
            metavar="DATASET",
            help="Protected dataset whose texts may be sent to the server; may be repeated.",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            metavar="FOLDER",
            help="Where a server's replies and counted frequencies are kept.",
            show_default="~/.cache/spikein",
        ),
    ] = None,
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

      spikein detect --model my/model --benchmark wikimia-64 --examples 64.jsonl

      spikein detect --server http://localhost:8000/v1 --model my-model --examples rows.jsonl

      spikein detect --server https://api.openai.com/v1 --api-key-variable OPENAI_API_KEY --api chat
      --model gpt-4o-mini --concurrency 4 --examples rows.jsonl
    """
    served = {
        "--api": api is not Api.completions,
        "--api-key-variable": api_key_variable is not None,
        "--concurrency": concurrency != 8,
        "--send-protected": bool(send_protected),
    }
    local = {
        "--long": long is not LongText.window,
        "--bos": bos is not StartToken.auto,
        "--score-first": score_first is not ScoreFirst.drop,
        "--inverse-temperature": bool(inverse_temperature),
        "--device": device != "auto",
        "--dtype": dtype is not Dtype.auto,
        "--device-map": device_map is not DeviceMap.none,
        "--batch-tokens": batch_tokens is not None,
        "--revision": revision is not None,
        "--trust-remote-code": trust_remote_code,
    }
    _check_of_one_kind(served if server is None else local, server)
    from detect.policy import ScoringPolicy
    from detect.score_file.request import DetectFileRequest
    from detect.score_file.score import detect_file
    from inject.server.address import Server

    at = None
    if server is not None:
        at = Server(
            base_url=server,
            model=model,
            api=api.value,
            api_key_variable=api_key_variable,
            concurrency=concurrency,
        )
    request = DetectFileRequest(
        model=model,
        examples=examples,
        out=out,
        reference=reference,
        frequency=frequency,
        neighbours=neighbours,
        held_out=held_out,
        detectors=detectors,
        benchmark=benchmark,
        generate=generate,
        word_reference=word_reference,
        knowledge_filter=knowledge_filter,
        tagger=tagger,
        policy=ScoringPolicy(
            bos=bos.value,
            long=long.value,
            score_first=score_first.value,
            inverse_temperatures=tuple(inverse_temperature or ()),
        ),
        device=device,
        dtype=dtype.value,
        device_map=device_map.value,
        batch_tokens=batch_tokens,
        revision=revision,
        trust_remote_code=trust_remote_code,
        cache=cache,
        server=at,
        send_protected=tuple(send_protected or ()),
    )
    unit = "tokens" if at is None else "prompts"
    with task_progress(f"detect {Path(examples).name}", unit=unit) as on_done:
        result = detect_file(
            request, lambda what, done, total: on_done(done, total, what), _say_estimate
        )
    for note in result.notes:
        warn(note)
    if as_json:
        print_json(result)
    else:
        print_result(result)


def _check_of_one_kind(given: dict[str, bool], server: str | None) -> None:
    """Refuse options that would have no influence, before any work."""
    unused = [name for name, is_given in given.items() if is_given]
    if unused:
        belongs = "a model on this machine" if server is not None else "a server (--server URL)"
        raise InputError(f"{', '.join(unused)} is of use for {belongs} alone")


def _say_estimate(estimate: "Estimate") -> None:
    """Print what a server will be asked, before it is asked."""
    to_send = estimate.requests - estimate.kept
    tell(
        f"{with_noun(estimate.requests, 'request')}, of which {estimate.kept:,} were answered "
        f"before; {to_send:,} to send: about {estimate.tokens_in:,} tokens in, at most "
        f"{estimate.tokens_out:,} out."
    )
