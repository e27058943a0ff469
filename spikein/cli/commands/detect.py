"""`spikein detect`: score any file of texts with any model, no experiment needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from spikein.cli import completion
from spikein.cli.detect_table import print_json, print_result
from spikein.cli.options import AsJson, StepsExecutor, StepsStore, argument, option
from spikein.cli.output import tell, warn, with_noun

if TYPE_CHECKING:
    from inject.server.client import Estimate


def detect(
    model: Annotated[
        str,
        option(
            "--model PATH",
            "The model to test: a folder (of a model, or of a LoRA adapter that names its "
            "base), a hub id, or with [cyan]--server[/] the name that the server knows it by.",
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
    settings: Annotated[
        list[str] | None,
        argument(
            "KEY=VALUE",
            "How the model is asked, and what detectors are given: the keys of [cyan]detect[/] in "
            "an experiment file, and [cyan]held_out[/], [cyan]revision[/], "
            "[cyan]trust_remote_code[/], [cyan]server.api[/] … (docs/experiment-file.md has all).",
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
    out: Annotated[
        Path,
        option(
            "--out FILE",
            "Where the scores go: [cyan].parquet[/], [cyan].csv[/] or [cyan].jsonl[/].",
            show_default=True,
        ),
    ] = Path("scores.parquet"),
    store: StepsStore = None,
    executor: StepsExecutor = None,
    as_json: AsJson = False,
) -> None:
    """Score the rows of any file with any causal language model.

    Higher scores always mean: more likely seen in training.
    Where the rows carry labels, a table of AUCs and true-positive rates with intervals is printed.

    [bold]Examples[/]

      spikein detect --model EleutherAI/pythia-160m --examples rows.jsonl

      spikein detect --model my/model --examples my.csv --detectors min_k:k=0.2,zlib long=truncate

      spikein detect --model my/model --examples rows.jsonl --detectors loss,my_detector.py:score

      spikein detect --model my/model --examples rows.jsonl reference=my/base held_out=other.jsonl

      spikein detect --model my/model --examples rows.jsonl --out scores.csv --json > table.json

      spikein detect --model my/model --benchmark wikimia-64 --examples 64.jsonl dtype=bfloat16

      spikein detect --server http://localhost:8000/v1 --model my-model --examples rows.jsonl

      spikein detect --server https://api.openai.com/v1 --model gpt-4o-mini --examples rows.jsonl
      server.api=chat server.api_key_variable=OPENAI_API_KEY server.concurrency=4
    """
    from spikein.progress import show_progress
    from spikein.scoring.detect_file import detect_file
    from spikein.scoring.options import ScoringOptions, read_settings

    overrides = [*(settings or ()), *([f"server.base_url={server}"] if server else ())]
    given = {"detectors": detectors, "store": store, "executor": executor}
    given = {name: value for name, value in given.items() if value is not None}
    options = read_settings(ScoringOptions, None, overrides, given)
    with show_progress() as progress:
        result = detect_file(
            examples,
            model,
            out,
            options,
            benchmark=benchmark,
            progress=progress,
            on_estimate=_say_estimate,
        )
    for note in result.notes:
        warn(note)
    if as_json:
        print_json(result)
    else:
        print_result(result)


def _say_estimate(estimate: "Estimate") -> None:
    """Print what a server will be asked, before it is asked."""
    to_send = estimate.requests - estimate.kept
    tell(
        f"{with_noun(estimate.requests, 'request')}, of which {estimate.kept:,} were answered "
        f"before; {to_send:,} to send: about {estimate.tokens_in:,} tokens in, at most "
        f"{estimate.tokens_out:,} out."
    )
