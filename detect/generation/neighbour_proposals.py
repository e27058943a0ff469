"""A masked language model proposes neighbours of a text: one token changed, the rest untouched.

Mattern et al. 2023, "Membership Inference Attacks against Language Models via Neighbourhood
Comparison", section 2: the embedding of each token in turn is partly dropped (p = 0.7, so that the
model neither sees the whole token nor guesses blindly), and each proposal w for it has the weight
p(w) / (1 − p(token)). The 5 best proposals for each position compete, as in the authors' code, and
the 25 with the largest weight are the neighbours. Dropout is keyed by the text. Cost: one pass of
the masked model over the text for each of its tokens.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from detect.engine.forward_pass import token_statistics
from detect.engine.masked_model import MaskedModel, load_masked_model
from detect.engine.open_target import open_target
from detect.settings import DetectSettings
from detect.targets.asked_text_model import READ_SERVED, is_served
from detect.targets.text_model import TextModel
from detect.text_measures import (
    NeighbourMeans,
    Neighbours,
    read_neighbours,
    write_means,
    write_neighbours,
)
from detect.token_statistics import TokenStatistics
from inject.corpus.tokenizer import encode_with_offsets
from inject.examples.example import read_examples
from inject.keyed import item_key
from inject.step import StepContext, find_function
from train.models.model_node import ModelNode

DROPOUT = 0.7
PER_PLACE = 5
COUNT = 25
EMPTY_TEXT = "empty text"
NO_PROPOSAL = "the masked language model proposes no other text"
UNSCORED = "no neighbour of it could be scored"
_BATCH_TOKENS = 4096


def propose(context: StepContext) -> None:
    """Find the neighbours of every example, and write them."""
    rows = read_examples(context.inputs["examples"])
    node = ModelNode.given(context, "model")
    with node.unchanged():
        masked = load_masked_model(node.path, device=context.execution["device"])
    neighbours = find_neighbours(
        masked,
        [row.text for row in rows],
        count=context.settings["count"],
        progress=lambda done, total: context.report(done, total, unit="texts"),
    )
    write_neighbours(context.out, [row.example_id for row in rows], neighbours)


def build(context: StepContext, text_model: TextModel | None = None) -> None:
    """Compute the mean log-probability of every neighbour, and write them.

    Args:
        context: context of the step.
        text_model: a server's model to query instead of the step's (see `asked_text_model`).
    """
    detect = DetectSettings.model_validate(context.execution["detect"])
    rows = read_neighbours(context.inputs["neighbours"])
    if is_served(context):
        texts = [text for row in rows.values() for text in row.texts]
        read = find_function(READ_SERVED)(context, text_model, texts)
        write_means(context.out, list(rows), means_of(list(rows.values()), read))
        return
    means = neighbour_means(
        open_target(context),
        list(rows.values()),
        detect.policy(),
        batch_tokens=detect.batch_tokens,
        compile_mode=detect.compile,
        progress=lambda done, total: context.report(done, total, unit="tokens"),
    )
    write_means(context.out, list(rows), means)


def neighbour_means(
    target: Any, neighbours: Sequence[Neighbours], policy: Any, **how: Any
) -> list[NeighbourMeans]:
    """Return the means of each text's neighbours, in the order given.

    Args:
        target: a `detect.engine.target.Target`.
        neighbours: neighbours of each text.
        policy: a `detect.settings.ScoringPolicy`.
        how: further arguments of `detect.engine.forward_pass.token_statistics`.
    """
    texts = [text for row in neighbours for text in row.texts]
    return means_of(neighbours, token_statistics(target, texts, policy, **how))


def means_of(
    neighbours: Sequence[Neighbours], statistics: Sequence[TokenStatistics]
) -> list[NeighbourMeans]:
    """Return the means of each text's neighbours, from all statistics, text by text."""
    means = [
        float(np.mean(text.log_probability, dtype=np.float64)) if len(text) else None
        for text in statistics
    ]
    stops = list(accumulate(len(row.texts) for row in neighbours))
    results = []
    for row, stop in zip(neighbours, stops, strict=True):
        own = tuple(mean for mean in means[stop - len(row.texts) : stop] if mean is not None)
        reason = row.reason or (None if own else UNSCORED)
        results.append(NeighbourMeans(means=own, reason=reason))
    return results


