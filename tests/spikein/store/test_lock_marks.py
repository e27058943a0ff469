"""Marks of processes that use a store or build in it: named while alive, removed when dead."""

import json
import os
import signal
import socket
import subprocess
import textwrap
from pathlib import Path

import pytest

from spikein.store.garbage import collect
from spikein.store.lock_marks import own_mark
from spikein.store.manifest import StoreError
from spikein.store.store import Store
from tests.processes import started
from tests.spikein.samples import leftovers, recipe, write

CHILD = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from inject.step import Recipe
    from spikein.store.store import Store

    store = Store(Path(sys.argv[1]))

    def build(out):
        print("building", flush=True)
        time.sleep(60)

    with store.in_use():
        print("in", flush=True)
        recipe = Recipe(kind="thing", function="made:build", settings={"a": 1})
        store.obtain(recipe, build, label="l")
    """
)


def builder(root: Path) -> subprocess.Popen[str]:
    process = started("-c", CHILD, root)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["in\n", "building\n"]
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def marks(root: Path) -> list[Path]:
    return sorted((root / ".leases").glob("use-*.lock"))


def test_marks_name_host_process_and_start_and_are_removed_after_a_kill(tmp_path):
    process = builder(tmp_path)
    try:
        (mark,) = marks(tmp_path)
        lease = tmp_path / ".leases" / f"{recipe(a=1).digest[:12]}.lock"
        for path in (mark, lease):
            values = json.loads(path.read_text())
            assert (values["host"], values["process"]) == (socket.gethostname(), process.pid)
            assert values["started"] <= values["since"] <= own_mark().since
        with pytest.raises(StoreError) as caught:
            collect(Store(tmp_path), keep=[])
        assert "1 other process uses the store" in str(caught.value)
        assert f"process {process.pid} on {socket.gethostname()}" in str(caught.value)
    finally:
        kill(process)
    # The next use removes the marks of dead processes.
    assert marks(tmp_path) == [mark]
    with Store(tmp_path).in_use():
        (own,) = marks(tmp_path)
        assert json.loads(own.read_text())["process"] == os.getpid()
    assert not marks(tmp_path)


def test_a_waiting_process_names_the_builder_and_takes_over_after_a_kill(tmp_path):
    process = builder(tmp_path)
    notices: list[str] = []

    def notice(text: str) -> None:
        notices.append(text)
        kill(process)

    assert Store(tmp_path).obtain(recipe(a=1), write("x"), label="l", notice=notice).built
    (message,) = notices
    assert f"another run is building thing/l-{recipe(a=1).digest[:12]} (process" in message
    assert f"process {process.pid} on {socket.gethostname()}, started 20" in message
    assert not leftovers(tmp_path)


def test_a_mark_of_another_host_is_named_and_never_taken_for_dead(tmp_path):
    store = Store(tmp_path)
    store.obtain(recipe(a=2), write("x"), label="kept")
    mark = tmp_path / ".leases" / "use-7-0123abcd.lock"
    started = "2026-01-01 00:00:00"
    mark.write_text(
        json.dumps({"host": "elsewhere", "process": 7, "started": started, "since": started})
    )
    with store.in_use():
        assert mark.exists()
    with pytest.raises(StoreError) as caught:
        collect(store, keep=[])
    assert "process 7 on elsewhere" in str(caught.value)
    assert f"delete {mark}" in str(caught.value)
    mark.unlink()
    assert len(collect(store, keep=[]).removed) == 1


def test_an_unreadable_mark_does_no_harm(tmp_path):
    store = Store(tmp_path)
    for number, text in enumerate(("", "{", "[]", '{"host": 1}')):
        (tmp_path / ".leases").mkdir(exist_ok=True)
        (tmp_path / ".leases" / f"use-{number}-0.lock").write_text(text)
    with store.in_use():
        assert len(marks(tmp_path)) == 1
