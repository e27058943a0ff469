"""`spikein detect`: score any file of texts with any model, no experiment needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from inject.errors import InputError
from spikein.cli import completion
from spikein.cli.detect_table import print_json, print_result
from spikein.cli.options import (
    AsJson,
    Generate,
    KnowledgeFilter,
    Tagger,
    WordReference,
    option,
)
from spikein.cli.output import tell, warn, with_noun

if TYPE_CHECKING:
    from inject.server.client import Estimate


_OF_SERVER = ("api", "api_key_variable", "concurrency", "send_protected")
_OF_MODEL = (
    *("long", "bos", "score_first", "inverse_temperature", "device", "dtype", "device_map"),
    *("batch_tokens", "revision", "trust_remote_code"),
)


def detect(
    context: typer.Context,
    model: Annotated[
        str,
        option(
            "--model PATH",
            "The model to test: a folder (of a model, or of a LoRA adapter that names its "
            "base), a hub id, or with [cyan]--server[/] the name that "
            "the server knows it by.",
        ),
    ],
    examples: Annotated[
        str,
        option(
            "--examples FILE",
            "Rows with [cyan]text[/] or [cyan]input[/], optional [cyan]id[/], "
            "[cyan]label[/] (1 = member), [cyan]group[/], in upper or lower case: JSON "
            "Lines, Parquet, CSV; .gz and .zst too.",
        ),
    ],
    out: Annotated[
        Path,
        option(
            "--out FILE",
            "Where the scores go: [cyan].parquet[/], [cyan].csv[/] or [cyan].jsonl[/].",
            show_default=True,
        ),
    ] = Path("scores.parquet"),
    reference: Annotated[
        str | None,
        option(
            "--reference PATH",
            "A second model that has not seen the texts, for the detector `reference`.",
        ),
    ] = None,
    frequency: Annotated[
        str | None,
        option("--frequency FILE", "Any text source, counted once for `dc_pdd` and `tag_tab`."),
    ] = None,
    held_out: Annotated[
        str | None,
        option(
            "--held-out FILE",
            "Further texts, not scored, that the model has not seen: shots and populations "
            "for `recall`, `codec` and the like; they calibrate which rows are flagged. Rows with "
            "[cyan]label[/] 1 are known members.",
        ),
    ] = None,
    neighbours: Annotated[
        str | None,
        option(
            "--neighbours PATH",
            "A masked language model such as BERT, for the detector `neighbour`.",
        ),
    ] = None,
    detectors: Annotated[
        str,
        option(
            "--detectors LIST",
            "[cyan]all[/], or names with parameters such as "
            "[cyan]min_k:k=0.2,zlib[/] or [cyan]surp:entropy=2.0:k=40[/] (listed by `spikein "
            "detectors`); [cyan]FILE.py:NAME[/] for one of your own.",
            show_default=True,
            autocompletion=completion.detectors,
        ),
    ] = "all",
    word_reference: WordReference = None,
    knowledge_filter: KnowledgeFilter = None,
    tagger: Tagger = None,
    generate: Generate = False,
    long: Annotated[
        Literal["window", "truncate", "error"],
        option(
            "--long", "What to do with a text longer than the model's context.", show_default=True
        ),
    ] = "window",
    bos: Annotated[
        Literal["auto", "always", "never"],
        option("--bos", "Whether a start token goes before each text.", show_default=True),
    ] = "auto",
    score_first: Annotated[
        Literal["drop", "start_token"],
        option(
            "--score-first",
            "Drop the first token, or score it after a start token.",
            show_default=True,
        ),
    ] = "drop",
    inverse_temperature: Annotated[
        list[float] | None,
        option(
            "--inverse-temperature",
            "A β at which softmax(β · logits) is looked at, too: for [cyan]acmia:beta=2[/].",
            show_default=True,
        ),
    ] = None,
    device: Annotated[
        str, option("--device", "[cyan]auto[/], [cyan]cpu[/], [cyan]cuda:1[/] …", show_default=True)
    ] = "auto",
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16", "8bit", "4bit"],
        option(
            "--dtype",
            "Number format; statistics are float32 in any case. 8bit and 4bit quantise, and "
            "need bitsandbytes.",
            show_default=True,
        ),
    ] = "auto",
    device_map: Annotated[
        Literal["none", "auto"],
        option(
            "--device-map",
            "[cyan]auto[/] spreads a large model over all GPUs, then memory and disk.",
            show_default=True,
        ),
    ] = "none",
    batch_tokens: Annotated[
        int | None,
        option(
            "--batch-tokens",
            "Padded tokens in one batch; no influence on the scores.",
            show_default="chosen for the device",
            min=1,
        ),
    ] = None,
    revision: Annotated[
        str | None,
        option("--revision", "Branch, tag or commit of a hub model."),
    ] = None,
    trust_remote_code: Annotated[
        bool,
        option("--trust-remote-code", "Run the code that the model's repository holds."),
    ] = False,
    benchmark: Annotated[
        str | None,
        option(
            "--benchmark NAME",
            "What the rows are: [cyan]wikimia-32[/], [cyan]-64[/], [cyan]-128[/], "
            "[cyan]-256[/], [cyan]mimir[/], [cyan]arxivtection[/], [cyan]rows[/]. They are "
            "checked, and `blind` stands beside every number.",
        ),
    ] = None,
    server: Annotated[
        str | None,
        option(
            "--server URL",
            "Address of an OpenAI-compatible server that the model is asked on, such as "
            "[cyan]http://localhost:8000/v1[/]; detectors that read what it writes run.",
        ),
    ] = None,
    api: Annotated[
        Literal["completions", "chat"],
        option(
            "--api",
            "How the server is asked: prompts as they are, or as a user's message.",
            show_default=True,
        ),
    ] = "completions",
    api_key_variable: Annotated[
        str | None,
        option(
            "--api-key-variable NAME",
            "Environment variable that holds the server's key; the key is written nowhere.",
        ),
    ] = None,
    concurrency: Annotated[
        int,
        option(
            "--concurrency", "Requests in flight on the server at most.", show_default=True, min=1
        ),
    ] = 8,
    send_protected: Annotated[
        list[str] | None,
        option(
            "--send-protected DATASET",
            "Protected dataset whose texts may be sent to the server; may be repeated.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        option(
            "--cache FOLDER",
            "Where a server's replies are kept; artifacts, too, without [cyan]--store[/].",
            show_default="~/.cache/spikein",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        option(
            "--store FOLDER",
            "Folder of artifacts: what was scored before is not scored again.",
            show_default="~/.cache/spikein/store",
        ),
    ] = None,
    executor: Annotated[
        str | None,
        option(
            "--executor NAME",
            "Where scores are made: a name that [cyan]spikein executors[/] lists, or "
            "[cyan]FILE.py:NAME[/]; by default in this process.",
        ),
    ] = None,
    as_json: AsJson = False,
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
    _check_of_one_kind(context, server)
    from detect.policy import ScoringPolicy
    from inject.server.address import Server
    from spikein.progress import show_progress
    from spikein.scoring.detect_file import DetectFileRequest, detect_file

    at = None
    if server is not None:
        at = Server(
            base_url=server,
            model=model,
            api=api,
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
            bos=bos,
            long=long,
            score_first=score_first,
            inverse_temperatures=tuple(inverse_temperature or ()),
        ),
        device=device,
        dtype=dtype,
        device_map=device_map,
        batch_tokens=batch_tokens,
        revision=revision,
        trust_remote_code=trust_remote_code,
        store=store,
        executor=executor,
        cache=cache,
        server=at,
        send_protected=tuple(send_protected or ()),
    )
    with show_progress() as progress:
        result = detect_file(request, progress, _say_estimate)
    for note in result.notes:
        warn(note)
    if as_json:
        print_json(result)
    else:
        print_result(result)


def _check_of_one_kind(context: typer.Context, server: str | None) -> None:
    """Refuse options that would have no influence, before any work."""
    unused = []
    for name in _OF_SERVER if server is None else _OF_MODEL:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            unused.append(f"--{name.replace('_', '-')}")
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
