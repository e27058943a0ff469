"""arXivTection (Duarte et al. 2024): passages of 50 arXiv papers, each with three paraphrases.

Read from the hub, or from the authors' CSV. Passages have 150 words or so, some thirty to a paper.
"""

from collections.abc import Iterator

from inject.examples.datasets.source import Dataset, DatasetSource, placed_rows
from inject.examples.datasets.verbatim_passages import PassageOptions, passage_rows
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset

_HUB = HubDataset("avduarte333/arXivTection", "train")


def arxivtection_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields text, document."""
    options = PassageOptions.model_validate(source.options)
    return passage_rows(placed_rows(source, _HUB, what="arxivtection"), options)


DATASET = Dataset(
    name="arxivtection",
    summary="arXivTection: passages of arXiv papers, with three paraphrases each (DE-COP).",
    template="{text}",
    rows=arxivtection_rows,
    hub=_HUB.id,
    paraphrases=True,
    options=PassageOptions,
)
