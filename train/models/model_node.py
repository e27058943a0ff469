"""Where a model comes from: an artifact of the graph, or a pretrained one on this disk or the hub.

A pretrained model's identity is the digests of its files, or its commit. A `ModelNode` is what a
step is made with; the step's function finds the same model again by `ModelNode.given`.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from inject.model_folder import checkpoint_folder
from inject.reading.unchanged import unchanged
from inject.settings import Settings
from inject.step import Step, StepContext


class GivenModel(Settings):
    """A model as a step's function, or a training job, is given it."""

    path: str
    """Folder, or hub id."""
    pretrained: str | None = None
    """Path or hub id, as the user named it; None for a model that was trained here, whose artifact
    the store verifies."""
    revision: str | None = None
    """Branch, tag or commit on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with the model."""
    identity: dict[str, Any] | None = None
    """Of a pretrained model, when the step was named (`train.models.pretrained.model_identity`)."""

    def unchanged(self) -> AbstractContextManager[None]:
        """Load a pretrained model inside; it must still be the one that the step was named by."""
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
    """Where a model comes from: exactly one of `step` and `pretrained`."""

    step: Step | None = None
    pretrained: str | None = None
    """Path or hub id."""
    revision: str | None = None
    trust_remote_code: bool = False
    identity: Mapping[str, Any] | None = None
    """Of a pretrained model: digests of its files, or its commit."""
    checkpoint: int | None = None
    """The optimiser step of the checkpoint that is meant, of those that `step` keeps; None for
    the trained model."""

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
        """Return what must enter a step's settings where the node is no input."""
        if self.step is None:
            # Code that comes with a model computes other numbers than that of the library.
            trusted = {"its_own_code": True} if self.trust_remote_code else {}
            return {name: {**(self.identity or {}), **trusted}}
        return {} if self.checkpoint is None else {name: {"checkpoint": self.checkpoint}}

    def execution(self, name: str) -> dict[str, Any]:
        """Return what a step's execution holds, for `given`."""
        return {
            name: {
                "pretrained": self.pretrained,
                "revision": self.revision,
                "trust_remote_code": self.trust_remote_code,
                "identity": None if self.identity is None else dict(self.identity),
                "checkpoint": self.checkpoint,
            }
        }

    def format(self, asked: str) -> str:
        """Return the number format to load the model in; `auto` for the checkpoint's own.

        Args:
            asked: as the graph resolved it, so `auto` only where an accelerator will score. What is
                trained here has float32 weights.
        """
        return "float32" if asked == "auto" and self.step else asked

    def format_identity(self, asked: str) -> str:
        """Return the number format of the model as a step's identity names it.

        The checkpoint's own format follows from the checkpoint, whose identity is another part.
        """
        found = self.format(asked)
        return "checkpoint" if found == "auto" else found

    @staticmethod
    def given(context: StepContext, name: str) -> GivenModel:
        """Return the model that a step's inputs and execution hold under a name."""
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
        InputError: there is no such model.
    """
    from train.models.pretrained import model_identity

    return ModelNode(
        pretrained=path_or_id,
        revision=revision,
        trust_remote_code=trust_remote_code,
        identity=model_identity(path_or_id, revision=revision, trust_remote_code=trust_remote_code),
    )
