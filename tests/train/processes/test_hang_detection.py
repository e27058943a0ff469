"""A hanging process is detected quickly by rank, and waiting processes are not blamed."""

import json
import time
from pathlib import Path

import psutil
import pytest

from tests.processes import python
from tests.train.killable import CONTEXT
from train.launch import ProcessFailed
from train.processes.hang_detection import (
    FIRST_STEP_SECONDS,
    NO_HEARTBEAT,
    SAVE_SECONDS,
    SETUP_SECONDS,
    HangDetector,
    HeartbeatWriter,
    Phase,
    read_heartbeat,
)


class Run:
    """Processes and a detector with manually controlled heartbeats and clock."""

    def __init__(self, folder: Path, processes: int = 2, hang_timeout: float | None = None) -> None:
        self.folder, self.now = folder, 1000.0
        folder.mkdir()
        self.beats = [0] * processes
        self.pulses = [0] * processes
        self.at = [(0, Phase.SETUP)] * processes
        self.watch = HangDetector(
            folder, processes, hang_timeout=hang_timeout, clock=lambda: self.now
        )

    def beat(self, rank: int, phase: Phase, step: int) -> None:
        self.beats[rank] += 1
        self.at[rank] = (step, phase)

    def step(self, number: int, *, seconds: float) -> None:
        """Complete one step in all processes."""
        for phase in (Phase.DATA, Phase.PASS, Phase.UPDATE, Phase.BETWEEN):
            for rank in range(len(self.beats)):
                self.beat(rank, phase, number)
        assert self.wait(seconds) is None

    def wait(self, seconds: float, *, stopped: tuple[int, ...] = ()):
        """Let time pass with regular checks; return the hang and the seconds until then."""
        stride = 1 if seconds < 100 else 5
        for passed in range(stride, int(seconds) + 1, stride):
            self.now += stride
            for rank in range(len(self.beats)):
                if rank not in stopped:
                    self.pulses[rank] += 1
                step, phase = self.at[rank]
                text = f"{self.beats[rank]} {step} {phase}".ljust(64) + f"{self.pulses[rank]}"
                if self.beats[rank]:
                    (self.folder / f"rank-{rank}").write_text(text)
            if (hang := self.watch.check()) is not None:
                return hang, passed
        return None


def under_way(folder: Path, processes: int = 2) -> Run:
    """Return processes that have completed 29 steps of two seconds."""
    run = Run(folder / "beats", processes)
    for number in range(1, 30):
        run.step(number, seconds=2)
    return run


def test_least_advanced_process_is_reported_rather_than_waiting_ones(tmp_path):
    run = under_way(tmp_path, processes=3)
    for rank in (0, 1, 2):
        run.beat(rank, Phase.DATA, 30)
    for rank in (0, 2):
        run.beat(rank, Phase.PASS, 30)
    hang, seconds = run.wait(500)
    assert hang[0] == (1,)
    assert 120 < seconds <= 130
    assert "training process 1 of 3 hangs" in hang[1]
    assert "It is at step 30, fetching data" in hang[1]
    assert "process 0, 2 waits for it at step 30, the forward and backward pass" in hang[1]


def test_a_stopped_process_is_reported_if_all_are_at_the_same_step(tmp_path):
    run = under_way(tmp_path)
    hang, _ = run.wait(500, stopped=(0,))
    assert hang[0] == (0,)
    assert "training process 0 of 2 does not run" in hang[1]


def test_no_process_is_blamed_without_evidence(tmp_path):
    run = under_way(tmp_path)
    hang, _ = run.wait(500)
    assert hang[0] == ()
    assert "all 2 training processes have waited for each other" in hang[1]


def test_unobserved_quick_steps_are_not_taken_for_the_first_step(tmp_path):
    """On a quick machine the first check sees step 10 of a run started at step 1 or 9."""
    for first in (1, 9):
        folder = tmp_path / f"from-{first}"
        folder.mkdir()
        now = 1000.0
        watch = HangDetector(folder, 2, hang_timeout=15, clock=lambda: now)  # noqa: B023
        for rank, (count, phase) in enumerate(((53, Phase.COUNT), (52, Phase.DATA))):
            (folder / f"rank-{rank}").write_text(f"{count} 10/{first} {phase}".ljust(64) + "1")
        hang = None
        while hang is None and now < 1100:
            now += 1
            hang = watch.check()
            for rank in (0, 1):
                text = (folder / f"rank-{rank}").read_text()
                (folder / f"rank-{rank}").write_text(text[:64] + f"{now:.0f}")
        assert hang is not None
        assert hang[0] == (1,)


