"""The dataset-level detectors by name: the `DETECTOR` of each file in `methods`."""

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Literal

from analysis.dataset_detectors import methods
from analysis.dataset_detectors.detector import DatasetDetector
from inject.errors import InputError, did_you_mean

ALL = "all"


def dataset_detector_names() -> tuple[str, ...]:
    """Return all names in order; imports none of the files."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(methods.__path__)))


def get_dataset_detector(name: str) -> DatasetDetector:
    """Return one by its name.

    Raises:
        InputError: there is none of that name.
    """
    known = dataset_detector_names()
    if name not in known:
        raise InputError(
            f"no dataset-level detector is called {name!r}.{did_you_mean(name, known)}",
            allowed=", ".join([ALL, *known]),
        )
    found: DatasetDetector = importlib.import_module(f"{methods.__name__}.{name}").DETECTOR
    return found


def asked_dataset_detectors(asked: Literal["all"] | Sequence[str]) -> list[DatasetDetector]:
    """Return those that were asked for, each once.

    Raises:
        InputError: an unknown name.
    """
    names = dataset_detector_names() if asked == ALL else dict.fromkeys(asked)
    return [get_dataset_detector(name) for name in names]


def method_roots(asked: Literal["all"] | Sequence[str]) -> tuple[str, ...]:
    """Return the modules of those asked for, which are found by name, for `Step.code`."""
    return tuple(f"{methods.__name__}.{one.name}" for one in asked_dataset_detectors(asked))
