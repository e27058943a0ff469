"""An arm in plain words: `learning rate 0.0015, 1, 4 or 8 copies, seed 0`.

Made only of the swept keys and the short texts of their values, as in every table,
so that pages, figures, trackers and the command line use the same words. A key without
words becomes `key value`, as in `arm_label`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable

from analysis.arm import short_axis

Words = Callable[[str], str]
_SHORTER = re.compile(r"(?<=\d)e-0+(?=\d+$)")
"""In the exponent of a number: `1e-05` is written `1e-5`."""
_AROUND_STEM = re.compile(r"^.*/|[.]ya?ml$")


def arm_words(axes: Iterable[tuple[str, str]], seed: int | None = None) -> str:
    """Return the description of an arm in words; empty for one arm without axes.

    Args:
        axes: dotted keys and the short texts of their values; one without a value
        is omitted. seed: None for all seeds.

    >>> arm_words([("train.lr", "0.0015"), ("copies", "poisson=2"), ("train.fuse", "yes")])
    'learning rate 0.0015, 2 copies on average (Poisson), fuse yes'
    """
    pairs = [(key, value) for key, value in axes if value]
    ends = Counter(short_axis(key) for key, _ in pairs)
    parts = [
        axis_words(key, value) if key in _AXES or ends[short_axis(key)] == 1 else f"{key} {value}"
        for key, value in pairs
    ]
    return ", ".join([*parts, *([] if seed is None else [f"seed {seed}"])])


def axis_words(key: str, value: str) -> str:
    """Return one value of an axis in words.

    >>> axis_words("copies", "levels=1-4-8")
    '1, 4 or 8 copies'
    """
    return _AXES.get(key, _prefix_with(short_axis(key)))(value)


def _copies(value: str) -> str:
    rule, _, count = value.partition("=")
    words = {"fixed": _count_copies, "poisson": _poisson, "levels": _levels}.get(rule)
    return words(count) if words else f"copies {value}"


def _poisson(rate: str) -> str:
    return f"{_count_copies(rate)} on average (Poisson)"


def _levels(counts: str) -> str:
    weights: Counter[str] = Counter()
    for part in counts.split("-"):
        level, _, weight = part.partition("x")
        weights[level] += int(weight or 1)
    *others, last = weights
    words = f"{', '.join(others)} or {last} copies" if others else _count_copies(last)
    if others and max(weights.values()) > 1:
        words += f" ({':'.join(map(str, weights.values()))})"
    return words


def _describe_period(value: str) -> str:
    start, _, end = value.partition("-")
    if (start, end) == ("0", "1"):
        return "copies throughout the training"
    return f"copies from {start} to {end} of the training"


def _count_with(singular: str, many: str) -> Words:
    def words(value: str) -> str:
        grouped = f"{int(value):,}" if value.isdecimal() else value
        return f"{grouped} {singular if value == '1' else many}"

    return words


_count_copies = _count_with("copy", "copies")


def _prefix_with(name: str) -> Words:
    return lambda value: f"{name} {_SHORTER.sub('e-', value)}"


def _tokens(noun: str) -> Words:
    return lambda value: f"{noun} {_count_with('token', 'tokens')(value)}"


def _unless_none(words: Words, otherwise: str) -> Words:
    return lambda value: otherwise if value == "none" else words(value)


def _file(noun: str) -> Words:
    """Name a file of settings by its stem, and anything else as it is."""
    return lambda value: f"{noun} {_AROUND_STEM.sub('', value)}"


def _look_up(**words: str) -> Words:
    return lambda value: words.get(value, value)


_AXES: dict[str, Words] = {
    "copies": _copies,
    "copies.fixed": _count_copies,
    "copies.poisson": _poisson,
    "copies.levels": _levels,
    "placement.policy": _look_up(
        splice="copies inside documents",
        window="copies inside windows",
        document="copies as documents",
    ),
    "placement.between": _describe_period,
    "placement.stretch": _unless_none(_tokens("copies within"), "copies throughout the training"),
    "placement.tail": _unless_none(_tokens("copies end before the last"), "no tail"),
    "pool.max_tokens": _unless_none(_tokens("texts of up to"), "texts of any length"),
    "corpus.repeat": lambda value: f"background laid out {_count_with('time', 'times')(value)}",
    "train.lr": _prefix_with("learning rate"),
    "train.mode": _look_up(
        pretrain="trained from scratch",
        finetune="full fine-tuning",
        lora="LoRA",
        **{"continue": "continued pretraining"},
    ),
    "train.loss_on": _look_up(all="loss on all tokens", completion="loss on the completion"),
    "train.epochs": _count_with("epoch", "epochs"),
    "train.context": _tokens("windows of"),
    "train.batch_tokens": _tokens("batches of"),
    "train.schedule": lambda value: f"{value} learning rate",
    "train.weight_decay": _prefix_with("weight decay"),
    "train.precision": _prefix_with("trained in"),
    "corpus.tokens": _tokens("trained on"),
    "base.tokens": _tokens("base model of"),
    "base.lr": _prefix_with("base model's learning rate"),
    "model.shape": _file("shape"),
    "model.pretrained": _prefix_with("model"),
}
"""The phrase for the value of each key that is often swept."""
