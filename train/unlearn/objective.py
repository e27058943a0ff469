"""A method as the loop's objective: from windows to the rows of a batch, and to its losses.

Window w is piece w of the forget set; its rows are the method's roles, in their order. All rows go
through the model in one pass. The original model is evaluated with disabled adapters under LoRA,
otherwise as a frozen copy.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from inject.errors import InputError
from train.unlearn.batch import FedTexts, UnlearningBatch
from train.unlearn.method import Loss, MethodSettings
from train.unlearn.texts import I64, UnlearningTexts


@dataclass(kw_only=True, eq=False)
class UnlearningObjective:
    """The loop's objective (`train.loop.dataset.Objective`) of one method."""

    loss: Loss
    """Settings of the method, or of its first stage."""
    settings: MethodSettings
    """Settings passed to the loss."""
    texts: UnlearningTexts
    """The rows."""
    original_log_probabilities: Mapping[Any, npt.NDArray[np.float32]] = field(default_factory=dict)
    """Original log-probabilities by role, of each piece, [pieces], if the method requires them."""
    labels: I64 | None = None
    """New labels of the forget pieces, [pieces, length]."""
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """The method's random draws before training."""
    asks_original: bool = False
    """Whether the loss queries the original model."""
    hidden_layer: int | None = None
    """The block whose output it uses; None for logits."""
    trained: Sequence[str] | None = None
    """Names of the trained weights; None for all."""

    def __post_init__(self) -> None:
        """Compute the counts that the loop needs."""
        roles = len(self.texts.roles)
        self.window_tokens = self.texts.length * roles
        self.blocks = None if self.hidden_layer is None else self.hidden_layer + 1
        # A loss queries the original for the texts of one role.
        self.asked = 1 / roles if self.asks_original else 0.0
        self._original: torch.nn.Module | None = None
        self._model: torch.nn.Module | None = None

    def begin(self, model: torch.nn.Module) -> None:
        """Freeze the weights that the method does not train, and keep the original if it is
        queried."""
        self._model = model
        if self.asks_original and not hasattr(model, "disable_adapter"):
            self._original = copy.deepcopy(model).eval().requires_grad_(False)
        if self.trained is not None:
            for name, weight in model.named_parameters():
                weight.requires_grad_(name in self.trained)

    def inputs(self, epoch: int, window: int) -> Mapping[str, npt.NDArray[Any]]:
        """Return the rows of a window, and their precomputed values."""
        texts = self.texts
        arrays: dict[str, npt.NDArray[Any]] = {}
        if texts.fillers:
            is_text = window < len(texts.forget)
            # The loop's mean is over all windows, padding included.
            weight = texts.n_windows / len(texts.forget) if is_text else 0.0
            arrays["weight"] = np.array(weight, dtype=np.float32)
            window = window if is_text else 0
        for role, piece in texts.rows(epoch, window):
            arrays[f"{role}_ids"], arrays[f"{role}_labels"] = texts.row(piece)
        if self.labels is not None:
            arrays["forget_labels"] = self.labels[window]
        for role, values in self.original_log_probabilities.items():
            arrays[f"{role}_original"] = values[window]
        return arrays

    def fed(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the ids of all rows of each window, [windows, rows * length]."""
        return torch.cat([inputs[f"{role}_ids"] for role in self.texts.roles], 1)

    def losses(self, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the loss of each window, [windows].

        The method's loss sees only the counted windows, because a single returned number is the
        mean over the windows that it sees. All go through the model, and if none is counted the
        loss sees all (the loop discards the result): several processes must make the same passes,
        also through the original.
        """
        roles = self.texts.roles
        ids = torch.cat([inputs[f"{role}_ids"] for role in roles])
        outputs = ask(model, ids, self.hidden_layer)
        windows = len(outputs) // len(roles)
        weight = inputs.get("weight")
        counted = inputs.get("counted") if weight is None else weight > 0
        rows = None if counted is None else counted.to(outputs.device).nonzero().flatten()
        if rows is None or len(rows) in (0, windows):
            lost = self._method_loss(inputs, outputs.chunk(len(roles)))
            return lost if weight is None else lost * weight
        row_inputs = {name: inputs[name][rows] for name in inputs if name.startswith(roles)}
        lost = self._method_loss(row_inputs, [part[rows] for part in outputs.chunk(len(roles))])
        lost = lost.new_zeros(windows).index_copy(0, rows, lost)
        return lost if weight is None else lost * weight

    def _method_loss(
        self, inputs: Mapping[str, torch.Tensor], outputs: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """Return the method's loss of each window.

        Args:
            inputs: inputs of the windows that the loss sees.
            outputs: outputs of the model, by role in their order, each [windows, length, …].
        """
        kind = "logits" if self.hidden_layer is None else "hidden"
        fed = {
            role: FedTexts(
                ids=inputs[f"{role}_ids"],
                labels=inputs[f"{role}_labels"],
                original_log_probability=inputs.get(f"{role}_original"),
                **{kind: part},
            )
            for role, part in zip(self.texts.roles, outputs, strict=True)
        }
        batch = UnlearningBatch(
            **fed,
            settings=self.settings,
            ask_original=self._original_answers if self.asks_original else None,
            constants={name: value.to(outputs[0].device) for name, value in self.constants.items()},
        )
        return _expand_to_texts(self.loss(batch), len(outputs[0]))

    def _original_answers(self, ids: torch.Tensor) -> torch.Tensor:
        if self._original is not None:
            self._original.to(ids.device)
            return ask(self._original, ids, self.hidden_layer)
        adapted: Any = self._model
        # In evaluation mode, like the copy: no dropout in the reference.
        adapted.eval()
        try:
            with adapted.disable_adapter():
                return ask(adapted, ids, self.hidden_layer)
        finally:
            adapted.train()


def _expand_to_texts(lost: Any, texts: int) -> torch.Tensor:
    """Return a loss's result as one number per text, [texts].

    Raises:
        InputError: if it is neither a tensor of that shape nor a scalar tensor.
    """
    if isinstance(lost, torch.Tensor) and lost.dim() == 0:
        return lost.expand(texts)
    if isinstance(lost, torch.Tensor) and lost.shape == (texts,):
        return lost
    description = (
        f"a tensor of shape {list(lost.shape)}"
        if isinstance(lost, torch.Tensor)
        else f"an object of type {type(lost).__name__}"
    )
    raise InputError(
        f"the method's loss is {description}",
        where="unlearning.methods",
        allowed=f"a tensor with one number per text, here [{texts}], or with one number",
    )


def ask(model: torch.nn.Module, ids: torch.Tensor, hidden_layer: int | None = None) -> torch.Tensor:
    """Return a model's logits [texts, length, vocabulary], or the output of a block.

    Args:
        model: a causal language model, wrapped or not.
        ids: [texts, length].
        hidden_layer: the block, from 0; later ones are not computed. None for logits.
    """
    if hidden_layer is None:
        return model(input_ids=ids, use_cache=False).logits
    with block_output(model, hidden_layer) as outputs, first_blocks(model, hidden_layer + 1):
        model(input_ids=ids, use_cache=False, logits_to_keep=1)
    return outputs[0]


def blocks_of(model: torch.nn.Module) -> tuple[torch.nn.Module, str]:
    """Return the module with the list of blocks, and the name of the list in it.

    Raises:
        InputError: if no list of the model has as many members as it has blocks.
    """
    n_blocks = _config(model).num_hidden_layers
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, torch.nn.ModuleList) and len(child) == n_blocks:
                return module, name
    raise InputError(
        "cannot identify the blocks of this model",
        where="model",
        allowed="a causal language model whose blocks are one list, as in Llama or GPT-NeoX",
    )


def block_list(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the blocks of a model, in order."""
    holder, name = blocks_of(model)
    return list(getattr(holder, name))


@contextmanager
def first_blocks(model: torch.nn.Module, n: int) -> Iterator[None]:
    """Let a model compute only its first blocks."""
    holder, name = blocks_of(model)
    blocks = getattr(holder, name)
    setattr(holder, name, torch.nn.ModuleList(list(blocks)[:n]))
    try:
        yield
    finally:
        setattr(holder, name, blocks)


@contextmanager
def block_output(model: torch.nn.Module, index: int) -> Iterator[list[torch.Tensor]]:
    """Yield a list that receives the output of a block, [texts, length, hidden]."""
    outputs: list[torch.Tensor] = []

    def take(module: torch.nn.Module, inputs: Any, output: Any) -> None:
        outputs.append(output[0] if isinstance(output, tuple) else output)

    hook = block_list(model)[index].register_forward_hook(take)
    try:
        yield outputs
    finally:
        hook.remove()


def _config(model: torch.nn.Module) -> Any:
    """Return the configuration of a model, wrapped or not."""
    module: Any = model
    while not hasattr(module, "config") or not hasattr(module.config, "num_hidden_layers"):
        module = module.module
    return module.config
