"""A method as the loop's objective: from windows to the rows of a batch, and to its losses.

Window w is piece w of the forget set; its rows are the method's roles, in their order. All rows go
through the model in one pass. The original model is asked through disabled adapters with LoRA, and
through a frozen copy without.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from inject.errors import InputError
from train.unlearn.batch import FedTexts, Role, UnlearningBatch
from train.unlearn.exposures import FedPiece
from train.unlearn.method import Loss, MethodSettings
from train.unlearn.texts import I64, Piece, retain_beside, row_of


@dataclass(frozen=True, kw_only=True, eq=False)
class UnlearningTexts:
    """The texts of a run, cut into pieces."""

    forget: Sequence[Piece]
    retain: Sequence[Piece] = ()
    alternative: Sequence[Piece] = ()
    """One for each of `forget`, where the method asks for them."""
    roles: tuple[Role, ...]
    """What each window holds, in this order."""
    length: int
    """Tokens of a row."""
    end: int
    """The token that rows are filled up with."""
    seed: int
    fillers: int = 0
    """Windows behind those of `forget` that fill up a step which holds all texts: they show the
    first text again, and weigh nothing."""

    @property
    def n_windows(self) -> int:
        """Windows of an epoch."""
        return len(self.forget) + self.fillers

    def rows(self, epoch: int, window: int) -> list[FedPiece]:
        """Return the pieces of a window's rows; none of one that only fills up."""
        if window >= len(self.forget):
            return []
        return [(role, self._piece(role, epoch, window)) for role in self.roles]

    def every(self) -> list[FedPiece]:
        """Return all pieces, each under its role."""
        pieces = {"forget": self.forget, "retain": self.retain, "alternative": self.alternative}
        return [(role, piece) for role in self.roles for piece in pieces[role]]

    def _piece(self, role: Role, epoch: int, window: int) -> Piece:
        forget = self.forget[window]
        if role == "forget":
            return forget
        if role == "alternative":
            return self.alternative[window]
        place = retain_beside(forget, n_retain=len(self.retain), seed=self.seed, epoch=epoch)
        return self.retain[place]


class ForgetWindows:
    """The forget pieces as the loop's stream: `train.loop.dataset.WindowSource`."""

    def __init__(self, texts: UnlearningTexts) -> None:
        self._texts = texts
        self.n_windows = texts.n_windows
        self.context = texts.length

    def window(self, index: int) -> I64:
        """Return the ids of a forget piece, filled up, shape [length]."""
        texts = self._texts
        piece = texts.forget[index if index < len(texts.forget) else 0]
        return row_of(piece.ids, piece.labels, length=texts.length, end=texts.end).ids


@dataclass(frozen=True, kw_only=True, eq=False)
class Extras:
    """What a method computed before training."""

    original_log_probabilities: Mapping[str, npt.NDArray[np.float32]] | None = None
    """By role, of each piece, [pieces]."""
    labels: I64 | None = None
    """New labels of the forget pieces, [pieces, length]."""
    constants: Mapping[str, torch.Tensor] | None = None


