"""Shell completion: names of experiments and runs, detectors, datasets, files.

Names of experiments and runs are read from folders and cost nothing; those of detectors and
datasets cost the import of their registries, about half a second.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_ENDINGS = (".yaml", ".yml")
_DATASET = re.compile(r"(contaminants\.\d+\.dataset=)(.*)")


def experiments(incomplete: str) -> list[str]:
    """Return shipped experiments by name, and files of YAML and folders by path."""
    from inject.builtin_files import EXPERIMENTS

    return [*shipped_experiments(incomplete), *_files(incomplete, listed=EXPERIMENTS.files())]


def shipped_experiments(incomplete: str) -> list[str]:
    """Return the names of the experiments that come with spikein."""
    from inject.builtin_files import EXPERIMENTS

    return _filter(EXPERIMENTS.files(), incomplete)


def presets(incomplete: str) -> list[str]:
    """Return the names of all presets, unlearning audits among them."""
    from inject.builtin_files import AUDITS, EXPERIMENTS

    return _filter({**EXPERIMENTS.files(), **AUDITS.files()}, incomplete)


def public_data(incomplete: str) -> list[str]:
    """Return the names of datasets that can be fetched, and of presets."""
    from inject.public_data.catalogue import data_sets

    return [
        *_filter([data_set.name for data_set in data_sets(with_large=True)], incomplete),
        *presets(incomplete),
    ]


def runs(incomplete: str) -> list[str]:
    """Return the names of the runs in the usual folder, and folders by path."""
    folder = Path(os.environ.get("SPIKEIN_RUNS") or "runs")
    names = [path.name for path in _entries(folder) if path.is_dir() and path.name[0] != "."]
    return [*_filter(names, incomplete), *(f"{path}/" for path in _match(incomplete, names))]


def detectors(incomplete: str) -> list[str]:
    """Return a list of detectors with its last name completed."""
    from detect.registry import every_detector

    before, comma, last = incomplete.rpartition(",")
    names = [registered.detector.name for registered in every_detector()[0]]
    names = names if before else ["all", *names]
    return [f"{before}{comma}{name}" for name in _filter(names, last)]


def overrides(incomplete: str) -> list[str]:
    """Return names of datasets after `contaminants.0.dataset=`; nothing for other keys."""
    match = _DATASET.fullmatch(incomplete)
    if match is None:
        return []
    from inject.examples.datasets.registry import built_in_names

    key, name = match.groups()
    return [f"{key}{dataset}" for dataset in _filter(built_in_names(), name)]


def _files(incomplete: str, *, listed: Iterable[str]) -> Iterator[str]:
    """Yield the folders and YAML files whose path has this prefix."""
    for path in _match(incomplete, listed):
        if path.is_dir():
            yield f"{path}/"
        elif path.suffix in _ENDINGS:
            yield str(path)


def _match(incomplete: str, known_names: Iterable[str]) -> list[Path]:
    """Return the folder's entries with this prefix, without hidden and already known names."""
    head, tail = os.path.split(incomplete)
    entries = [path for path in _entries(Path(head or ".")) if path.name.startswith(tail)]
    return [
        path for path in entries if path.name[0] != "." and (head or path.name not in known_names)
    ]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _filter(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
