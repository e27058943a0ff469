"""The user's settings of one dataset to be spiked, with its identity, and of the pool.

A `Contaminant` is checked whole when it is made: unknown datasets, options of the wrong type,
keys that the dataset could only ignore. Its identity contains the digests of its files, or the
commit of its hub repositories, never a path; a password does not enter.
"""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from inject.errors import InputError, InputErrors, did_you_mean
from inject.examples.datasets.registry import dataset_label, find_dataset, get_dataset
from inject.examples.datasets.source import Dataset
from inject.examples.template import parse_template
from inject.hub.resolver import identity_commit
from inject.reading.rows import content_digest, files_identity
from inject.settings import Settings

OptionValue = str | bool | int | float | None | list[str | bool | int | float | None]
_PLAIN_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


MAX_ROWS = 1_000_000
"""Of one side: all examples are in memory, at some 5 kB each."""
Rows = Annotated[int, Field(gt=0, le=MAX_ROWS)]


class PoolSettings(Settings):
    """How rows become members and non-members."""

    near_duplicate: Annotated[float, Field(gt=0, le=1)] | None = 0.7
    """Of rows of different groups whose word 3-grams overlap by this share (Jaccard), only one
    stays, within and between datasets; null keeps all."""
    min_tokens: Annotated[int, Field(ge=2)] = 8
    """Rows with fewer tokens are dropped and counted, since they occur by chance anywhere."""
    long_examples: Literal["error", "truncate", "drop", "split"] = "error"
    """Rows longer than the context (minus separators, if a copy must be inside one window): stop
    (`error`), cut (`truncate`) or `drop` them on both sides alike, or let copies span windows
    (`split`)."""
    max_tokens: Annotated[int, Field(ge=2)] | None = None
    """Rows with more tokens are cut to this number, at most the context, on both sides alike; null:
    see `long_examples`."""

    @model_validator(mode="after")
    def _check_lengths(self) -> "PoolSettings":
        if self.max_tokens is not None and self.max_tokens < self.min_tokens:
            raise ValueError(
                f"max_tokens: {self.max_tokens} is less than min_tokens, {self.min_tokens}, so no "
                f"row would be left; allowed: null, or {self.min_tokens} and more"
            )
        return self


