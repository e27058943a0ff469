"""`spikein audit-unlearning`: does an unlearned model still know what it should have forgotten?"""

from pathlib import Path
from typing import Annotated

import typer

from spikein.cli.options import (
    StepsExecutor,
    StepsStore,
    argument,
    former_option,
    option,
    replace_former,
)
from spikein.cli.output import say, show_parts, warn


def audit_unlearning(
    arguments: Annotated[
        list[str] | None,
        argument(
            "ORIGINAL UNLEARNED [RETRAINED] [KEY=VALUE]...",
            "The model before unlearning, the audited model, and one trained like "
            "the original but without the texts: folders or hub ids. Then settings, such as "
            "[cyan]samples=20[/], [cyan]detector=loss[/], [cyan]questions=FILE[/] "
            "(docs/unlearning.md in the repository lists all).",
        ),
    ] = None,
    texts: Annotated[
        str | None,
        option(
            "--texts FILE",
            "The texts to be forgotten: a book ([cyan].txt[/]), or rows of texts "
            "([cyan].jsonl[/], [cyan].csv[/], [cyan].parquet[/]; [cyan].gz[/], [cyan].zst[/]); "
            "a folder or a glob of such files.",
        ),
    ] = None,
    control_texts: Annotated[
        str | None,
        option(
            "--control-texts FILE",
            "Similar texts that no model saw. They show whether the unlearned model still works; "
            "without a retrained model they also calibrate the rule, less strictly.",
        ),
    ] = None,
    out: Annotated[Path, option("--out DIR", "Write the result here.", show_default=True)] = Path(
        "unlearning-audit"
    ),
    config: Annotated[
        str | None,
        option(
            "--config FILE",
            "A YAML file of the same settings, or the name of one that comes with spikein "
            "([cyan]unlearning-whp[/]).",
        ),
    ] = None,
    hide_texts: Annotated[
        bool, option("--hide-texts", "Show ids instead of texts in the page.")
    ] = False,
    store: StepsStore = None,
    executor: StepsExecutor = None,
    former_holdout: Annotated[
        str | None, former_option("--holdout FILE", "--control-texts")
    ] = None,
) -> None:
    """Audit an unlearned model against the original: does it still know the texts?

    A chunk of a text is suspicious if both models find it about equally likely (Shi et al.
    2024). The models continue such chunks, and their continuations are compared with the original
    text. Texts that no model saw, or a retrained model, show whether the unlearned model works,
    whether the original knew the texts, and how reliable the rule is. An interrupted audit resumes
    where it stopped.

    [bold]Examples[/]

      spikein audit-unlearning my/model my/unlearned --texts book.txt

      spikein audit-unlearning my/model my/unlearned my/retrained --texts forget.jsonl \
all_chunks=true

      spikein audit-unlearning my/model my/unlearned --texts book.txt --control-texts other.txt

      spikein audit-unlearning --config unlearning-whp books=my/books
    """
    from analysis.page.unlearning.audit_page import numbers_table
    from analysis.unlearning_audit.evidence import MODELS
    from inject.builtin_files import AUDITS
    from spikein.api.unlearning_audit import run_audit
    from spikein.config.overrides import read_settings
    from spikein.progress import show_progress
    from spikein.unlearning_audit.request import AuditSettings

    models = [argument for argument in arguments or () if "=" not in argument]
    overrides = [argument for argument in arguments or () if "=" in argument]
    if len(models) > len(MODELS):
        raise typer.BadParameter(f"{models[-1]!r} is a fourth model; settings are KEY=VALUE.")
    names = ("--holdout", "--control-texts")
    files = {"texts": texts, "holdout": replace_former(control_texts, former_holdout, names)}
    inputs = dict(zip(MODELS, models, strict=False))
    inputs |= {name: pattern for name, pattern in files.items() if pattern is not None}
    settings = read_settings(
        AuditSettings, AUDITS.find(config) if config else None, overrides, inputs
    )
    with show_progress() as progress:
        result = run_audit(
            settings,
            out.expanduser(),
            hide_texts=hide_texts,
            store=store,
            executor=executor,
            progress=progress,
        )
    warn(*result.record["notes"])
    table = numbers_table("What was found", result.findings.to_pylist(), result.record)
    show_parts([table] if table else [])
    say(result.headline, style="bold")
    say(f"Audit: {result.folder / 'audit.html'}", style="bold")
