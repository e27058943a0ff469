"""Labels: which examples are members, and which of them share a passage."""

from collections.abc import Sequence

from detect.needs import Sides
from spikein.pipeline.steps.evidence.provider import Work


def read_labels(needs: Sequence[Sides], work: Work) -> None:
    """Read who is a member, and the groups."""
    work.fields["members"] = [row.side == "member" for row in work.rows]
    work.fields["groups"] = [f"{row.dataset}\n{row.group}" for row in work.rows]
