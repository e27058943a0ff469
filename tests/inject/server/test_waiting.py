"""How long to wait: what servers say of it, and times that grow by themselves."""

from datetime import UTC, datetime

import numpy as np
import pytest

from inject.server.address import Patience
from inject.server.waiting import back_off, prescribed_wait, process_jitter

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Wed, 04 Mar 2026 05:06:17 GMT"}, 10.0),
        ({"retry-after": "Wed, 04 Mar 2026 05:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"x-ratelimit-reset-requests": "9s"}, None),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "9s"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "12"}, 12.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "later"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "5s",
            },
            5.0,
        ),
    ],
)
def test_what_a_server_says(headers, seconds):
    found = prescribed_wait(headers, lambda: NOW)
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_times_double_up_to_a_bound_and_are_drawn_from_the_generator_that_is_given():
    patience = Patience(first_wait=1, longest_wait=10)
    jitter = np.random.Generator(np.random.Philox(key=1))
    for failures, bound in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (40, 10)):
        waits = [back_off(patience, failures, jitter) for _ in range(200)]
        assert bound / 2 <= min(waits) < 0.55 * bound
        assert 0.95 * bound < max(waits) <= bound
    again = np.random.Generator(np.random.Philox(key=1))
    assert back_off(patience, 1, again) == back_off(
        patience, 1, np.random.Generator(np.random.Philox(key=1))
    )
    before = np.random.get_state()[1].tolist()
    process_jitter().random()
    assert np.random.get_state()[1].tolist() == before
