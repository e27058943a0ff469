"""Leaving a group of one: it is closed, and leaving twice or without a group does nothing."""

from torch import distributed

from train.processes.leaving import leave_process_group


def test_the_group_is_closed(tmp_path):
    leave_process_group()
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'meet'}", rank=0, world_size=1
    )
    leave_process_group()
    assert not distributed.is_initialized()
    leave_process_group()
