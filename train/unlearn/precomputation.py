"""What is computed once, before training: log-probabilities under the original, and new labels.

Cost: one forward pass over the forget set for each model asked, in batches of the method's
`batch_texts`, on the device that will train.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from train.device import default_device
from train.processes.environment import local_rank
from train.unlearn.batch import token_log_probabilities
from train.unlearn.method import UnlearningMethod
from train.unlearn.objective import UnlearningTexts, ask
from train.unlearn.settings import MethodSettings
from train.unlearn.texts import I64, Piece, row_of
from train.window_inputs import IGNORED


class _Rows(NamedTuple):
    ids: torch.Tensor
    labels: torch.Tensor
    place: slice


def log_probabilities(
    model: torch.nn.Module,
    pieces: Sequence[Piece],
    texts: UnlearningTexts,
    settings: MethodSettings,
) -> npt.NDArray[np.float32]:
    """Return the log-probability of each piece, summed over its labels, [pieces].

    Args:
        model: moved to the device that trains, and left there.
        pieces: which ones.
        texts: says how rows are filled up.
        settings: of the method: the arithmetic, and how many rows at a time.
    """
    found = np.zeros(len(pieces), dtype=np.float32)
    with _evaluated(model, settings) as device:
        for rows in _rows(pieces, texts, settings.batch_texts, device):
            targets = torch.nn.functional.pad(rows.labels[:, 1:], (0, 1), value=IGNORED)
            summed = token_log_probabilities(ask(model, rows.ids), targets).sum(1)
            found[rows.place] = summed.float().cpu().numpy()
    return found


def new_labels(
    method: UnlearningMethod,
    original: torch.nn.Module,
    first: torch.nn.Module,
    texts: UnlearningTexts,
    settings: MethodSettings,
) -> I64:
    """Return the labels that a method gives the forget pieces, [pieces, length].

    Padding, and tokens that carried no loss, stay `IGNORED`.

    Args:
        method: has `labels`.
        original: the model that is made to forget.
        first: the model of the method's first stage.
        texts: the pieces.
        settings: of the method.
    """
    if method.labels is None:
        raise ValueError("the method gives no labels")
    found = np.full((len(texts.forget), texts.length), IGNORED, dtype=np.int64)
    with _evaluated(original, settings) as device, _evaluated(first, settings):
        for rows in _rows(texts.forget, texts, settings.batch_texts, device):
            labels = method.labels(
                lambda ids: ask(original, ids), lambda ids: ask(first, ids), rows.ids, settings
            )
            kept = torch.where(rows.labels.ne(IGNORED), labels, rows.labels)
            found[rows.place] = kept.cpu().numpy()
    return found


@contextmanager
def _evaluated(model: torch.nn.Module, settings: MethodSettings) -> Iterator[torch.device]:
    """Yield the device that trains, with the model on it, without dropout and gradients."""
    on_gpu = torch.cuda.is_available()
    device = torch.device(f"cuda:{local_rank()}") if on_gpu else torch.device("cpu")
    model.to(device)
    was_training = model.training
    model.eval()
    bfloat16 = default_device().training_precision(settings.precision) == "bfloat16"
    try:
        with (
            torch.no_grad(),
            torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16),
        ):
            yield device
    finally:
        model.train(was_training)


def _rows(
    pieces: Sequence[Piece], texts: UnlearningTexts, n: int, device: torch.device
) -> Iterator[_Rows]:
    for start in range(0, len(pieces), n):
        rows = [
            row_of(piece.ids, piece.labels, length=texts.length, end=texts.end)
            for piece in pieces[start : start + n]
        ]
        ids = torch.from_numpy(np.stack([row.ids for row in rows])).to(device)
        labels = torch.from_numpy(np.stack([row.labels for row in rows])).to(device)
        yield _Rows(ids, labels, slice(start, start + len(rows)))
