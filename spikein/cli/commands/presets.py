"""`spikein presets`: list the experiments that come with spikein."""

from typing import TYPE_CHECKING, Annotated

from spikein.cli import completion
from spikein.cli.options import argument, option
from spikein.cli.output import print_json, say, short_number, with_noun

if TYPE_CHECKING:
    from spikein.estimates.presets import Preset


_FOLDERS = {
    "": "No data, minutes",
    "studies": "Designed studies, hours on two cores",
    "small": "Finish on two cores",
    "paper": "The published experiments, for GPUs",
    "gpu": "A day on one GPU",
}
"""Titles of the folders of `configs`."""


def presets(
    names: Annotated[
        list[str] | None,
        argument("[NAME]...", "Presets to show in full.", autocompletion=completion.presets),
    ] = None,
    as_json: Annotated[bool, option("--json", "Print only a JSON list.")] = False,
) -> None:
    """List the shipped experiments: question, size, time, replicated paper and required data.

    A named preset is shown with the head of its file, which has the published
    numbers, and with the commands that run it.

    [bold]Examples[/]

      spikein presets

      spikein presets frequency

      spikein presets --json > presets.json
    """
    from spikein.estimates.presets import GPU_HOURS_ARE, MINUTES_ARE, head_of
    from spikein.estimates.presets import presets as find_presets

    chosen = find_presets(names or ())
    if as_json:
        print_json([vars(preset) for preset in chosen])
        return
    if not names:
        _print_list(chosen)
        say(
            f"Minutes: on {MINUTES_ARE}. GPU-hours: {GPU_HOURS_ARE}. Tokens: trained by all models."
        )
        say("spikein presets NAME shows a preset in full, and how to run it.", style="dim")
        return
    for preset in chosen:
        say(preset.name, style="bold")
        say(head_of(preset.name))
        say("")
        say(_facts(preset))
        say(*(f"  {command}" for command in preset.commands()))
        if preset.fetched:
            say(f"  spikein run {preset.name} data=hf://presets")
            say("  (this also fetches the data, into the user's cache)", style="dim")
        say("")


def _print_list(presets: "list[Preset]") -> None:
    folder = None
    for preset in presets:
        if preset.folder != folder:
            folder = preset.folder
            say("")
            say(_FOLDERS[folder], style="bold")
        say(f"{preset.name}: {preset.question}", style="cyan")
        say(f"    {_facts(preset)}")
    say("")


def _facts(preset: "Preset") -> str:
    """Return size, time, replicated paper and data on one line."""
    hours, size = preset.gpu_hours, ""
    if preset.arms is not None:
        tokens = short_number(preset.tokens)
        size = f"{with_noun(preset.arms, 'arm')}, {tokens} tokens, {preset.model}"
    # Users bring the texts of an unlearning audit.
    data = ", ".join(preset.data) or ("none" if preset.arms else "texts of your own")
    facts = (
        size,
        preset.time if hours is None else f"{hours:.2g} GPU-hours",
        f"replicates {preset.replicates}" if preset.replicates else "",
        f"data: {data}",
    )
    return "; ".join(text for text in facts if text)
