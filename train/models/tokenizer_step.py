"""The step that copies the tokenizer which a model names or brings, checked against the model."""

from pathlib import Path
from typing import Any

from inject.corpus.named_tokenizer import tokenizer_identity
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.step import Step, StepContext
from train.models.tokenizer_check import fitting_tokenizer
from train.settings import ModelSettings


def copied_tokenizer_step(model: ModelSettings) -> Step:
    """Copy a tokenizer from a path or hub id."""
    return Step(
        kind="tokenizer",
        label=Path(_name(model)).name,
        function=f"{__name__}:build",
        settings={
            "from": _identity(model),
            **({"its_own_code": True} if model.trust_remote_code else {}),
        },
        libraries=("tokenizers", "transformers"),
        execution={"model": plain(model)},
    )


def build(context: StepContext) -> None:
    """Load the tokenizer, and save it."""
    model = ModelSettings.model_validate(context.execution["model"])
    with unchanged("model.tokenizer", lambda: _identity(model), context.settings["from"]):
        tokenizer = fitting_tokenizer(model)
    tokenizer.save_pretrained(context.out)


def _name(model: ModelSettings) -> str:
    return str(model.tokenizer or model.pretrained or "")


def _identity(model: ModelSettings) -> dict[str, Any]:
    return tokenizer_identity(
        _name(model),
        revision=None if model.tokenizer else model.revision,
        trust_remote_code=model.trust_remote_code,
    )
