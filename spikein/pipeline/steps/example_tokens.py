"""The tokens of the examples, as every step after the pool sees them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inject.corpus.tokenizer import encode_texts
from inject.examples.example import Example


def example_tokens(examples: Sequence[Example], tokenizer: Any) -> dict[str, npt.NDArray[np.int64]]:
    """Return the token ids of each example's text, by example_id; no special tokens."""
    encoded = encode_texts(tokenizer, [example.text for example in examples])
    return {example.example_id: ids for example, ids in zip(examples, encoded, strict=True)}