class Contaminant(Settings):
    """One dataset whose examples are spiked or withheld."""

    # An option may be a password.
    model_config = ConfigDict(hide_input_in_errors=True)

    dataset: str
    """A name of `spikein datasets`, or `FILE.py:NAME` for your own."""
    name: Annotated[str, Field(pattern=rf"^({_PLAIN_NAME})?$")] = ""
    """Name in reports; by default the dataset's, or the NAME of `FILE.py:NAME`."""
    path: str | None = None
    """A file, folder or glob in the original format, here or on the hub; by default the dataset's
    usual place on the hub."""
    split: str | None = None
    """Hub split; by default the dataset's usual one."""
    revision: str | None = None
    """Branch, tag or commit on the hub; by default the newest."""
    fields: dict[str, str | list[str]] = Field(default_factory=dict)
    """For `rows`: field name to dotted path; for `options` also a list of paths."""
    template: str | None = None
    """Template of a row; by default the dataset's own."""
    members: Rows
    """Number of examples that are inserted."""
    nonmembers: Rows
    """Number of examples that are withheld."""
    held_out: Annotated[int, Field(ge=0, le=MAX_ROWS)] = 0
    """Further rows, neither trained on nor scored, from which detectors take shots, calibration and
    populations."""
    stratify: bool = True
    """Draw both sides in equal shares from each stratum (answer, section, …); strata that are too
    small count as one."""
    options: dict[str, OptionValue] = Field(default_factory=dict)
    """The dataset's own options."""

    @field_validator("options", mode="before")
    @classmethod
    def _dates_as_text(cls, values: Any) -> Any:
        # YAML reads 2019-07-01 as a date before we see it.
        if not isinstance(values, Mapping):
            return values
        return {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in values.items()
        }

    @model_validator(mode="before")
    @classmethod
    def _set_default_name(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and not values.get("name") and "dataset" in values:
            return {**values, "name": dataset_label(str(values["dataset"]))}
        return values

    @model_validator(mode="after")
    def _check_problems(self) -> "Contaminant":
        problems = _problems(self)
        if problems:
            raise ValueError("; ".join(problems))
        return self


def checked_options(dataset: Dataset, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dataset's options as plain values, defaults filled in.

    Raises:
        InputErrors: every unknown option, with a suggestion, and every value of a wrong type.
            The values themselves are not repeated: one may be a password.
    """
    fields = dataset.options.model_fields
    try:
        # By way of JSON, strictly: lists may become tuples and ISO texts dates, but no text
        # becomes a number or a boolean.
        options = dataset.options.model_validate_json(json.dumps(dict(values)), strict=True)
    except ValidationError as error:
        problems = []
        for detail in error.errors(include_input=False, include_url=False):
            key = ".".join(str(part) for part in detail["loc"])
            if detail["type"] == "extra_forbidden":
                problems.append(
                    f"options.{key}: unknown option of {dataset.name}."
                    f"{did_you_mean(key, fields)} Allowed: {', '.join(fields) or 'none'}."
                )
            else:
                problems.append(f"options.{key}: {detail['msg']}.")
        raise InputErrors(problems, title=f"{dataset.name}: wrong options.") from None
    return options.model_dump(mode="json")


def hub_commits(contaminant: Contaminant) -> dict[str, str]:
    """Return hub id -> commit for a contaminant from the hub; empty for a local one.

    Raises:
        InputError: an unreachable hub, or one without this id or revision.
    """
    if contaminant.path is not None:
        return {}
    return {
        hub_id: identity_commit("dataset", hub_id, contaminant.revision, label=f"dataset {hub_id}")
        for hub_id in get_dataset(contaminant.dataset).hub_ids()
    }


def contaminant_identity(contaminant: Contaminant) -> dict[str, Any]:
    """Return everything that affects a contaminant's examples, as canonical values.

    Files enter by name and SHA-256, hub repositories by id and commit.

    Raises:
        InputError: a missing file, or a hub that cannot be reached.
    """
    installed = find_dataset(contaminant.dataset)
    dataset: Dataset = installed.value
    options = checked_options(dataset, contaminant.options)
    own = {"name", "split", "fields", "members", "nonmembers", "stratify"}
    return {
        **contaminant.model_dump(include=own),
        "dataset": dataset.name,
        **({"plugin": installed.digest} if installed.digest else {}),
        "files": _files_identity(contaminant.path) if contaminant.path is not None else [],
        "hub": hub_commits(contaminant),
        "templates": list(templates(contaminant)),
        **({"held_out": contaminant.held_out} if contaminant.held_out else {}),
        "options": {
            name: value for name, value in options.items() if name not in dataset.unidentified
        },
    }


def templates(contaminant: Contaminant) -> tuple[str, ...]:
    """Return the templates for a contaminant's rows; the first that fits a row renders it."""
    if contaminant.template is not None:
        return (contaminant.template,)
    dataset = get_dataset(contaminant.dataset)
    return (dataset.template, *dataset.alternatives)


def _files_identity(path: str) -> list[dict[str, Any]]:
    if not path.lower().endswith(".zip"):
        return files_identity(path)
    file = Path(path)
    if not file.is_file():
        raise InputError("no such file.", where=path)
    return [{"name": file.name, "sha256": content_digest(file)}]


def _problems(contaminant: Contaminant) -> list[str]:
    try:
        dataset = get_dataset(contaminant.dataset)
    except InputError as error:
        return [str(error)]
    problems = []
    if contaminant.name == "all":
        problems.append("name: 'all' is the name of the pooled results; choose another")
    if contaminant.path is None and not dataset.hub and not dataset.endless:
        problems.append(f"path: {dataset.name} needs a file")
    if contaminant.path is not None and dataset.endless:
        problems.append(f"path: {dataset.name} makes its own rows and reads no file")
    for key in ("split", "revision"):
        if getattr(contaminant, key) is not None and (contaminant.path or not dataset.hub):
            problems.append(f"{key}: only for a dataset from the hub")
    if contaminant.fields and not dataset.maps_fields:
        problems.append(f"fields: {dataset.name} has a fixed format; use `dataset: rows` to map")
    problems += [
        f"fields.{name}: only `options` accepts several paths"
        for name, path in contaminant.fields.items()
        if not isinstance(path, str) and name != "options"
    ]
    if contaminant.template is not None:
        try:
            parse_template(contaminant.template)
        except InputError as error:
            problems.append(str(error))
    try:
        checked_options(dataset, contaminant.options)
    except InputErrors as error:
        problems += error.problems
    return problems
