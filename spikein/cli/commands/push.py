"""`spikein push` publishes a bundle as a dataset on the Hugging Face hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from inject.errors import InputError, first_names
from inject.files import human_bytes
from spikein.cli.options import argument, option
from spikein.cli.output import require_agreement, say, warn

if TYPE_CHECKING:
    from detect.ground_truth.hub_bundle import Push


def push(
    bundle: Annotated[Path, argument("BUNDLE", "A folder written by [cyan]spikein bundle[/].")],
    hub_id: Annotated[
        str, argument("OWNER/NAME", "The dataset on the hub: new, or already with a bundle.")
    ],
    private: Annotated[bool, option("--private", "Make a new dataset private.")] = False,
    revision: Annotated[
        str | None,
        option("--revision BRANCH", "Commit to this branch, created if new.", show_default="main"),
    ] = None,
    message: Annotated[
        str | None,
        option("--message TEXT", "Set the commit message.", show_default="the run and the content"),
    ] = None,
    licence: Annotated[
        str | None,
        option(
            "--license ID", "Put this licence on the card: a hub id such as [cyan]cc-by-4.0[/]."
        ),
    ] = None,
    yes: Annotated[bool, option("--yes", "Upload without confirmation.")] = False,
) -> None:
    """Publish a bundle as a dataset on the Hugging Face hub, with a card.

    Every file is checked first, and the destination is shown. The bundle is uploaded as one commit,
    so it is never visible in part; an earlier bundle stays under its own commit. After an
    interrupted upload, run the command again to resume. Only the token in [cyan]HF_TOKEN[/] is
    used; it needs write access.

    [bold]Examples[/]

      spikein push quickstart.bundle me/quickstart-truth --private

      spikein push quickstart.bundle me/quickstart-truth --license cc-by-4.0 --yes

      spikein validate my_detector.py:score hf://datasets/me/quickstart-truth
    """
    from detect.ground_truth.hub_bundle import prepare_push, push_bundle

    prepared = prepare_push(bundle, hub_id, private=private, branch=revision, licence=licence)
    _show(prepared)
    if not yes:
        refusal = InputError(
            "nothing was uploaded: confirmation needs a terminal or --yes",
            where=hub_id,
            hint="Add --yes to upload without confirmation.",
        )
        require_agreement("Upload it?", refusal, declined="Nothing was uploaded.")
    commit = push_bundle(prepared, message=message)
    if commit == prepared.place.commit:
        say("Nothing changed: this bundle is already published.")
    say(f"Commit: {commit}")
    say(f"Judge by it: spikein validate FILE.py:NAME hf://datasets/{hub_id}@{commit}", style="bold")


def _show(push: "Push") -> None:
    place = push.place
    seen = "private" if place.private else "public"
    kind = f"a new {seen} dataset" if place.new else f"the {seen} dataset"
    say(f"{push.path}: {push.rows:,} rows, {human_bytes(push.size)}, content {push.content[:12]}.")
    say(f"Destination: {kind} {place.id}, branch {place.branch}.")
    if place.commit and place.files:
        say(f"The present content stays as commit {place.commit[:12]}.")
    if n_readable := push.rows - push.withheld:
        warn(f"It includes the texts of {n_readable:,} rows: you must comply with their licences.")
    if push.paths:
        warn(f"Its experiment names files of this machine: {first_names(push.paths, 3)}.")
    if push.withheld:
        warn(
            f"{push.withheld:,} rows are protected: their texts are not inside. Do not publish the "
            "models: the texts could be recovered from them."
        )
