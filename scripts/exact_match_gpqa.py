"""Exact match of masked words before and after a model was trained on GPQA.

The experiment of Ravichander et al. 2025, Table 4, in small: a tiny model is trained on background
text (before), then fine-tuned on some rows of GPQA (after). Both predict what `ts_slot` and
`info_probe` mask, in those rows and in as many others, which neither model saw. The model continues
texts and follows no instructions, so both detectors ask under `plain`; the model before is the
reference that says which words surprise, and its own rate is near zero for that reason.

GPQA's rows stay in memory: no word of them is printed or written. Takes some five minutes on a CPU:

    python -m scripts.exact_match_gpqa GPQA.zip BACKGROUND.jsonl.gz
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from detect.detector_settings import parse_detectors
from detect.detectors.info_probe import DECISION
from detect.engine.target import Target, make_target
from detect.generation.guesses import GuessRequest, guess, mask_text
from detect.generation.word_statistics import causal_words
from detect.targets.local import LocalTextModel
from inject.corpus.tokenizer import encode_texts, train_tokenizer
from inject.examples.contaminant import Contaminant
from inject.examples.example import Example
from inject.examples.load import load_examples
from inject.keyed import Stream, generator
from inject.reading.rows import read_rows

PROBES: Mapping[str, str] = {
    "TS-slot, question": "ts_slot:prompt=plain",
    "TS-slot, wrong option": "ts_slot:prompt=plain:slot=option",
    "information probes, prob": "info_probe:prompt=plain:candidates=words",
    "information probes, rank": "info_probe:prompt=plain:candidates=words:select=rank",
}
"""The comparisons of Table 4, without a knowledge filter, which requires an instruction model."""


class DecisionRates(NamedTuple):
    """How good yes-or-no decisions are."""

    precision: float
    """Share of members among the texts that were called members; NaN if none was."""
    recall: float
    """Share of the members that were called members; NaN if there are none."""
    f_beta: float
    """(1 + β²) · precision · recall / (β² · precision + recall); 0 without a find."""


def decision_rates(
    members: Sequence[bool], decisions: Sequence[bool] | npt.NDArray[np.bool_], *, beta: float = 0.1
) -> DecisionRates:
    """Return precision, recall and F-beta; a β of 0.1 weighs precision a hundred times as much."""
    truth, called = np.asarray(members, np.bool_), np.asarray(decisions, np.bool_)
    hits = int((truth & called).sum())
    precision = hits / int(called.sum()) if called.any() else math.nan
    recall = hits / int(truth.sum()) if truth.any() else math.nan
    if not hits:
        return DecisionRates(precision, recall, 0.0 if truth.any() else math.nan)
    both = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return DecisionRates(precision, recall, both)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of the experiment; the defaults are those of the documented figures."""

    rows: int = 24
    """Rows that are trained on, and as many that are not."""
    longest: int = 256
    """Tokens of a row at most."""
    vocabulary: int = 4096
    hidden: int = 128
    layers: int = 4
    base_steps: int = 300
    steps: int = 150
    batch: int = 8
    """Windows of background a step."""
    background: int = 3_000_000
    """Characters of background text."""


class Rates(NamedTuple):
    """One probe's exact matches, as shares of its requests."""

    probe: str
    asked: int
    before: float
    after: float
    asked_others: int
    after_others: float
    """On rows that neither model saw."""
    decisions: DecisionRates | None
    """Of two exact matches and more, after; None if one part of a text is masked."""


def exact_match(gpqa: str, background: str, sizes: Sizes, *, seed: int = 0) -> list[Rates]:
    """Train both models, and return each probe's rates.

    Args:
        gpqa: the authors' zip.
        background: rows with a `text`.
        sizes: of the model and of the training.
        seed: of the weights, of the windows and of the choice of rows.
    """
    texts = _background(background, sizes.background)
    tokenizer = train_tokenizer(texts, sizes.vocabulary)
    stream = np.concatenate([np.append(ids, 0) for ids in encode_texts(tokenizer, texts)])
    rows = _rows(gpqa, tokenizer, sizes, seed)
    members, others = rows[: sizes.rows], rows[sizes.rows :]
    model = _model(len(tokenizer), sizes, seed)
    _train_background(model, stream, sizes, seed)
    before = make_target(deepcopy(model), tokenizer, name="before")
    _train_rows(model, [tokenizer(row.text)["input_ids"] for row in members], sizes.steps)
    after = make_target(model, tokenizer, name="after")
    return [_rates(name, text, before, after, members, others) for name, text in PROBES.items()]


