"""Datasets, and the sources of their rows.

A dataset module has one constant, `DATASET: Dataset`: a name, a default template and a function
from a `DatasetSource` to `Row`s. Rows come from a local file in the original format or from the hub
by id; either way they stream, so a reader has one row in memory at a time. A benchmark of one place
on the hub is a function from one raw row to one `Row` (`benchmark`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from inject.digest import text_digest
from inject.errors import InputError
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset, hub_rows
from inject.reading.rows import PlacedRow, read_rows
from inject.settings import Settings
from inject.words import words_of

Options = TypeVar("Options", bound=Settings)
FieldPath = str | Sequence[str]
"""A dotted path in a row, or several: one an option."""


class NoOptions(Settings):
    """The options of a dataset that has none."""


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """Which rows of a dataset to read."""

    path: str | None = None
    """A file, folder or glob in the dataset's original format; None means the hub."""
    split: str | None = None
    """The hub split; None means the dataset's usual one."""
    commits: Mapping[str, str] = field(default_factory=dict)
    """Hub id -> the commit to read, so that the content read is the content hashed."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The dataset's own options as plain values, checked and with defaults filled in;
    `MyOptions.model_validate(source.options)` gives them back typed."""
    fields: Mapping[str, FieldPath] = field(default_factory=dict)
    """Field name -> dotted path in the row; only for datasets with `maps_fields`."""
    seed: int
    """The key of the dataset's random draws: the order of options, the invented facts."""
    limit: int | None = None
    """At most this many rows are of use; None means all. Always set for an endless dataset."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One dataset: its name, how its rows are read and how they are rendered."""

    name: str
    """The name in experiment files."""
    summary: str
    """One sentence for `spikein datasets`."""
    template: str
    """The default template (see `inject.examples.template`); the usual evaluation format."""
    rows: Callable[[DatasetSource], Iterator[Row]]
    """Yields the rows in a fixed order; a pure function of the source and its files."""
    alternatives: tuple[str, ...] = ()
    """Default templates for rows that lack a field of `template`, tried in this order."""
    hub: str | None = None
    """The usual hub id; None if there is none."""
    hub_parts: tuple[str, ...] = ()
    """All hub ids, if the dataset is spread over several repositories."""
    protected: bool = False
    """True: the text never appears in output made to be shared."""
    paraphrases: bool = False
    """True: its rows bring three paraphrases each (`Row.paraphrases`)."""
    endless: bool = False
    """True: rows are generated on demand, as many as `DatasetSource.limit`."""
    seeded: bool = False
    """True: the rows' texts depend on the experiment's seed (`DatasetSource.seed` is read)."""
    seeded_by: str | None = None
    """The option, a boolean, without which it does not."""
    options: type[Settings] = NoOptions
    """The settings class of the dataset's options; every field has a default."""
    unidentified: frozenset[str] = frozenset()
    """Names of options that do not affect the content, such as a password."""
    maps_fields: bool = False
    """True: the user maps each field to its path in a row."""

    def follows_seed(self, options: Mapping[str, Any]) -> bool:
        """Return whether the rows' texts differ from seed to seed under checked options."""
        return self.seeded and (self.seeded_by is None or bool(options[self.seeded_by]))

    def hub_ids(self) -> tuple[str, ...]:
        """Return the ids of all repositories on the hub that contain the dataset."""
        return self.hub_parts or ((self.hub,) if self.hub else ())


def benchmark(
    read: Callable[[PlacedRow, Options], Row | None],
    *,
    name: str,
    summary: str,
    template: str,
    hub: HubDataset,
    paraphrases: bool = False,
    options: type[Options] = NoOptions,  # type: ignore[assignment]
) -> Dataset:
    """Return the dataset whose rows are one each of a file's, or of the hub's.

    Args:
        read: from a raw row and the options to a row; None leaves it out.
        name: as of `Dataset`, and so are `summary`, `template`, `paraphrases` and `options`.
        summary: see there.
        template: see there.
        hub: the place on the hub.
        paraphrases: see there.
        options: see there.
    """

    def rows(source: DatasetSource) -> Iterator[Row]:
        chosen = options.model_validate(source.options)
        for raw in placed_rows(source, hub, purpose=name):
            row = read(raw, chosen)
            if row is not None:
                yield row

    return Dataset(
        name=name,
        summary=summary,
        template=template,
        rows=rows,
        hub=hub.id,
        paraphrases=paraphrases,
        options=options,
    )


def placed_rows(source: DatasetSource, hub: HubDataset, *, purpose: str) -> Iterator[PlacedRow]:
    """Yield the raw rows of a source: of its local files, or of the hub if it names none.

    Args:
        source: path, or split and commits.
        hub: the place on the hub.
        purpose: names the dataset in error messages.

    Raises:
        InputError: a file that cannot be read, or a hub that cannot be reached.
    """
    if source.path is not None:
        return read_rows(source.path, purpose=purpose)
    return hub_rows(
        hub._replace(split=source.split or hub.split), revision=source.commits.get(hub.id)
    )


def passage_group(text: str) -> str:
    """Return a group name for all rows that share a passage: 16 hex digits of its words' SHA-256.

    Capitals, punctuation and blanks make no passage another one (`inject.words`); a text without
    any word goes by its letters.
    """
    return text_digest(" ".join(words_of(text) or text.split()))[:16]


def place_id(row: PlacedRow) -> str:
    """Return the place of a row without its folders: the same on every machine."""
    return row.place.replace("\\", "/").rsplit("/", 1)[-1]


def text_field(row: PlacedRow, name: str, *others: str, required: bool = True) -> str:
    """Return a text of a row unchanged; None and numbers become their plain text.

    Args:
        row: the row.
        name: of the field.
        others: alternative names of the field.
        required: reject a row without it; otherwise its text is empty.

    Raises:
        InputError: no such field; names the place and the row's fields.
    """
    present = next((candidate for candidate in (name, *others) if candidate in row.values), None)
    if present is None and required:
        fields = ", ".join(sorted(map(str, row.values)))
        raise InputError(
            f"the row has no field {name!r}; it has {fields or 'none'}.",
            where=row.place,
            hint="Is this the dataset's original format?",
        )
    value = None if present is None else row.values[present]
    return "" if value is None else str(value)


LABELS = {"new": ("0",), "old": ("1",), "all": ("0", "1")}
"""Options of a benchmark whose label 1 means older than other people's models."""


def zero_or_one(row: PlacedRow, name: str) -> str:
    """Return a row's label.

    Raises:
        InputError: neither 0 nor 1.
    """
    label = text_field(row, name).strip()
    if label not in LABELS["all"]:
        raise InputError(f"unknown label {label!r}.", where=row.place, allowed="0 or 1")
    return label
