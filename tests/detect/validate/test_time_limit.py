"""The time limit: it ends what would never end, and leaves other timers as they were."""

import contextlib
import signal
import threading
import time

import pytest

from detect.validate.time_limit import TookTooLong, time_limit


def test_what_never_ends_is_ended_even_where_it_catches_errors():
    started = time.monotonic()
    with pytest.raises(TookTooLong, match=r"more than 0\.05 s"), time_limit(0.05):
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.001)
    assert time.monotonic() - started < 5


def test_what_ends_in_time_leaves_nothing_behind():
    before = signal.getsignal(signal.SIGALRM)
    left = signal.getitimer(signal.ITIMER_REAL)[0]
    with time_limit(5):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] <= left
    assert bool(signal.getitimer(signal.ITIMER_REAL)[0]) == bool(left)


def test_a_timer_that_runs_already_goes_on():
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(True))
    outer = signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with time_limit(5):
            time.sleep(0.01)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 0.1
        time.sleep(0.15)
        assert rang == [True]
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, before)


def test_on_another_thread_nothing_is_interrupted():
    found = []

    def work() -> None:
        with time_limit(0.01):
            time.sleep(0.05)
        found.append("ended by itself")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["ended by itself"]
