"""The origin of a model: an artifact of the graph, or a pretrained model on this disk or the hub.

A pretrained model's identity is the digests of its files, or its commit. A step is created with a
`ModelNode`; the step's function finds the same model again by `ModelNode.given`.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from inject.model_folder import checkpoint_folder
from inject.reading.change_guard import unchanged
from inject.settings import Settings
from inject.step import Step, StepContext


class GivenModel(Settings):
    """A model as passed to a step's function or a training job."""

    path: str
    """Folder, or hub id."""
    pretrained: str | None = None
    """Path or hub id, as the user named it; None for a model trained here, whose artifact the store
    verifies."""
    revision: str | None = None
    """Branch, tag or commit on the hub."""
    trust_remote_code: bool = False
    """Run the model's own code."""
    identity: dict[str, Any] | None = None
    """Identity of a pretrained model when the step was named
    (`train.models.pretrained.model_identity`)."""

    def unchanged(self) -> AbstractContextManager[None]:
        """Context for loading a pretrained model, which must not have changed since the step was
        named."""
        if self.pretrained is None:
            return nullcontext()
        from train.models.pretrained import model_identity

        taken = partial(
            model_identity,
            self.pretrained,
            revision=self.revision,
            trust_remote_code=self.trust_remote_code,
        )
        return unchanged(self.pretrained, taken, self.identity)


@dataclass(frozen=True, kw_only=True)
class ModelNode:
    """The origin of a model: exactly one of `step` and `pretrained`."""

    step: Step | None = None
    pretrained: str | None = None
    """Path or hub id."""
    revision: str | None = None
    trust_remote_code: bool = False
    identity: Mapping[str, Any] | None = None
    """Identity of a pretrained model: digests of its files, or its commit."""
    checkpoint: int | None = None
    """The optimiser step of a scored checkpoint kept by `step`; None for the trained model."""

    @property
    def served(self) -> bool:
        """Whether it is on a server (`detect.targets.server.ServedModel`)."""
        return False

    @property
    def label(self) -> str:
        """A short name for folders."""
        if self.step is None:
            return (self.pretrained or "").rstrip("/").split("/")[-1]
        if self.checkpoint is None:
            return self.step.label
        return f"{self.step.label}-{checkpoint_folder(self.checkpoint)}"

    def inputs(self, name: str) -> dict[str, Step]:
        """Return the node as an input of a step, under `name`."""
        return {name: self.step} if self.step else {}

    def settings(self, name: str) -> dict[str, Any]:
        """Return the values for a step's settings if the node is not an input."""
        if self.step is None:
            # A model's own code computes other numbers than the library's code.
            trusted = {"its_own_code": True} if self.trust_remote_code else {}
            return {name: {**(self.identity or {}), **trusted}}
        return {} if self.checkpoint is None else {name: {"checkpoint": self.checkpoint}}

    def execution(self, name: str) -> dict[str, Any]:
        """Return the values for a step's execution settings, for `given`."""
        return {
            name: {
                "pretrained": self.pretrained,
                "revision": self.revision,
                "trust_remote_code": self.trust_remote_code,
                "identity": None if self.identity is None else dict(self.identity),
                "checkpoint": self.checkpoint,
            }
        }

    def format(self, dtype: str) -> str:
        """Return the number format to load the model in; `auto` for that of the saved weights.

        Args:
            dtype: as the graph resolved it, so `auto` only if an accelerator will score. Models
                trained here have float32 weights.
        """
        return "float32" if dtype == "auto" and self.step else dtype

    def format_identity(self, dtype: str) -> str:
        """Return the number format of the model for a step's identity.

        The format of the saved weights follows from the files, whose identity is separate.
        """
        number_format = self.format(dtype)
        return "checkpoint" if number_format == "auto" else number_format

    @staticmethod
    def given(context: StepContext, name: str) -> GivenModel:
        """Return the model under a name in a step's inputs and execution settings."""
        values = dict(context.execution[name])
        checkpoint = values.pop("checkpoint")
        folder: Path | None = context.inputs.get(name)
        if folder is not None and checkpoint is not None:
            folder = folder / checkpoint_folder(checkpoint)
        return GivenModel(path=str(folder or values["pretrained"] or ""), **values)


def pretrained_node(
    path_or_id: str, *, revision: str | None = None, trust_remote_code: bool = False
) -> ModelNode:
    """Return a pretrained model by its path or hub id.

    Raises:
        InputError: if the model does not exist.
    """
    from train.models.pretrained import model_identity

    return ModelNode(
        pretrained=path_or_id,
        revision=revision,
        trust_remote_code=trust_remote_code,
        identity=model_identity(path_or_id, revision=revision, trust_remote_code=trust_remote_code),
    )
