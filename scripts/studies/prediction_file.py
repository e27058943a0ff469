"""The file of predictions that is written before an arm is scored.

It has its own digest, the time, and the digests of the tables that the laws were fitted to. It is
written once: an existing file is not replaced.
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from inject.digest import digest
from inject.errors import InputError
from inject.files import write_text
from inject.settings import PositiveFloat, PositiveInt, Settings
from scripts.studies.prediction import Prediction

_DIGEST = "digest"


class FittedPoint(Settings):
    """A mean AUC over seeds that the laws were fitted to, or that was left out."""

    arm: str
    detector: str
    parameters: PositiveFloat
    rate: PositiveFloat
    copies: PositiveInt
    value: float
    low: float
    """Student's t over seeds."""
    high: float


class PredictionFile(Settings):
    """The content of a file of predictions."""

    format: Literal[1] = 1
    made: str
    """UTC, ISO 8601, whole seconds."""
    version: str
    """Of spikein."""
    run: str
    """The id of the run that the laws were fitted to."""
    inputs: dict[str, str]
    """SHA-256 of each table of the run that was read."""
    parameters: PositiveFloat
    """Of the left-out arm."""
    rate: PositiveFloat
    """Its learning rate."""
    predictions: tuple[Prediction, ...]
    points: tuple[FittedPoint, ...]


def write_predictions(path: Path, content: PredictionFile) -> None:
    """Write predictions with their digest.

    Raises:
        InputError: when the file exists.
    """
    if path.exists():
        raise InputError(
            "exists, and a prediction is written once",
            where=str(path),
            hint="Name another file, and keep this one with the results.",
        )
    values = content.model_dump(mode="json")
    text = json.dumps({**values, _DIGEST: digest(values)}, indent=1, ensure_ascii=False)
    write_text(path, text + "\n")


def read_predictions(path: Path) -> PredictionFile:
    """Read what `write_predictions` wrote.

    Raises:
        InputError: for a missing file, one that was changed, or of another format.
    """
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        stated = values.pop(_DIGEST, None)
        content = PredictionFile.model_validate(values)
        changed = stated != digest(values)
    except (OSError, ValueError, TypeError, AttributeError, ValidationError) as error:
        problem = f"is not a file of predictions: {str(error).splitlines()[0]}"
        raise InputError(problem, where=str(path)) from None
    if changed:
        raise InputError(
            "was changed after it was written: its digest is wrong",
            where=str(path),
            hint="Restore it from version control.",
        )
    return content
