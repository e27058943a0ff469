"""The public datasets that the presets read: their place on the hub, and their conversion.

They are listed in `catalogue.yaml`. A `DataFile` is one file of the layout that presets read below
`data=DIR`, made of one file (or of a few) of a repository at a pinned commit. What is too large is
read in part: the first rows, or every n-th, so that the same rows come each time.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from inject.errors import unknown_name
from inject.settings import Settings


class DataFile(Settings):
    """One file of the layout."""

    path: str
    """Its path for presets, below the data folder."""
    hub: str
    """Id of the dataset on the hub."""
    commit: str
    """The pinned one: 40 hex digits, or its beginning, which must be that of the main branch."""
    sources: tuple[str, ...]
    """Paths in the repository, in the order in which they are read; `*` for any part of a name."""
    columns: tuple[str, ...]
    """Columns that the rows of the hub's file must have."""
    convert: str | None = None
    """The function of `conversions` that makes a row of the layout; it may leave rows out."""
    rows: int | None = None
    """Maximum number of rows, from the file's beginning; the rest is not read. None: all."""
    every: int = 1
    """Write every n-th row, beginning with the first."""

    def part(self) -> str:
        """Describe the selected rows; empty for all."""
        if self.rows is not None:
            return f"the first {self.rows:,} rows"
        return f"one row of {self.every}" if self.every > 1 else ""


class DataSet(Settings):
    """The files that are fetched by one name."""

    name: str
    """Its name for users."""
    what: str
    """A line about it."""
    licence: str
    """The licence on its own page, or that of its authors."""
    files: tuple[DataFile, ...]
    """The files made of it."""
    terms: str = ""
    """Conditions to accept before it is fetched; `` for none."""
    only_by_name: bool = False
    """Whether it is fetched only by its name, being large."""

    @property
    def pages(self) -> str:
        """The pages of its repositories on the hub, with their licences."""
        ids = dict.fromkeys(file.hub for file in self.files)
        return " ".join(f"https://huggingface.co/datasets/{hub_id}" for hub_id in ids)


@cache
def _catalogue() -> dict[str, DataSet]:
    from ruamel.yaml import YAML

    listed = YAML(typ="safe", pure=True).load(Path(__file__).with_suffix(".yaml"))
    sets = TypeAdapter(tuple[DataSet, ...]).validate_python(listed)
    return {data_set.name: data_set for data_set in sets}


def data_sets(names: Iterable[str] = (), *, with_large: bool = False) -> tuple[DataSet, ...]:
    """Return datasets by name, each once, in the order of the catalogue; all without a name.

    Args:
        names: their names.
        with_large: without a name, include those that are fetched only by name.

    Raises:
        InputError: an unknown name.
    """
    selected, by_name = list(names), _catalogue()
    for name in selected:
        if name not in by_name:
            raise unknown_name(
                "no dataset of this name can be fetched",
                name,
                by_name,
                where=name,
                hint="`spikein data list` describes each; a preset's name means all datasets it "
                "reads. Any other dataset: `path: hf://datasets/OWNER/NAME/FILE`.",
            )
    small = [name for name in by_name if with_large or not by_name[name].only_by_name]
    return tuple(by_name[name] for name in by_name if name in (selected or small))
