"""`spikein detect`: score any file of texts with any model, no experiment needed."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from spikein.cli import completion
from spikein.cli.options import AsJson, StepsExecutor, StepsStore, argument, option
from spikein.cli.output import (
    print_json,
    print_rows,
    require_agreement,
    say,
    short_number,
    tell,
    time_in_words,
    warn,
    with_noun,
)
from spikein.progress import duration

if TYPE_CHECKING:
    from inject.server.client import RequestEstimate
    from spikein.scoring.options import ScoredServer
    from spikein.scoring.scored_rows import RowsPlan

_SHARING = ", cdd:samples=10:temperature=1:top_k=50 to share the samples of samia"


def detect(
    model: Annotated[
        str,
        option(
            "--model PATH",
            "The model to test: a folder (of a model, or of a LoRA adapter that names its "
            "base), a hub id, or with [cyan]--server[/] the model's name on the server.",
        ),
    ],
    examples: Annotated[
        str,
        option(
            "--examples FILE",
            "Rows with [cyan]text[/] or [cyan]input[/], optional [cyan]id[/], "
            "[cyan]label[/] (1 = member), [cyan]group[/], in upper or lower case: JSON "
            "Lines, JSON, Parquet, CSV or TSV, also as .gz or .zst; or a file on the hub: "
            "[cyan]hf://datasets/OWNER/NAME[@REVISION]/FILE[/].",
        ),
    ],
    settings: Annotated[
        list[str] | None,
        argument(
            "KEY=VALUE",
            "Set how the model is queried and what detectors receive: the keys of "
            "[cyan]detect[/] in an experiment file, and [cyan]held_out[/], [cyan]revision[/], "
            "[cyan]trust_remote_code[/], [cyan]server.api[/] … (docs/experiment-file.md in the "
            "repository lists all).",
        ),
    ] = None,
    detectors: Annotated[
        str | None,
        option(
            "--detectors LIST",
            "[cyan]all[/], or names with parameters such as "
            "[cyan]min_k:k=0.2,zlib[/] or [cyan]surp:entropy=2.0:k=40[/] (listed by `spikein "
            "detectors`); [cyan]FILE.py:NAME[/] for one of your own.",
            show_default="all",
            autocompletion=completion.detectors,
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        option(
            "--benchmark NAME",
            "The benchmark of the rows: [cyan]wikimia-32[/], [cyan]-64[/], [cyan]-128[/], "
            "[cyan]-256[/], [cyan]mimir[/], [cyan]arxivtection[/], [cyan]toaa[/], "
            "[cyan]hubble[/], [cyan]checkmia[/], [cyan]olmomia[/], [cyan]rows[/]. The rows are "
            "checked, and `blind` is reported alongside every number.",
        ),
    ] = None,
    subset: Annotated[
        str | None,
        option("--subset NAME", "Condition of [cyan]toaa[/], or copies of [cyan]hubble[/]."),
    ] = None,
    limit: Annotated[
        int | None,
        option(
            "--limit N",
            "Read only the first N rows; of [cyan]toaa[/], [cyan]hubble[/] and [cyan]checkmia[/] "
            "those of each side and part.",
        ),
    ] = None,
    text_column: Annotated[
        str | None,
        option("--text-column NAME", "Column of the text.", show_default="text or input"),
    ] = None,
    label_column: Annotated[
        str | None,
        option(
            "--label-column NAME",
            "Column of the label; [cyan]labels.seen=true[/] defines labels other than 0 and 1.",
            show_default="label",
        ),
    ] = None,
    ids_column: Annotated[
        str | None,
        option("--ids-column NAME", "Column of token ids, scored as they are, not of a text."),
    ] = None,
    ids_start_column: Annotated[
        str | None,
        option("--ids-start-column NAME", "Column of the first position of a row to score."),
    ] = None,
    delimiter: Annotated[
        str | None,
        option(
            "--delimiter SIGN",
            "CSV/TSV delimiter, or [cyan]tab[/].",
            show_default="found in the first line",
        ),
    ] = None,
    server: Annotated[
        str | None,
        option(
            "--server URL",
            "Query the model on an OpenAI-compatible server at this address, such as "
            "[cyan]http://localhost:8000/v1[/]. Only detectors that read generated text run, or "
            "log-probabilities of a given text if the server returns them (vLLM does).",
        ),
    ] = None,
    out: Annotated[
        Path,
        option(
            "--out FILE",
            "Write the scores here: [cyan].parquet[/], [cyan].csv[/] or [cyan].jsonl[/].",
            show_default=True,
        ),
    ] = Path("scores.parquet"),
    dry_run: Annotated[
        bool,
        option("--dry-run", "List the steps and their cost; score nothing."),
    ] = False,
    yes: Annotated[
        bool,
        option("--yes", "Send any number of requests to a server without confirmation."),
    ] = False,
    store: StepsStore = None,
    executor: StepsExecutor = None,
    as_json: AsJson = False,
) -> None:
    """Score the rows of any file with any causal language model.

    A higher score always means: more likely seen in training.
    If the rows have labels, a table of AUCs and true-positive rates with intervals is printed.

    [bold]Examples[/]

      spikein detect --model EleutherAI/pythia-160m --examples rows.jsonl

      spikein detect --model my/model --examples my.csv --detectors min_k:k=0.2,zlib long=truncate

      spikein detect --model my/model --examples hf://datasets/OWNER/NAME@main/test.jsonl \
