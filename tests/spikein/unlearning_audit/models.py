"""Three tiny saved LLaMAs of one shape: original, unlearned, retrained; and their texts."""

from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import make_texts
from tests.detect.memorised import overtrain, small_model

WORDS = 60


class Models(NamedTuple):
    original: Path
    unlearned: Path
    retrained: Path
    forgotten: list[str]
    """Texts that the unlearned model no longer knows."""
    remembered: list[str]
    """Texts that it still does."""
    unseen: list[str]


def make_models(folder: Path, tokenizer: Any, *, steps: int = 100) -> Models:
    """The unlearned model is trained like the original, but without half of the texts."""
    texts = make_texts(40, seed=5, words=WORDS)
    background, forgotten, remembered, unseen = texts[:16], texts[16:24], texts[24:32], texts[32:]
    base = small_model(len(tokenizer))
    overtrain(base, [tokenizer(text)["input_ids"] for text in background], steps=20)
    paths = {}
    for name, members in (
        ("original", [*forgotten, *remembered]),
        ("unlearned", remembered),
        ("retrained", []),
    ):
        model = deepcopy(base)
        sequences = [tokenizer(text)["input_ids"] for text in [*members, *background[:4]]]
        overtrain(model, sequences, steps=steps if members else 10)
        paths[name] = folder / name
        model.save_pretrained(paths[name])
        tokenizer.save_pretrained(paths[name])
    return Models(**paths, forgotten=forgotten, remembered=remembered, unseen=unseen)
