"""How unlearned models are audited text by text: the section `unlearning.audit`."""

from typing import Annotated

from pydantic import Field, field_validator

from inject.settings import PositiveInt, Settings

Rate = Annotated[float, Field(gt=0, lt=1)]


class AuditRule(Settings):
    """The rule of an audit: which texts it flags."""

    detector: str = "min_k:k=0.2"
    """Whose scores the ratio is of; in an experiment one of `detect.detectors`."""
    band: tuple[float, float] = (1 / 1.15, 1.15)
    """Ratios between these are suspicious."""
    false_alarms: Rate = 0.05
    """Share of false alarms that the calibrated band is to have."""

    @field_validator("band")
    @classmethod
    def _holds_something(cls, band: tuple[float, float]) -> tuple[float, float]:
        if not 0 <= band[0] < band[1]:
            raise ValueError(f"{band[0]:g} to {band[1]:g} holds no ratio: take 0 <= LOW < HIGH")
        return band


class ChunkAudit(AuditRule):
    """The audit of Shi et al. 2024, section 7, of every unlearned model; each forgotten text is one
    chunk, and the retrained model calibrates."""

    prompt: Rate = 0.5
    """Share of a text's words that the models continue."""
    samples: PositiveInt = 20
    """Continuations of each text by each model."""
    max_tokens: PositiveInt = 128
    """Longest continuation."""
    temperature: Annotated[float, Field(gt=0, le=2)] = 1.0
    """Of the sampling."""