def _rates(
    name: str,
    setting: str,
    before: Target,
    after: Target,
    members: Sequence[Example],
    others: Sequence[Example],
) -> Rates:
    (need,) = parse_detectors(setting)[0].needs
    request = getattr(need, "request")  # noqa: B009 (a need of guesses has one)
    hits = {
        (target.name, side): _exact(target, before, rows, request)
        for target in (before, after)
        for side, rows in (("members", members), ("others", others))
    }
    all_hits = {key: [hit for row in rows for hit in row] for key, rows in hits.items()}
    decisions = None
    if request.limit > 1:
        called = [
            sum(row) >= DECISION for side in ("members", "others") for row in hits["after", side]
        ]
        labels = [True] * len(members) + [False] * len(others)
        decisions = decision_rates(labels, called)
    return Rates(
        probe=name,
        asked=len(all_hits["before", "members"]),
        before=_mean(all_hits["before", "members"]),
        after=_mean(all_hits["after", "members"]),
        asked_others=len(all_hits["after", "others"]),
        after_others=_mean(all_hits["after", "others"]),
        decisions=decisions,
    )


def _exact(
    target: Target, reference: Target, rows: Sequence[Example], request: GuessRequest
) -> list[list[bool]]:
    """Return, of each row, which masked parts a model puts back."""
    texts = [row.text for row in rows]
    words: Sequence[Any] = [()] * len(rows)
    if request.asks_reference:
        words = causal_words(reference, texts)
    masked = [
        mask_text(row.text, request, fields=row.fields, words=own)
        for row, own in zip(rows, words, strict=True)
    ]
    return [guessed.exact("plain") for guessed in guess(LocalTextModel(target), masked, request)]


def _mean(hits: Sequence[bool]) -> float:
    return float(np.mean(hits)) if hits else float("nan")


def _background(pattern: str, characters: int) -> list[str]:
    texts, n_characters = [], 0
    for _, row in read_rows(pattern, purpose="background"):
        texts.append(str(row["text"])[:20_000])
        n_characters += len(texts[-1])
        if n_characters >= characters:
            break
    return texts


def _rows(path: str, tokenizer: Any, sizes: Sizes, seed: int) -> list[Example]:
    contaminant = Contaminant(dataset="gpqa", path=path, members=sizes.rows, nonmembers=sizes.rows)
    examples = load_examples(contaminant, seed=seed).examples
    short = [row for row in examples if len(tokenizer(row.text)["input_ids"]) <= sizes.longest]
    order = generator(seed, Stream.SIDE, 0).permutation(len(short))
    return [short[index] for index in order[: 2 * sizes.rows]]


def _model(vocabulary: int, sizes: Sizes, seed: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=vocabulary,
                hidden_size=sizes.hidden,
                intermediate_size=2 * sizes.hidden,
                num_hidden_layers=sizes.layers,
                num_attention_heads=4,
                num_key_value_heads=4,
                max_position_embeddings=2 * sizes.longest,
                bos_token_id=0,
                eos_token_id=0,
            )
        )


def _train_background(model: Any, stream: Any, sizes: Sizes, seed: int) -> None:
    random = generator(seed, Stream.WINDOW_ORDER, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for _ in range(sizes.base_steps):
        starts = random.integers(0, len(stream) - sizes.longest, sizes.batch)
        ids = torch.tensor(np.stack([stream[at : at + sizes.longest] for at in starts]))
        _step(model, optimizer, ids, ids)


def _train_rows(model: Any, sequences: Sequence[list[int]], steps: int) -> None:
    longest = max(map(len, sequences))
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = labels[row, : len(sequence)] = torch.tensor(sequence)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    model.train()
    for _ in range(steps):
        _step(model, optimizer, ids, labels)


def _step(model: Any, optimizer: Any, ids: torch.Tensor, labels: torch.Tensor) -> None:
    optimizer.zero_grad()
    model(input_ids=ids, labels=labels).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def main() -> None:
    """Print the table, in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("gpqa")
    parser.add_argument("background")
    parser.add_argument("--rows", type=int, default=Sizes.rows)
    parser.add_argument("--steps", type=int, default=Sizes.steps)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sizes = Sizes(rows=options.rows, steps=options.steps)
    print(
        "| probe | asked | before | after | Δ | other rows, after | precision | recall | F(0.1) |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for line in exact_match(options.gpqa, options.background, sizes, seed=options.seed):
        cells = [
            line.probe,
            str(line.asked),
            f"{line.before:.1%}",
            f"{line.after:.1%}",
            f"{line.after - line.before:.1%}",
            f"{line.after_others:.1%} of {line.asked_others}",
            *(
                ["–"] * 3
                if line.decisions is None
                else [f"{value:.2f}" for value in line.decisions]
            ),
        ]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