@pytest.mark.parametrize(
    ("hang_timeout", "seconds", "step", "phase", "limit"),
    [
        # The limit depends on the duration of steps,
        (None, 1, 12, Phase.DATA, 120),
        (None, 10, 12, Phase.DATA, 200),
        (None, 100, 12, Phase.DATA, 1100),
        # allows for slow starts and checkpoints,
        (None, 1, 0, Phase.SETUP, SETUP_SECONDS),
        (None, 1, 1, Phase.DATA, FIRST_STEP_SECONDS),
        (None, 1, 20, Phase.SAVE, SAVE_SECONDS),
        # and a configured one applies within a step and shortens no other.
        (20, 1, 12, Phase.DATA, 20),
        (300, 1, 12, Phase.DATA, 300),
        (20, 1, 1, Phase.DATA, FIRST_STEP_SECONDS),
        (1200, 1, 1, Phase.DATA, 1200),
        (1200, 1, 12, Phase.SAVE, 1200),
    ],
)
def test_silence_limit_depends_on_phase_and_step_time(
    tmp_path, hang_timeout, seconds, step, phase, limit
):
    run = Run(tmp_path / "beats", hang_timeout=hang_timeout)
    for number in range(1, step):
        run.step(number, seconds=seconds)
    for rank in (0, 1):
        run.beat(rank, phase, step)
    run.beat(0, Phase.PASS, step)
    hang, taken = run.wait(2000)
    assert hang[0] == (1,)
    assert limit - seconds <= taken <= limit + 10


def test_a_process_that_never_started_is_named(tmp_path):
    run = Run(tmp_path / "beats")
    run.beat(0, Phase.SETUP, 0)
    hang, _ = run.wait(2000)
    assert hang[0] == (1,)


def test_time_without_the_detector_running_is_ignored(tmp_path):
    run = under_way(tmp_path)
    run.now += 100_000
    assert run.wait(60) is None


def test_an_ended_process_is_not_a_hang(tmp_path):
    run = under_way(tmp_path)
    for rank in (0, 1):
        run.beat(rank, Phase.ENDED, 0)
    assert run.wait(2000, stopped=(0, 1)) is None


def test_heartbeat_round_trip(tmp_path):
    heartbeat = HeartbeatWriter(tmp_path, rank=3)
    assert read_heartbeat(tmp_path, 3)[:3] == (1, 0, Phase.SETUP)
    heartbeat.write(Phase.PASS, 123_456_789)
    assert read_heartbeat(tmp_path, 3)[:3] == (2, 123_456_789, Phase.PASS)
    heartbeat.write(Phase.DATA, 7)
    assert read_heartbeat(tmp_path, 3)[:3] == (3, 7, Phase.DATA)
    heartbeat.close()
    assert read_heartbeat(tmp_path, 3).phase is Phase.ENDED
    assert read_heartbeat(tmp_path, 0) == NO_HEARTBEAT
    (tmp_path / "rank-0").write_text("half a li")
    assert read_heartbeat(tmp_path, 0) == NO_HEARTBEAT


AT = 9 * 4 * CONTEXT


def hangs(timeout: int) -> list[dict[str, object]]:
    """Return the run of two processes, in which a step may take so many seconds."""
    return [{"engine": "torchrun", "processes": 2, "hang_timeout": timeout}]


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("how", "timeout", "message"),
    [
        # A process is stopped if it has given no sign of life for ten seconds.
        ("STOP", 12, r"process 1 of 2 does not run"),
        ("fetch", 8, r"(?s)process 1 of 2 hangs.*at step 10, fetching data; process 0 waits"),
    ],
)
def test_a_real_hanging_process_is_named_and_both_are_ended(
    tmp_path, tokenizer, how, timeout, message
):
    from tests.train.engines import start

    before = {child.pid for child in psutil.Process().children()}
    started = time.monotonic()
    left = tmp_path / "unfinished"
    with pytest.raises(ProcessFailed, match=message) as error:
        start(
            tmp_path / "out", left, tokenizer, hangs(timeout), 4, how, AT,
            heartbeats=left / "heartbeats", hang_timeout=timeout,
        )  # fmt: skip
    assert time.monotonic() - started < 120
    assert "run again to resume" in str(error.value)
    assert {child.pid for child in psutil.Process().children()} == before
    if how == "fetch":
        assert "in getitem" in str(error.value), (
            "the message contains the stack of the hanging process"
        )


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_torchrun_processes_detect_a_hang(tmp_path, tokenizer):
    done = python(
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "-m", "tests.train.engines", tmp_path / "out", tmp_path / "unfinished",
        tokenizer, json.dumps(hangs(8)), 4, "fetch", AT, OMP_NUM_THREADS="1",
    )  # fmt: skip
    assert done.returncode != 0
    assert "training process 1 of 2 hangs" in done.stderr
    assert "step 10, fetching data" in done.stderr
