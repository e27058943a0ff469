"""The store under kills, races and full disks. Processes are real processes."""

import errno
import os
import signal
import stat
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import xxhash

from inject.digest import digest, text_digest
from spikein.store.manifest import StoreError
from spikein.store.store import ArtifactRules, Store
from tests.processes import started
from tests.spikein.mounts import mounted
from tests.spikein.samples import leftovers, recipe, visible, write


def test_obtain_builds_once_and_makes_read_only(tmp_path):
    store, rules = Store(tmp_path), ArtifactRules(volatile=("log.*",))
    first = store.obtain(recipe(a=1), write("x"), label="my label", rules=rules)
    again = store.obtain(recipe(a=1), write("y"), label="another", rules=rules)
    assert (first.built, again.built) == (True, False)
    assert first.artifact.path == again.artifact.path
    assert first.artifact.path.name == f"my-label-{recipe(a=1).digest[:12]}"
    assert (again.artifact / "deep/a.txt").read_text() == "x"
    for path in [first.artifact.path, *first.artifact.path.rglob("*")]:
        assert not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    record = first.artifact.manifest.files["deep/a.txt"]
    assert record[:2] == (text_digest("x"), 1)
    assert record.xxh3 == xxhash.xxh3_128(b"x").hexdigest()
    # Volatile files are not part of the content.
    assert first.artifact.manifest.content == digest({"deep/a.txt": text_digest("x")})
    store.verify(again.artifact)
    manifest = (first.artifact / "manifest.json").read_text()
    assert str(tmp_path) not in manifest
    assert os.uname().nodename not in manifest


def test_links_in_an_artifact_are_refused(tmp_path):
    with pytest.raises(StoreError, match="plain files"):
        Store(tmp_path / "s").obtain(
            recipe(a=1), lambda out: (out / "link").symlink_to(tmp_path), label="l"
        )
    assert not visible(tmp_path / "s")
    assert not leftovers(tmp_path / "s")


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
def test_a_failed_build_leaves_nothing(tmp_path, error):
    def build(out: Path) -> None:
        write("x")(out)
        raise error

    store = Store(tmp_path)
    with pytest.raises(type(error)):
        store.obtain(recipe(a=1), build, label="l")
    assert not visible(tmp_path)
    assert not leftovers(tmp_path)
    assert store.obtain(recipe(a=1), write("x"), label="l").built


CHILD = textwrap.dedent(
    """
    import os, signal, sys, time
    from pathlib import Path
    from inject import digest, files
    import spikein.store.store as module
    from inject.step import Recipe

    root, when = Path(sys.argv[1]), sys.argv[2]

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def build(out):
        with (root / "builds.log").open("a") as log:
            log.write(f"{os.getpid()}\\n")
        if when == "start":
            die()
        (out / "a.txt").write_text("x" * 1000)
        if when == "half":
            die()
        if when == "slow":
            time.sleep(0.5)
        (out / "deep").mkdir()
        (out / "deep" / "b.txt").write_text("y" * 1000)

    if when == "before the manifest":
        module.Manifest.to_json = die
    if when == "before the rename":
        Path.rename = die
    if when == "after the rename":
        rename = Path.rename
        Path.rename = lambda self, target: (rename(self, target), die())
    store = module.Store(root / "store")
    recipe = Recipe(kind="thing", function="made:build", settings={"a": 1})
    obtained = store.obtain(recipe, build, label="l", notice=lambda text: print("notice", text))
    print(obtained.built, obtained.artifact.manifest.content)
    """
)


def child(root: Path, when: str) -> subprocess.Popen[str]:
    return started("-c", CHILD, root, when)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """The content and the names of the files of a process that is not killed."""
    root = tmp_path_factory.mktemp("calm")
    out, _ = child(root, "never").communicate(timeout=60)
    return out.split()[1], visible(root / "store")


def builds(root: Path) -> int:
    return len((root / "builds.log").read_text().splitlines())


@pytest.mark.parametrize(
    ("when", "expected_builds"),
    [
        ("start", 2),
        ("half", 2),
        ("before the manifest", 2),
        ("before the rename", 2),
        ("after the rename", 1),
    ],
)
def test_a_run_after_kill_9_at_any_point_builds_the_same(tmp_path, calm, when, expected_builds):
    content, names = calm
    killed = child(tmp_path, when)
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    store = tmp_path / "store"
    assert len(visible(store)) == (1 if when == "after the rename" else 0)

    again, errors = child(tmp_path, "never").communicate(timeout=60)
    assert again.split() == [str(when != "after the rename"), content], errors
    assert builds(tmp_path) == expected_builds
    assert visible(store) == names
    assert not leftovers(store)


def test_two_processes_racing_for_one_step_build_it_once(tmp_path):
    racers = [child(tmp_path, "slow") for _ in range(2)]
    outputs = [racer.communicate(timeout=60)[0] for racer in racers]
    assert builds(tmp_path) == 1
    assert sorted(text.split()[-2] for text in outputs) == ["False", "True"]
    assert len({text.split()[-1] for text in outputs}) == 1
    assert any("another run is building thing/l" in text for text in outputs)


WRAPPED = RuntimeError("I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), WRAPPED])
def test_a_full_disk_is_named_and_leaves_nothing(tmp_path, monkeypatch, error):
    import spikein.store.filesystem as module

    def full(paths: list[Path]) -> None:
        raise error

    store = Store(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "fsync_all", full)
        with pytest.raises(StoreError, match=r"full.*left while writing thing/l") as caught:
            store.obtain(recipe(a=1), write("x"), label="l")
    assert str(tmp_path) in str(caught.value)
    assert not visible(tmp_path)
    assert not leftovers(tmp_path)
    assert store.obtain(recipe(a=1), write("x"), label="l").built


def test_a_disk_that_fills_within_a_file_is_reported_for_all_writers(tmp_path):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from safetensors.numpy import save_file

    large = np.random.default_rng(0).bytes(1 << 20)
    numbers = np.frombuffer(large, dtype=np.uint8)
    table = pa.table({"a": numbers})
    writers: dict[str, Callable[[Path], object]] = {
        "tofile": lambda path: numbers.tofile(path),
        "save": lambda path: np.save(path, numbers),
        "arrow": lambda path: pq.write_table(table, path, compression="none"),
        "safetensors": lambda path: save_file({"a": numbers}, path),
        "text": lambda path: path.write_bytes(large),
    }
    with mounted(tmp_path / "small", kilobytes=256) as small:
        store = Store(small / "store")
        earlier = store.obtain(recipe(a=0), write("x"), label="kept").artifact
        for name, writer in writers.items():
            with pytest.raises(StoreError, match="disk is full"):
                store.obtain(
                    recipe(writer=name), lambda out, w=writer: w(out / "a") and None, label="l"
                )
            assert visible(store.root) == [str(earlier.path.relative_to(store.root))]
            assert not leftovers(store.root)
        store.verify(earlier)
        assert store.obtain(recipe(a=2), write("x"), label="fits").built


def test_an_unwritable_store_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "file" / "store").obtain(recipe(a=1), write("x"), label="l")
