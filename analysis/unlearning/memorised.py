"""What one text's token statistics say of how well a model remembers it.

Three numbers a text, all from the stored statistics of its N scored tokens x_1 … x_N:

- the mean log-probability, in nats a token;
- exact memorisation: the share of tokens that are the most likely one behind the true tokens before
  them (Tirumala et al. 2022);
- extraction strength, 1 - k / N for the smallest k such that all tokens behind the first k are the
  most likely one (Carlini et al. 2021). Greedy decoding from those k tokens gives the rest word for
  word, so nothing need be generated.

A token that shares the highest logit with others has rank 1, too. Where not even the last token is
the most likely one k is N and the strength is 0; a public implementation stops its loop one token
early and gives such a text 1 / N.
"""

from typing import NamedTuple

import numpy as np

from detect.token_statistics import TokenStatistics


class TextMemory(NamedTuple):
    """One text under one model; all NaN where it has no scored token or the model diverged."""

    log_probability: float
    """Mean over the tokens, nats."""
    exact_memorisation: float
    """In [0, 1]."""
    extraction_strength: float
    """In [0, 1]; never above exact memorisation."""


NOTHING = TextMemory(float("nan"), float("nan"), float("nan"))


def text_memory(statistics: TokenStatistics) -> TextMemory:
    """Return what one text's statistics say."""
    scored = len(statistics)
    mean = float(np.mean(statistics.log_probability, dtype=np.float64)) if scored else np.nan
    # A diverged model has NaN logits, and none of them is strictly greater than another.
    if not np.isfinite(mean):
        return NOTHING
    first = statistics.rank == 1
    missed = np.flatnonzero(~first)
    prefix = int(missed[-1]) + 1 if len(missed) else 0
    return TextMemory(mean, float(first.mean()), (scored - prefix) / scored)
