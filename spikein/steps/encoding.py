"""The tokens of the examples, as every step after the pool sees them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inject.example import Example
from inject.tokenizer import encode_texts


def example_tokens(examples: Sequence[Example], tokenizer: Any) -> dict[str, npt.NDArray[np.int64]]:
    """Return the token ids of each example's text, by example_id; no special tokens."""
    encoded = encode_texts(tokenizer, [example.text for example in examples])
    return {example.example_id: ids for example, ids in zip(examples, encoded, strict=True)}
