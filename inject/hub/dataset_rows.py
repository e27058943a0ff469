"""Rows of datasets on the Hugging Face hub, at the commit that their identity names.

Code of a repository is never executed. The library keeps what it downloads in its cache; what is
streamed is not downloaded first.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from inject.errors import InputError, first_line
from inject.hub.resolver import resolve_commit
from inject.reading.rows import PlacedRow

_HINT = "Check the network, the id and your access to it, or give `path:` with a local file."


class HubDataset(NamedTuple):
    """The place of a dataset on the hub."""

    id: str
    split: str
    config: str | None = None


def hub_rows(place: HubDataset, *, revision: str | None) -> Iterator[PlacedRow]:
    """Yield the rows of one split, each with its number (`id:split row N`, from 1).

    Raises:
        InputError: an unreachable hub, or one without this id, configuration or split.
    """
    label = f"{place.id}:{place.split}"
    with hub_errors(label, hint=_HINT):
        loaded = load_hub_dataset(place, revision=revision, streaming=False)
        for number, values in enumerate(loaded, start=1):
            yield PlacedRow(f"{label} row {number}", dict(values))


def load_hub_dataset(place: HubDataset, *, revision: str | None, streaming: bool) -> Any:
    """Open one split at the commit of the revision; use it inside `hub_errors`.

    Raises:
        InputError: as `inject.hub.resolver.resolve_commit`; also the library's own errors.
    """
    import datasets

    return datasets.load_dataset(
        place.id,
        name=place.config,
        split=place.split,
        revision=resolve_commit("dataset", place.id, revision),
        streaming=streaming,
    )


@contextmanager
def hub_errors(label: str, *, hint: str) -> Iterator[None]:
    """Turn what the libraries raise while a dataset is read into one error with a remedy.

    Args:
        label: the dataset.
        hint: the remedy.
    """
    try:
        yield
    except InputError:
        raise
    # `datasets` raises whatever its readers raise: pyarrow, JSON, network, OSError, ValueError.
    except Exception as error:
        problem = f"cannot be read from the hub ({first_line(error)})"
        raise InputError(problem, where=label, hint=hint) from error
