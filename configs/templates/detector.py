"""A detector of your own: how much more likely are the tokens than the model expected?

Judge it by ground truth, without any model:

    spikein validate my_detector.py:score RUN_OR_BUNDLE

`statistics` has one number per scored token in each array: `log_probability` of the true token, and
of the whole distribution before it the mean and the standard deviation of the log-probability
(`mean_log_prob`, `std_log_prob`), the `entropy` (all in nats) and the true token's `rank`. Texts
without a scored token never come here. A higher score must mean 'more likely a member'. Where there
is no score, return a sentence that says why.
"""

import numpy as np

from spikein import TokenStatistics


def score(statistics: TokenStatistics) -> float | str:
    """Mean distance of the tokens from what the model expected, in standard deviations."""
    deviation = np.maximum(statistics.std_log_prob, 1e-3)
    distance = (statistics.log_probability - statistics.mean_log_prob) / deviation
    return float(distance.mean())
