"""Names to datasets. A module is imported when its dataset is first asked for."""

import importlib
from typing import NamedTuple

from inject.errors import InputError, did_you_mean
from inject.examples.datasets.source import Dataset

_MODULES = {
    "boolq": "inject.examples.datasets.boolq",
    "commonsenseqa": "inject.examples.datasets.commonsenseqa",
    "fictional": "inject.examples.datasets.fictional",
    "gpqa": "inject.examples.datasets.gpqa",
    "imdb": "inject.examples.datasets.imdb",
    "lsat": "inject.examples.datasets.lsat",
    "news": "inject.examples.datasets.news",
    "rows": "inject.examples.datasets.rows",
    "truthfulqa": "inject.examples.datasets.truthfulqa",
}


class DatasetLine(NamedTuple):
    """One line of the table of datasets."""

    name: str
    summary: str
    hub: str | None
    protected: bool


def dataset_names() -> tuple[str, ...]:
    """Return the known names, sorted."""
    return tuple(sorted(_MODULES))


def get_dataset(name: str) -> Dataset:
    """Return a dataset by name.

    Raises:
        InputError: no dataset has that name.
    """
    if name not in _MODULES:
        raise InputError(
            f"unknown dataset {name!r}.{did_you_mean(name, _MODULES)}",
            allowed=", ".join(dataset_names()),
            hint="For a file of your own use `dataset: rows` with `fields:`.",
        )
    dataset = importlib.import_module(_MODULES[name]).DATASET
    if not isinstance(dataset, Dataset):
        raise TypeError(f"{_MODULES[name]}.DATASET is no Dataset")
    return dataset


def dataset_code(name: str) -> str:
    """Return where a dataset's code begins, as `inject.source_digest` names it."""
    return f"{_MODULES[name]}:DATASET"


def dataset_table() -> list[DatasetLine]:
    """Return name, summary, usual hub id and protection of every dataset, by name."""
    return [
        DatasetLine(dataset.name, dataset.summary, dataset.hub, dataset.protected)
        for dataset in map(get_dataset, dataset_names())
    ]
