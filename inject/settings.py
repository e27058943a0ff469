"""The base of all settings.

Settings are the values that a user writes in an experiment file. They are frozen, reject unknown
keys, and carry a sentence under every field, which the documentation quotes.
"""

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

T = TypeVar("T")


class Settings(BaseModel):
    """Base: frozen, unknown keys rejected, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


def _distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(values)) < len(values):
        duplicate = next(value for value in values if values.count(value) > 1)
        raise ValueError(f"{duplicate!r} is given twice")
    return values


Distinct = AfterValidator(_distinct)
"""Refuses a list that names a value twice."""
PositiveInt = Annotated[int, Field(gt=0, le=10**15)]
PositiveFloat = Annotated[float, Field(gt=0)]


def plain(settings: BaseModel, *, exclude: Any = None) -> dict[str, Any]:
    """Return settings as plain JSON values, fit for `inject.digest.digest`.

    Args:
        settings: which.
        exclude: keys to leave out; a mapping leaves out keys of sections.
    """
    return settings.model_dump(mode="json", exclude=exclude)
