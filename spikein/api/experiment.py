"""Read an experiment in any form: a file, a mapping, or an already checked experiment.

A mapping has the same meaning as the same keys in a file and is checked by the same rules. Its
problems are reported by key, since it has no lines.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from inject.builtin_files import EXPERIMENTS
from inject.errors import InputError
from spikein.config.load import (
    CheckedExperiment,
    check_document,
    read_experiment,
    resolved_yaml,
)
from spikein.config.schema import Experiment
from spikein.config.yaml_document import YamlDocument, parse_document
from spikein.store.filesystem import AnyPath

AnyExperiment = AnyPath | Mapping[str, Any] | Experiment | CheckedExperiment
"""The path or name of an experiment file, a mapping of the same keys, or a checked experiment."""
Overrides = Sequence[str] | Mapping[str, Any]
"""`["train.lr=1e-3"]`, or `{"train.lr": 1e-3}`."""

_MAPPING = "the experiment given"


@contextmanager
def naming_missing_data(checked: CheckedExperiment) -> Iterator[None]:
    """Add fetch instructions to errors about a preset's data."""
    try:
        yield
    except InputError as error:
        name, folder = checked.experiment.name, str(checked.experiment.variables.get("data"))
        if name in EXPERIMENTS.files() and str(error.where).startswith(folder):
            from spikein.estimates.presets import data_of

            if data_of(name):
                error.add_note(
                    f"The data of this preset: `spikein data fetch {name} --to {folder}`, or "
                    f"data=hf://presets instead of data={folder}."
                )
        raise


def read(experiment: AnyExperiment, overrides: Overrides = ()) -> CheckedExperiment:
    """Return the checked experiment with its arms.

    Args:
        experiment: see `AnyExperiment`.
        overrides: values that replace those of the experiment, by dotted key.

    Raises:
        InputError: when it is none of these, or a file that cannot be read.
        InputErrors: with all problems.
    """
    changes = override_texts(overrides)
    if isinstance(experiment, CheckedExperiment):
        if not changes:
            return experiment
        experiment = experiment.experiment
    if isinstance(experiment, Experiment):
        document = parse_document(resolved_yaml(experiment), name=experiment.name)
        return check_document(document, changes)
    if isinstance(experiment, Mapping):
        values = _convert_plain(experiment, place=_MAPPING)
        if "extends" in values:
            raise InputError(
                "`extends` works only in files",
                where=_MAPPING,
                hint="Give the file, and what differs from it as overrides.",
            )
        return check_document(YamlDocument(values=values, places={}, name=_MAPPING), changes)
    if isinstance(experiment, str | os.PathLike):
        return read_experiment(os.fspath(experiment), changes)
    raise InputError(
        f"an experiment cannot be read from a {type(experiment).__name__}",
        allowed="the path of an experiment file, a mapping, or an Experiment",
    )


def override_texts(overrides: Overrides) -> list[str]:
    """Return overrides as the command line takes them, `key=value` each.

    Raises:
        InputError: for a single text, or a value that is not plain.
    """
    if isinstance(overrides, str):
        raise InputError(
            f"overrides are a list, and {overrides!r} is one text",
            allowed=f"[{overrides!r}], or a mapping of dotted keys",
        )
    if not isinstance(overrides, Mapping):
        return [str(override) for override in overrides]
    # JSON is YAML, which the reader of overrides takes.
    return [
        f"{key}={json.dumps(_convert_plain(value, place=f'override {key}'), ensure_ascii=False)}"
        for key, value in overrides.items()
    ]


def _convert_plain(value: Any, *, place: str) -> Any:
    """Return a value made of mappings, lists, text, numbers, booleans and None.

    Raises:
        InputError: for any other type inside.
    """

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, os.PathLike):
            return os.fspath(leaf)
        if isinstance(leaf, Mapping):
            return dict(leaf)
        # A number of NumPy.
        if callable(item := getattr(leaf, "item", None)) and getattr(leaf, "shape", None) == ():
            return item()
        raise InputError(
            f"contains a {type(leaf).__name__}, which an experiment file cannot contain",
            where=place,
            allowed="mappings, lists, texts, numbers, true, false and null",
        )

    try:
        return json.loads(json.dumps(value, default=convert))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read as plain values: {error}", where=place) from None
