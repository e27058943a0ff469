"""Names to datasets: built in, offered by an installed package, or in a file of the user's.

A built-in dataset is a module of this folder that defines `DATASET`; its file's name is the
dataset's. They are found by reading the files, and a module is imported when its dataset is first
requested. Installed packages offer `Dataset` objects as entry points of the group
`spikein.datasets`; `FILE.py:NAME` names one in a file. The identity of a plug-in is the digest of
its source.
"""

import importlib
from functools import lru_cache
from pathlib import Path
from typing import Final

from inject.errors import unknown_name
from inject.examples.datasets.source import Dataset
from inject.plugins import (
    Plugin,
    PluginKind,
    file_reference,
    find_plugin,
    installed_plugins,
    load_installed,
)

BUILT_IN = "spikein"
"""The origin of a built-in dataset."""

_PACKAGE = "inject.examples.datasets"
_GROUP: Final = "spikein.datasets"
_EXPECTED = PluginKind(
    noun="dataset", accepts=lambda value: isinstance(value, Dataset), allowed="a spikein.Dataset"
)


@lru_cache(maxsize=1)
def built_in_names() -> tuple[str, ...]:
    """Return the names of the built-in datasets, sorted."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(
        file.stem
        for file in files
        if any(line.startswith("DATASET = ") for line in file.read_text("utf-8").splitlines())
    )


def dataset_names() -> tuple[str, ...]:
    """Return the names of all datasets, sorted; no plug-in is imported."""
    return tuple(sorted({*built_in_names(), *installed_plugins(_GROUP)}))


def find_dataset(name: str) -> Plugin:
    """Return a dataset by name, or by `FILE.py:NAME`; one that is built in has no digest.

    Raises:
        InputError: no dataset has that name, or its plug-in cannot be used.
    """
    if name in built_in_names():
        module = f"{_PACKAGE}.{name}"
        dataset = importlib.import_module(module).DATASET
        return Plugin(name=name, value=dataset, origin=BUILT_IN, digest="", code=(module,))
    options_hint = "Give the dataset's own options under `options:`."
    if plugin := find_plugin(name, _GROUP, _EXPECTED, hint=options_hint):
        return plugin
    names = dataset_names()
    raise unknown_name(
        f"unknown dataset {name!r}",
        name,
        names,
        allowed=f"{', '.join(names)}, or FILE.py:NAME",
        hint="For a file of your own use `dataset: rows` with `fields:`.",
    )


def get_dataset(name: str) -> Dataset:
    """Return a dataset as `find_dataset` does, without its origin."""
    return find_dataset(name).value


def dataset_label(name: str) -> str:
    """Return a dataset's label in reports if it has no `name:`; the NAME of `FILE.py:NAME`."""
    reference = file_reference(name)
    return reference.name if reference else name


def dataset_table() -> tuple[dict[str, Plugin], tuple[str, ...]]:
    """Return every dataset that has a name, and what is wrong with those that cannot be loaded.

    Those of installed packages are imported.
    """
    origins = dict.fromkeys(built_in_names(), "it is built in")
    plugins, warnings = load_installed(_GROUP, _EXPECTED, taken=origins)
    datasets = {name: find_dataset(name) for name in built_in_names()} | plugins
    return dict(sorted(datasets.items())), warnings
