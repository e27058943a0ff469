"""Representation misdirection for unlearning (RMU; Li et al. 2024, "The WMDP benchmark").

    loss = mean (h(forget) - c u)^2 + alpha * mean (h(retain) - h_original(retain))^2

h is the output of block `layer` for a token, the mean is over the tokens that carry a loss (their
own states, not those that predict them) and their hidden numbers, and u is a vector of length 1
whose numbers were drawn uniformly from [0, 1), as in the authors' code. The trained weights are the
down projections of the feed-forward layers in the last `layers` blocks up to that one. Later blocks
are not computed. Passes: forget and retain in one up to the block, retain under the original up to
it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from inject import keyed
from inject.errors import InputError
from inject.settings import PositiveFloat, PositiveInt
from train.unlearn.method import Batch, FullOnly, Tensor, Texts, UnlearningMethod, Weight
from train.window_inputs import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DOWN_PROJECTIONS = ("mlp.down_proj", "mlp.dense_4h_to_h", "mlp.c_proj", "mlp.fc2")
"""The feed-forward layer's second matrix: Llama, OLMo, Qwen and others; GPT-NeoX; GPT-2; Phi."""


class RmuSettings(FullOnly):
    """Hyper-parameters of RMU."""

    layer: Annotated[int, Field(ge=0)]
    """The block whose output is steered, from 0."""
    layers: PositiveInt
    """Number of trained blocks, ending with that one."""
    steering: PositiveFloat
    """Length c of the vector that forget texts are steered to."""
    alpha: Weight
    """Weight of the term that keeps retain texts in place."""


def loss(batch: Batch) -> Tensor:
    """Return the loss of each forget text with its retain text, [texts]."""
    settings: RmuSettings = batch.settings
    retained = batch.kept()
    steered = _distance(batch.forget, settings.steering * batch.constants["direction"])
    return steered + settings.alpha * _distance(retained, batch.original(retained))


def _distance(texts: Texts, target: Tensor) -> Tensor:
    """Return the mean squared distance over each text's labels, [texts]."""
    squared = (texts.known_hidden().float() - target.float()).square().mean(2)
    labelled = texts.labels.ne(IGNORED)
    return (squared * labelled).sum(1) / labelled.sum(1).clamp(min=1)


def direction(model: "PreTrainedModel", settings: RmuSettings, seed: int) -> Mapping[str, Tensor]:
    """Return the vector of length 1, a function of the seed and the model's hidden size."""
    import torch

    generator = keyed.generator(seed, keyed.Stream.FORGET, keyed.item_key("unlearning/direction"))
    vector = torch.from_numpy(generator.random(model.config.hidden_size)).float()
    return {"direction": vector / vector.norm()}


def trained_weights(model: "PreTrainedModel", settings: RmuSettings) -> tuple[str, ...]:
    """Return the names of the trained down projections.

    Raises:
        InputError: if the feed-forward layers have other names.
    """
    from train.unlearn.objective import block_list

    first = max(settings.layer - settings.layers + 1, 0)
    chosen = {
        id(weight)
        for block in block_list(model)[first : settings.layer + 1]
        for name, weight in block.named_parameters()
        if name.removesuffix(".weight") in DOWN_PROJECTIONS
    }
    if not chosen:
        raise InputError(
            "the model's feed-forward layers have no down projection of a known name",
            where="unlearning.methods: rmu",
            allowed=", ".join(DOWN_PROJECTIONS),
        )
    return tuple(name for name, weight in model.named_parameters() if id(weight) in chosen)


METHOD = UnlearningMethod(
    name="rmu",
    loss=loss,
    settings=RmuSettings,
    roles=lambda settings: ("forget", "retain"),
    original=lambda settings: True,
    hidden_layer=lambda settings: settings.layer,
    trained=trained_weights,
    constants=direction,
)
