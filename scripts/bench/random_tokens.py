"""Text without meaning: benchmarks of training need tokens and no words."""

import numpy as np
import numpy.typing as npt


class RandomTokens:
    """A corpus of random tokens in memory."""

    def __init__(self, n_tokens: int, vocabulary: int) -> None:
        self.n_tokens = n_tokens
        self.doc_starts = np.zeros(1, dtype=np.int64)
        random = np.random.Generator(np.random.Philox(key=0))
        self._tokens = random.integers(0, vocabulary, n_tokens)

    def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the tokens start <= position < stop."""
        return self._tokens[start:stop]
