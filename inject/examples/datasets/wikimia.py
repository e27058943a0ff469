"""WikiMIA (Shi et al. 2024): events of Wikipedia, cut to 32, 64, 128 or 256 words.

Read from the hub, whose splits are the lengths (`split: WikiMIA_length32`; by default 64 words), or
from JSON Lines `{input, label}`. `label` is its authors' assumption about other people's models: 1
for events before 2017, 0 for events of 2023. An experiment makes members by itself, and so uses the
events of 2023 by default: earlier models have not seen them, and both sides of the pool have the
same dates. The benchmark with its own labels is `spikein detect --benchmark wikimia-64`.
"""

from typing import Literal

from inject.examples.datasets.source import (
    LABELS,
    benchmark,
    place_id,
    text_field,
    zero_or_one,
)
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow
from inject.settings import Settings


class WikimiaOptions(Settings):
    """Options of `wikimia`."""

    events: Literal["new", "old", "all"] = "new"
    """Events of 2023, events before 2017, or both."""


def wikimia_row(row: PlacedRow, options: WikimiaOptions) -> Row | None:
    """Return a row with the field text; None for an event that is skipped."""
    label = zero_or_one(row, "label")
    if label not in LABELS[options.events]:
        return None
    return Row(
        fields={"text": text_field(row, "input").strip()},
        source_id=place_id(row),
        stratum=label if options.events == "all" else "",
    )


DATASET = benchmark(
    wikimia_row,
    name="wikimia",
    summary="WikiMIA: events of Wikipedia in texts of one length.",
    template="{text}",
    hub=HubDataset("swj0419/WikiMIA", "WikiMIA_length64"),
    options=WikimiaOptions,
)
