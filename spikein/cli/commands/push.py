"""`spikein push` publishes a bundle as a data set on the Hugging Face hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from inject.errors import InputError, first_names
from inject.files import human_bytes
from spikein.cli.options import argument, option
from spikein.cli.output import require_agreement, say, warn

if TYPE_CHECKING:
    from detect.ground_truth.hub_bundle import Push


def push(
    bundle: Annotated[Path, argument("BUNDLE", "A folder of [cyan]spikein bundle[/].")],
    hub_id: Annotated[
        str, argument("OWNER/NAME", "The data set on the hub: a new one, or one with a bundle.")
    ],
    private: Annotated[bool, option("--private", "A new data set is private.")] = False,
    revision: Annotated[
        str | None,
        option("--revision BRANCH", "The branch to commit to, made if new.", show_default="main"),
    ] = None,
    message: Annotated[
        str | None,
        option("--message TEXT", "Of the commit.", show_default="the run and the content"),
    ] = None,
    licence: Annotated[
        str | None,
        option("--license ID", "On the card, in the words of the hub, such as [cyan]cc-by-4.0[/]."),
    ] = None,
    yes: Annotated[bool, option("--yes", "Do not ask before anything is uploaded.")] = False,
) -> None:
    """Publish a bundle as a data set on the Hugging Face hub, with a card.

    Every file is checked first, and what would go where is shown. The bundle goes as one commit, so
    nobody sees half of it; a bundle that was there stays under its own commit. An upload that is
    cut off goes on when the command is run again. The token is that of [cyan]HF_TOKEN[/] alone, and
    needs write access.

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
            "nothing was uploaded: nobody is here to agree",
            where=hub_id,
            hint="Add --yes to upload without a question.",
        )
        require_agreement("Upload it?", refusal, declined="Nothing was uploaded.")
    commit = push_bundle(prepared, message=message)
    if commit == prepared.place.commit:
        say("Nothing changed: this bundle is there already.")
    say(f"Commit: {commit}")
    say(f"Judge by it: spikein validate FILE.py:NAME hf://datasets/{hub_id}@{commit}", style="bold")


def _show(push: "Push") -> None:
    place = push.place
    seen = "private" if place.private else "public"
    kind = f"a new {seen} data set" if place.new else f"the {seen} data set"
    say(f"{push.path}: {push.rows:,} rows, {human_bytes(push.size)}, content {push.content[:12]}.")
    say(f"Goes to {kind} {place.id}, branch {place.branch}.")
    if place.commit and place.files:
        say(f"What is there now stays as commit {place.commit[:12]}.")
    if shown := push.rows - push.withheld:
        warn(f"The texts of {shown:,} rows go with it: their licences are yours to keep.")
    if push.paths:
        warn(f"Its experiment names files of this machine: {first_names(push.paths, 3)}.")
    if push.withheld:
        warn(
            f"{push.withheld:,} rows are protected: their texts are not inside. Do not publish the "
            "models, which would let them be worked back."
        )
