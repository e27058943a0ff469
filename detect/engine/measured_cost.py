"""What a step did cost, as it noted while it ran: `cost.json` in its artifact.

Any step may write one; whoever sums up costs reads them all in one way. A step that writes one
names `COST_FILE` among its volatile files: what a step cost says nothing of what it made, so it
enters no digest. The time of a whole step stands in its manifest.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

COST_FILE = "cost.json"


@dataclass(frozen=True, kw_only=True)
class MeasuredCost:
    """What a step asked of models."""

    passes: int | None = None
    """Texts that a model read, or prompts that it was given."""
    tokens_in: int | None = None
    """Tokens that were scored, or of prompts."""
    tokens_out: int | None = None
    """Tokens that a model wrote."""
    scoring_seconds: Mapping[str, float] = field(default_factory=dict)
    """Of a step of scores: seconds by detector, all its settings together."""


def write_cost(folder: Path, cost: MeasuredCost) -> None:
    """Write `cost.json` into a step's folder."""
    (folder / COST_FILE).write_text(json.dumps(asdict(cost), indent=1, sort_keys=True) + "\n")


def read_cost(folder: Path) -> MeasuredCost | None:
    """Return what a step noted; None if it noted nothing."""
    path = folder / COST_FILE
    if not path.is_file():
        return None
    return MeasuredCost(**json.loads(path.read_text(encoding="utf-8")))
