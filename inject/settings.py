"""The base of all settings.

Settings are the values that a user writes in an experiment file. They are frozen, reject unknown
keys, and carry a sentence under every field, which the documentation quotes.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """Base: frozen, unknown keys rejected, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


PositiveInt = Annotated[int, Field(gt=0, le=10**15)]
PositiveFloat = Annotated[float, Field(gt=0)]


def plain(settings: BaseModel, *, exclude: Any = None) -> dict[str, Any]:
    """Return settings as plain JSON values, fit for `inject.digest.digest`.

    Args:
        settings: which.
        exclude: keys to leave out; a mapping leaves out keys of sections.
    """
    return settings.model_dump(mode="json", exclude=exclude)