_Place = tuple[int, int, int]
"""A token of the text that can be exchanged: its index among the ids, its first character, and one
past its last."""


@torch.inference_mode()
def find_neighbours(
    masked: MaskedModel,
    texts: Sequence[str],
    *,
    count: int = COUNT,
    batch_tokens: int = _BATCH_TOKENS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Neighbours]:
    """Return the neighbours of each text, in the order given; fewer if there are no more.

    Args:
        masked: the model that proposes them.
        texts: any texts.
        count: neighbours per text.
        batch_tokens: tokens of one pass.
        progress: called with (texts done, texts in all).
    """
    neighbours = []
    for number, text in enumerate(texts, start=1):
        neighbours.append(_neighbours(masked, text, count, batch_tokens))
        progress(number, len(texts))
    return neighbours


def _neighbours(masked: MaskedModel, text: str, count: int, batch_tokens: int) -> Neighbours:
    if not text.strip():
        return Neighbours(reason=EMPTY_TEXT)
    [(ids, offsets)] = encode_with_offsets(masked.tokenizer, [text], added=True)
    # A text that is too long is cut, not the special tokens around it.
    own = np.flatnonzero(offsets[:, 0] >= 0)
    cut = own[max(len(own) - max(len(ids) - masked.context, 0), 0) :]
    ids, offsets = np.delete(ids, cut), np.delete(offsets, cut, axis=0)
    places = []
    for at, (start, stop) in enumerate(offsets.tolist()):
        # A token can begin with the blank before its word, which stays.
        word = text[max(start, 0) : max(stop, 0)].lstrip()
        if word:
            places.append((at, stop - len(word), stop))
    proposals = _proposals(masked, text, ids.tolist(), places, batch_tokens)
    # Positions and tokens break ties of weights, so that the order is always the same.
    proposals.sort()
    texts: dict[str, None] = {}
    for _, (_, start, stop), token in proposals:
        if len(texts) == count:
            break
        word = masked.tokenizer.decode([token]).replace("##", "").strip()
        changed = text[:start] + word + text[stop:]
        if word and changed != text:
            texts.setdefault(changed)
    return Neighbours(texts=tuple(texts)) if texts else Neighbours(reason=NO_PROPOSAL)


def _proposals(
    masked: MaskedModel,
    text: str,
    ids: Sequence[int],
    places: Sequence[_Place],
    batch_tokens: int,
) -> list[tuple[float, _Place, int]]:
    """Return the best proposals for every position: negative weight, position and token."""
    row = torch.tensor(ids, device=masked.device)
    embedded = masked.model.get_input_embeddings()(row)
    dropout_mask = _draw_dropout_mask(text, len(places), embedded.shape[-1]).to(embedded)
    excluded = sorted(set(masked.tokenizer.all_special_ids))
    proposals = []
    step = max(1, batch_tokens // len(ids))
    for first in range(0, len(places), step):
        batch = places[first : first + step]
        inputs = embedded.repeat(len(batch), 1, 1)
        at = torch.tensor([index for index, _, _ in batch], device=masked.device)
        rows = torch.arange(len(batch), device=masked.device)
        inputs[rows, at] = inputs[rows, at] * dropout_mask[first : first + step] / (1 - DROPOUT)
        logits = masked.model(inputs_embeds=inputs).logits[rows, at].float()
        # Without the token itself the shares of the others are p(w) / (1 − p(token)).
        logits[rows, row[at]] = -torch.inf
        weights = torch.softmax(logits, dim=-1)
        weights[:, excluded] = 0.0
        best = weights.topk(min(PER_PLACE, weights.shape[-1]), dim=-1)
        for place, values, tokens in zip(
            batch, best.values.tolist(), best.indices.tolist(), strict=True
        ):
            proposals += [
                (-weight, place, token)
                for weight, token in zip(values, tokens, strict=True)
                if weight > 0
            ]
    return proposals


def _draw_dropout_mask(text: str, places: int, size: int) -> torch.Tensor:
    """Return a mask of the kept parts of each embedding; drawn only by the text."""
    random = np.random.Generator(np.random.Philox(key=item_key(text)))
    return torch.from_numpy(random.random((places, size)) >= DROPOUT)