class UnlearningObjective:
    """The loop's objective (`train.loop.objective.Objective`) of one method.

    Args:
        loss: of the method, or of its first stage.
        settings: handed to the loss.
        texts: the rows.
        extras: what was computed before.
        ask_original: whether the loss asks the original model.
        hidden_layer: the block whose output it looks at; None for logits.
        trained: names of the weights that are trained; None for all.
    """

    def __init__(
        self,
        loss: Loss,
        settings: MethodSettings,
        texts: UnlearningTexts,
        *,
        extras: Extras | None = None,
        ask_original: bool = False,
        hidden_layer: int | None = None,
        trained: Sequence[str] | None = None,
    ) -> None:
        self._loss = loss
        self._settings = settings
        self._texts = texts
        self._extras = extras or Extras()
        self._asks_original = ask_original
        self._hidden_layer = hidden_layer
        self._trained = None if trained is None else frozenset(trained)
        self._original: torch.nn.Module | None = None
        self._model: torch.nn.Module | None = None
        self.window_tokens = texts.length * len(texts.roles)
        self.blocks = None if hidden_layer is None else hidden_layer + 1
        # A loss asks the original about the texts of one role.
        self.asked = 1 / len(texts.roles) if ask_original else 0.0

    def begin(self, model: torch.nn.Module) -> None:
        """Freeze what the method leaves alone, and keep the original where it is asked."""
        self._model = model
        if self._asks_original and not hasattr(model, "disable_adapter"):
            self._original = copy.deepcopy(model).eval().requires_grad_(False)
        if self._trained is not None:
            for name, weight in model.named_parameters():
                weight.requires_grad_(name in self._trained)

    def inputs(self, epoch: int, window: int) -> Mapping[str, npt.NDArray[Any]]:
        """Return the rows of a window, and what was computed of them before."""
        texts = self._texts
        found: dict[str, npt.NDArray[Any]] = {}
        if texts.fillers:
            known = window < len(texts.forget)
            # The loop's mean is over all windows, those that fill up included.
            weight = texts.n_windows / len(texts.forget) if known else 0.0
            found["weight"] = np.array(weight, dtype=np.float32)
            window = window if known else 0
        for role, piece in texts.rows(epoch, window):
            row = row_of(piece.ids, piece.labels, length=texts.length, end=texts.end)
            found |= {f"{role}_ids": row.ids, f"{role}_labels": row.labels}
        if self._extras.labels is not None:
            found["forget_labels"] = self._extras.labels[window]
        for role, values in (self._extras.original_log_probabilities or {}).items():
            found[f"{role}_original"] = values[window]
        return found

    def fed(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the ids of all rows of each window, [windows, rows * length]."""
        return torch.cat([inputs[f"{role}_ids"] for role in self._texts.roles], 1)

    def losses(self, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the loss of each window, [windows].

        The method's loss sees the counted windows alone, as one that returns a single number means
        those that it sees. All go through the model, and where none is counted the loss sees all
        (the loop drops what it says): several processes must make the same passes, through the
        original, too.
        """
        roles = self._texts.roles
        outputs = self._ask(model, torch.cat([inputs[f"{role}_ids"] for role in roles]))
        windows = len(outputs) // len(roles)
        weight = inputs.get("weight")
        counted = inputs.get("counted") if weight is None else weight > 0
        rows = None if counted is None else counted.to(outputs.device).nonzero().flatten()
        if rows is None or len(rows) in (0, windows):
            lost = self._lost(inputs, outputs.chunk(len(roles)))
            return lost if weight is None else lost * weight
        shown = {name: inputs[name][rows] for name in inputs if name.startswith(roles)}
        lost = self._lost(shown, [part[rows] for part in outputs.chunk(len(roles))])
        lost = lost.new_zeros(windows).index_copy(0, rows, lost)
        return lost if weight is None else lost * weight

    def _lost(
        self, inputs: Mapping[str, torch.Tensor], outputs: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """Return what the method's loss is of each window.

        Args:
            inputs: of the windows that the loss sees.
            outputs: of the model, by role in their order, each [windows, length, …].
        """
        kind = "logits" if self._hidden_layer is None else "hidden"
        fed = {
            role: FedTexts(
                ids=inputs[f"{role}_ids"],
                labels=inputs[f"{role}_labels"],
                original_log_probability=inputs.get(f"{role}_original"),
                **{kind: part},
            )
            for role, part in zip(self._texts.roles, outputs, strict=True)
        }
        batch = UnlearningBatch(
            **fed,
            settings=self._settings,
            ask_original=self._original_answers if self._asks_original else None,
            constants={
                name: value.to(outputs[0].device)
                for name, value in (self._extras.constants or {}).items()
            },
        )
        return _one_a_text(self._loss(batch), len(outputs[0]))

    def _original_answers(self, ids: torch.Tensor) -> torch.Tensor:
        if self._original is not None:
            self._original.to(ids.device)
            return self._ask(self._original, ids)
        adapted: Any = self._model
        # Evaluated, as the copy is: no dropout in what the model is held against.
        adapted.eval()
        try:
            with adapted.disable_adapter():
                return self._ask(adapted, ids)
        finally:
            adapted.train()

    def _ask(self, model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
        return ask(model, ids, self._hidden_layer)


def _one_a_text(lost: Any, texts: int) -> torch.Tensor:
    """Return what a loss gave as one number a text, [texts].

    Raises:
        InputError: it is anything but a tensor of that shape or of one number.
    """
    if isinstance(lost, torch.Tensor) and lost.dim() == 0:
        return lost.expand(texts)
    if isinstance(lost, torch.Tensor) and lost.shape == (texts,):
        return lost
    given = (
        f"a tensor of shape {list(lost.shape)}"
        if isinstance(lost, torch.Tensor)
        else f"an object of type {type(lost).__name__}"
    )
    raise InputError(
        f"the method's loss is {given}",
        where="unlearning.methods",
        allowed=f"a tensor with one number a text, here [{texts}], or with one number",
    )


def ask(model: torch.nn.Module, ids: torch.Tensor, hidden_layer: int | None = None) -> torch.Tensor:
    """Return a model's logits [texts, length, vocabulary], or what a block puts out.

    Args:
        model: a causal language model, wrapped or not.
        ids: [texts, length].
        hidden_layer: the block, from 0; those behind it are not computed. None for logits.
    """
    if hidden_layer is None:
        return model(input_ids=ids, use_cache=False).logits
    with block_output(model, hidden_layer) as found, first_blocks(model, hidden_layer + 1):
        model(input_ids=ids, use_cache=False, logits_to_keep=1)
    return found[0]


def blocks_of(model: torch.nn.Module) -> tuple[torch.nn.Module, str]:
    """Return the module that holds the list of blocks, and the name of the list in it.

    Raises:
        InputError: no list of the model has as many members as it has blocks.
    """
    wanted = _config(model).num_hidden_layers
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, torch.nn.ModuleList) and len(child) == wanted:
                return module, name
    raise InputError(
        "the blocks of this model cannot be told from its other parts",
        where="model",
        allowed="a causal language model whose blocks are one list, as in Llama or GPT-NeoX",
    )


def block_list(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the blocks of a model, in order."""
    holder, name = blocks_of(model)
    return list(getattr(holder, name))


@contextmanager
def first_blocks(model: torch.nn.Module, n: int) -> Iterator[None]:
    """Let a model compute its first blocks alone."""
    holder, name = blocks_of(model)
    every = getattr(holder, name)
    setattr(holder, name, torch.nn.ModuleList(list(every)[:n]))
    try:
        yield
    finally:
        setattr(holder, name, every)


@contextmanager
def block_output(model: torch.nn.Module, index: int) -> Iterator[list[torch.Tensor]]:
    """Yield a list that the output of a block is put into, [texts, length, hidden]."""
    found: list[torch.Tensor] = []

    def take(module: torch.nn.Module, inputs: Any, output: Any) -> None:
        found.append(output[0] if isinstance(output, tuple) else output)

    hook = block_list(model)[index].register_forward_hook(take)
    try:
        yield found
    finally:
        hook.remove()


def _config(model: torch.nn.Module) -> Any:
    """Return the configuration of a model, whatever wraps it."""
    found: Any = model
    while not hasattr(found, "config") or not hasattr(found.config, "num_hidden_layers"):
        found = found.module
    return found.config
