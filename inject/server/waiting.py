"""How long to wait before a server is asked again: what it says itself, or a growing time.

Waits that nobody prescribed are drawn at random below a bound that doubles with each try ("full
jitter"), so that many clients do not come back at one moment. The generator is passed in.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

import numpy as np

from inject.server.address import Patience

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


def process_jitter() -> np.random.Generator:
    """Return a generator for waits, another one in each process; no content depends on it."""
    return np.random.Generator(np.random.Philox(key=os.getpid()))


def back_off(patience: Patience, failures: int, jitter: np.random.Generator) -> float:
    """Return the seconds to wait after so many failures: between half of a bound and the bound."""
    bound = min(patience.longest_wait, patience.first_wait * 2 ** (failures - 1))
    return float(jitter.uniform(bound / 2, bound))


def prescribed_wait(headers: Mapping[str, str], now: Callable[[], datetime]) -> float | None:
    """Return the seconds that a server asks to wait; None where it says nothing readable.

    `retry-after-ms`, `Retry-After` (seconds or a date), or the time after which a limit that is
    used up is set back (`x-ratelimit-remaining-…: 0` with `x-ratelimit-reset-…`).
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None:
        return seconds
    if given:
        try:
            return max(0.0, (parsedate_to_datetime(given) - now()).total_seconds())
        except (ValueError, TypeError):
            pass
    return used_up(headers)


def used_up(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until a limit that is used up is set back; None where none is."""
    waits = [
        wait
        for kind in ("requests", "tokens")
        if _number(headers.get(f"x-ratelimit-remaining-{kind}")) == 0
        and (wait := _duration(headers.get(f"x-ratelimit-reset-{kind}"))) is not None
    ]
    return max(waits, default=None)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _duration(text: str | None) -> float | None:
    """Return the seconds of `20ms`, `1s`, `6m0s`, `1h2m3.5s`, or of a bare number."""
    plain = _number(text)
    if plain is not None or not text:
        return plain
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