--limit 100 --text-column passage --label-column split labels.train=true labels.test=false

      spikein detect --model my/model --examples rows.jsonl --detectors loss,my_detector.py:score

      spikein detect --model my/model --examples rows.jsonl reference=my/base held_out=other.jsonl

      spikein detect --model my/model --examples rows.jsonl --out scores.csv --json > table.json

      spikein detect --model my/model --benchmark wikimia-64 --examples 64.jsonl dtype=bfloat16

      spikein detect --model sbordt/OLMo-2-179M-Exp --benchmark toaa --subset random_8tok_16x \
--examples data/detect/toaa/train.parquet reference=sbordt/OLMo-2-179M

      spikein detect --server http://localhost:8000/v1 --model my-model --examples rows.jsonl \
--dry-run

      spikein detect --server https://api.openai.com/v1 --model gpt-4o-mini --examples rows.jsonl
      server.api=chat server.api_key_variable=OPENAI_API_KEY server.concurrency=4
    """
    from spikein.cli.scores_output import print_result, summary
    from spikein.config.overrides import read_settings
    from spikein.progress import show_progress
    from spikein.scoring.detect_file import plan_file, score_file
    from spikein.scoring.options import ScoringOptions
    from spikein.scoring.scored_rows import count_requests

    overrides = [*(settings or ())]
    if server is not None:
        overrides.append(f"server.base_url={json.dumps(server)}")
    settled = {
        "limit": limit,
        "text_column": text_column,
        "label_column": label_column,
        "ids_column": ids_column,
        "ids_start_column": ids_start_column,
        "subset": subset,
        "delimiter": delimiter,
        "detectors": detectors,
        "store": store,
        "executor": executor,
    }
    settled = {name: value for name, value in settled.items() if value is not None}
    options = read_settings(ScoringOptions, None, overrides, settled)
    plan = plan_file(examples, model, out, options, benchmark=benchmark)
    with show_progress() as progress:
        counted = count_requests(plan, progress)
    for remote, requests in counted:
        _say_requests(plan, requests, remote)
    if dry_run:
        estimates = {
            step: estimate for _, requests in counted for step, estimate in requests.items()
        }
        _print_plan(plan, estimates, as_json=as_json)
        return
    for remote, requests in counted if not yes else ():
        _confirm(plan, requests, remote)
    with show_progress() as progress:
        result = score_file(plan, out, progress=progress)
    warn(*result.notes)
    if as_json:
        print_json(summary(result, out))
    else:
        print_result(result, out)


def _say_requests(
    plan: "RowsPlan", requests: "Mapping[str, RequestEstimate]", server: "ScoredServer"
) -> None:
    """Print the planned requests to a server, and the detectors that need them."""
    total = _sum_requests(requests)
    price = server.price_per_million
    cost = ""
    if price is not None:
        amount = total.tokens_in * price.tokens_in + total.tokens_out * price.tokens_out
        cost = f", so {amount / 1e6:,.2f} at most by price_per_million"
    tell(
        f"{with_noun(total.requests, 'request')}, of which {total.kept:,} were answered "
        f"before; {total.requests - total.kept:,} to send: about {total.tokens_in:,} tokens in, at "
        f"most {total.tokens_out:,} out{cost}."
    )
    if len(requests) > 1:
        tell(f"Requests by detector: {_list_by_detector(plan, requests)}.")


def _sum_requests(requests: "Mapping[str, RequestEstimate]") -> "RequestEstimate":
    from inject.server.client import RequestEstimate

    return RequestEstimate(
        *map(sum, zip(RequestEstimate(0, 0, 0, 0), *requests.values(), strict=True))
    )


def _list_by_detector(plan: "RowsPlan", requests: "Mapping[str, RequestEstimate]") -> str:
    """Return `cdd 1,200; samia and ngram_coverage 240`, most requests first."""
    counted: Counter[str] = Counter()
    for digest, estimate in requests.items():
        names = " and ".join(plan.detectors_of.get(digest, ("flagged rows",)))
        counted[names] += estimate.requests
    return "; ".join(f"{names} {count:,}" for names, count in counted.most_common())


def _confirm(
    plan: "RowsPlan", requests: "Mapping[str, RequestEstimate]", server: "ScoredServer"
) -> None:
    """Ask before many requests are sent.

    Raises:
        InputError: without a terminal.
        typer.Exit: when the user declines.
    """
    from inject.errors import InputError

    total = _sum_requests(requests)
    to_send = total.requests - total.kept
    if to_send <= server.confirm_above:
        return
    dear = _list_by_detector(plan, requests)
    refusal = InputError(
        f"{to_send:,} requests would be sent, more than {server.confirm_above:,} "
        f"(server.confirm_above); confirmation needs a terminal or --yes; {dear}",
        where=server.base_url,
        hint="Add --yes to send them, or send fewer: --limit N for fewer rows, --detectors "
        f"for detectors with fewer requests{_SHARING if 'cdd' in dear else ''}.",
    )
    require_agreement(f"Send {to_send:,} requests?", refusal, declined="Nothing was sent.")


def _print_plan(
    plan: "RowsPlan", requests: "Mapping[str, RequestEstimate]", *, as_json: bool
) -> None:
    """Print the steps of a dry run and their total cost."""
    from spikein.cli.scores_output import rows_counted
    from spikein.scoring.detect_file import planned_steps

    steps = planned_steps(plan, requests)
    names = list(dict.fromkeys(setting.name for setting in plan.settings))
    counts = rows_counted(plan.rows)
    if as_json:
        print_json({**counts, "detectors": names, "steps": steps, "notes": plan.notes})
        return
    warn(*plan.notes)
    print_rows(
        {
            "step": step.kind,
            "what": step.label,
            "for": "all" if step.kind in ("examples", "scores") else ", ".join(step.detectors),
            "state": step.state,
            "tokens read": step.tokens and f"~{short_number(step.tokens)}",
            "requests": step.requests and step.requests.requests - step.requests.kept,
            "time": "" if step.seconds is None else f"~{duration(step.seconds)}",
        }
        for step in steps
    )
    members = counts["members"]
    sides = "" if members is None else f" ({with_noun(members, 'member')})"
    seconds = [step.seconds for step in steps if step.to_do]
    todo = f"{len(seconds)} of {with_noun(len(steps), 'step')} to do"
    say(
        f"{with_noun(len(plan.rows.texts), 'row')}{sides}, {with_noun(len(names), 'detector')}; "
        f"{', '.join(part for part in (todo, time_in_words(seconds)) if part)}. Nothing was scored."
    )
