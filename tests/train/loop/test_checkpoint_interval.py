"""Saving checkpoints to resume from takes at most 2 % of a run's time."""

from itertools import pairwise
from types import SimpleNamespace

import pytest

from train.execution import ExecutionSettings
from train.loop import trainer


@pytest.mark.parametrize(("seconds_to_save", "interval"), [(0.2, 300), (6, 300), (30, 1500)])
def test_checkpoints_take_at_most_two_percent_of_a_run(
    monkeypatch, tmp_path, seconds_to_save, interval
):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(trainer.time, "monotonic", lambda: clock.now)
    saved_at = []

    def save(*_):
        clock.now += seconds_to_save
        saved_at.append(clock.now)

    monkeypatch.setattr(trainer, "complete_checkpoint", save)
    callback = trainer.ResumeCheckpoints(
        record=SimpleNamespace(read=lambda: None),
        identity="run",
        execution=ExecutionSettings(),
        request=SimpleNamespace(share=lambda due: due, shared=False),
        heartbeat=SimpleNamespace(write=lambda *_: None),
    )
    arguments = SimpleNamespace(output_dir=str(tmp_path))
    for step in range(1, 6000):
        clock.now += 1
        state = SimpleNamespace(global_step=step, max_steps=10_000)
        control = SimpleNamespace(should_training_stop=False, should_save=False)
        callback.on_step_end(arguments, state, control)
        if control.should_save:
            callback.on_save(arguments, state, control)
    waits = [later - earlier for earlier, later in pairwise(saved_at[1:])]
    assert saved_at[0] == pytest.approx(300 + seconds_to_save, abs=1)
    assert waits == pytest.approx([interval + seconds_to_save] * len(waits), abs=1)
    assert len(waits) > 1
    assert seconds_to_save * len(waits) <= 0.0201 * (saved_at[-1] - saved_at[0])
