"""WikiMIA (Shi et al. 2024): events of Wikipedia, cut to 32, 64, 128 or 256 words.

Read from the hub, whose splits are the lengths (`split: WikiMIA_length32`; 64 words where left
out), or from JSON Lines `{input, label}`. `label` says what its authors believe of
other people's models: 1 for events before 2017, 0 for events of 2023. An experiment makes members
of its own, and so takes the events of 2023 unless others are asked for: models of before have not
seen them, and both sides of the pool have the same dates. The benchmark with its own labels is
`spikein detect --benchmark wikimia-64`.
"""

from collections.abc import Iterator
from typing import Literal

from inject.errors import InputError
from inject.examples.datasets.source import (
    Dataset,
    DatasetSource,
    place_id,
    placed_rows,
    text_field,
)
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.settings import Settings

_HUB = HubDataset("swj0419/WikiMIA", "WikiMIA_length64")
_LABELS = {"new": ("0",), "old": ("1",), "all": ("0", "1")}


class WikimiaOptions(Settings):
    """Options of `wikimia`."""

    events: Literal["new", "old", "all"] = "new"
    """Events of 2023, events before 2017, or both."""


def wikimia_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; field text."""
    options = WikimiaOptions.model_validate(source.options)
    for row in placed_rows(source, _HUB, what="wikimia"):
        label = text_field(row, "label").strip()
        if label not in _LABELS["all"]:
            raise InputError(f"unknown label {label!r}.", where=row.place, allowed="0 or 1")
        if label in _LABELS[options.events]:
            yield Row(
                fields={"text": text_field(row, "input").strip()},
                source_id=place_id(row),
                stratum=label if options.events == "all" else "",
            )


DATASET = Dataset(
    name="wikimia",
    summary="WikiMIA: events of Wikipedia in texts of one length.",
    template="{text}",
    rows=wikimia_rows,
    hub=_HUB.id,
    options=WikimiaOptions,
)
