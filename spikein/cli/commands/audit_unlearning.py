"""`spikein audit-unlearning`: does an unlearned model still know what it should have forgotten?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inject.errors import InputError
from spikein.cli.detect_options import DeviceMap, Dtype
from spikein.cli.output import Column, print_table, say, warn
from spikein.progress import task_progress

if TYPE_CHECKING:
    from spikein.api.unlearning_audit import UnlearningAudit

_NOT_SETTINGS = ("out", "config", "set_", "hide_texts")


def audit_unlearning(
    original: Annotated[
        str | None,
        typer.Argument(
            metavar="ORIGINAL",
            help="The model before unlearning: a folder or a hub id.",
            show_default=False,
        ),
    ] = None,
    unlearned: Annotated[
        str | None,
        typer.Argument(metavar="UNLEARNED", help="The model that is audited.", show_default=False),
    ] = None,
    retrained: Annotated[
        str | None,
        typer.Argument(
            metavar="RETRAINED",
            help="A model that was made like the original, and never saw the texts: with it the "
            "rule is calibrated.",
            show_default=False,
        ),
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(
            "--texts",
            metavar="FILE",
            help="What should be forgotten: a book ([cyan].txt[/]), or rows of texts "
            "([cyan].jsonl[/], [cyan].csv[/], [cyan].parquet[/]; [cyan].gz[/], [cyan].zst[/]); "
            "a folder or a glob of such files.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the result.")] = Path(
        "unlearning-audit"
    ),
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A YAML file of the same settings, or the name of one that comes with spikein "
            "([cyan]unlearning-whp[/]); options of the command win.",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A key, or a variable of the file; may be repeated.",
            show_default=False,
        ),
    ] = None,
    text_column: Annotated[
        str | None,
        typer.Option(
            "--text-column",
            metavar="NAME",
            help="Column of the text; [cyan]text[/] or [cyan]input[/] by default.",
            show_default=False,
        ),
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option(
            "--holdout",
            metavar="FILE",
            help="Texts like these that no model saw: they say whether the unlearned model works, "
            "and calibrate the rule, weaker, without a retrained model.",
            show_default=False,
        ),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="Rows of [cyan]question[/] and [cyan]answer[/] about the texts.",
            show_default=False,
        ),
    ] = None,
    detector: Annotated[
        str | None,
        typer.Option(
            "--detector",
            metavar="NAME",
            help="Whose score the ratio is of; [cyan]FILE.py:NAME[/] for one of your own.",
            show_default="min_k:k=0.2",
        ),
    ] = None,
    band: Annotated[
        str | None,
        typer.Option(
            "--band",
            metavar="HIGH",
            help="Ratios between 1/HIGH and HIGH are suspicious; or [cyan]LOW,HIGH[/].",
            show_default="1.15",
        ),
    ] = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            "--false-alarms",
            metavar="RATE",
            help="Share of false alarms that the calibrated band is to have.",
            show_default="0.05",
        ),
    ] = None,
    chunk_words: Annotated[
        int | None,
        typer.Option("--chunk-words", min=2, help="Words of a chunk.", show_default="512"),
    ] = None,
    prompt_words: Annotated[
        int | None,
        typer.Option(
            "--prompt-words",
            min=1,
            help="Words of a chunk that the models continue.",
            show_default="200",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            min=0,
            help="Continuations of each chunk; 0 writes none.",
            show_default="20",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            min=1,
            help="Longest continuation.",
            show_default="as the true one, at most 512",
        ),
    ] = None,
    all_chunks: Annotated[
        bool,
        typer.Option(
            "--all-chunks",
            help="Continue all chunks, not the suspicious ones and a sample of the others.",
        ),
    ] = False,
    others: Annotated[
        int | None,
        typer.Option(
            "--others",
            min=0,
            help="Chunks that are not suspicious and are continued, too, so that misses can be "
            "measured.",
            show_default="50",
        ),
    ] = None,
    embeddings: Annotated[
        str | None,
        typer.Option(
            "--embeddings",
            metavar="DIR",
            help="A sentence-transformers model: similarity by embeddings, too.",
            show_default=False,
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="PATH",
            help="A further model, for detectors that need one.",
            show_default=False,
        ),
    ] = None,
    frequency: Annotated[
        str | None,
        typer.Option(
            "--frequency",
            metavar="FILE",
            help="Texts to count tokens in, for detectors that need it.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Of the sampling.", show_default="0")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            help="[cyan]auto[/], [cyan]cpu[/], [cyan]cuda:1[/] …",
            show_default="auto",
        ),
    ] = None,
    dtype: Annotated[
        Dtype | None,
        typer.Option("--dtype", help="Number format of the models.", show_default="auto"),
    ] = None,
    device_map: Annotated[
        DeviceMap | None,
        typer.Option(
            "--device-map",
            help="[cyan]auto[/] spreads a large model over all devices.",
            show_default="none",
        ),
    ] = None,
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            "--batch-tokens",
            min=1,
            help="Padded tokens in one batch of scoring; no influence on the numbers.",
            show_default="chosen for the device",
        ),
    ] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Run code that a model's repository holds."),
    ] = False,
    hide_texts: Annotated[
        bool, typer.Option("--hide-texts", help="Show ids in the page, in place of texts.")
    ] = False,
) -> None:
    """Audit an unlearned model against the original: does it still know the texts?

    A chunk of a text is suspicious where both models find it about equally likely (Shi et al.
    2024). The models continue such chunks, and what they write is held against what stands there.
    Texts that no model saw, or a retrained model, say whether the unlearned model works, whether
    the original knew the texts, and how far the rule is to be trusted.

    [bold]Examples[/]

      spikein audit-unlearning my/model my/unlearned --texts book.txt

      spikein audit-unlearning my/model my/unlearned my/retrained --texts forget.jsonl --all-chunks

      spikein audit-unlearning my/model my/unlearned --texts book.txt --holdout other-book.txt

      spikein audit-unlearning --config unlearning-whp --set books=my/books
    """
    # Every option that is a setting has the setting's name.
    given = {key: value for key, value in locals().items() if key not in _NOT_SETTINGS}
    given |= {
        "band": _band(band),
        "dtype": dtype.value if dtype else None,
        "device_map": device_map.value if device_map else None,
    }
    given = {key: one for key, one in given.items() if one is not None and one is not False}
    from inject.shipped import AUDITS
    from spikein.api.unlearning_audit import run_audit
    from spikein.unlearning_audit.request import read_settings

    settings = read_settings(AUDITS.find(config) if config else None, set_ or [], given)
    with task_progress("audit", unit="") as on_done:
        found = run_audit(
            settings,
            out,
            hide_texts=hide_texts,
            progress=lambda what, done, total: on_done(done, total, what),
        )
    for note in found.notes:
        warn(note)
    _print_findings(found)
    say(f"Audit: {found.folder / 'audit.html'}", style="bold")


def _print_findings(audit: "UnlearningAudit") -> None:
    """Print every check and share with its interval, and the verdict."""
    from analysis.unlearning_audit.sentence import finding_lines, headline, question_sentence

    print_table(
        [Column("of the chunks"), Column("95 % interval in brackets"), Column("about")],
        finding_lines(audit.findings, audit.judgement),
    )
    say(headline(audit.findings, audit.judgement), style="bold")
    if audit.questions is not None:
        say(question_sentence(audit.questions))


def _band(given: str | None) -> tuple[float, float] | None:
    """Return the two ends that `--band` names: `1.15`, or `0.9,1.1`."""
    if given is None:
        return None
    try:
        ends = [float(part) for part in given.split(",")]
    except ValueError:
        ends = []
    if len(ends) == 1 and ends[0] > 1:
        return 1 / ends[0], ends[0]
    if len(ends) == 2:
        return ends[0], ends[1]
    raise InputError(
        f"{given!r} is no band", where="--band", allowed="a number above 1, or LOW,HIGH"
    )
