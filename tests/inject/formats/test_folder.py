"""Failing, killed and concurrent exports: partial files are never visible."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from inject.digest import file_digest
from inject.errors import InputError
from inject.formats.folder import exporting
from tests.processes import started

CHILD = """
import sys, time
from pathlib import Path
from inject.formats import exported_rows, huggingface
from inject.formats.export import ExportSettings, export_view
from tests.inject.formats.spiked import Copy, Words, spiked

format, out, stop = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
exported_rows.BLOCK = huggingface.BLOCK = 1 << 10
bodies = [[number % 90 + 1] * 40 for number in range(300)]
one = spiked(bodies, [Copy(100 * number, [40 + number] * 9) for number in range(20)])
total = len(one.stream)

def told(done):
    if done >= stop * total // 100:
        print("half way", flush=True)
        time.sleep(60)

settings = ExportSettings(format=format)
export_view(one.view, out, settings, tokenizer=Words(100), copies=one.copies, progress=told)
"""


def start(format: str, out: Path, stop: int) -> subprocess.Popen[str]:
    return started("-c", CHILD, format, out, stop)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): file_digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.parametrize("format", ["megatron", "datasets"])
def test_export_can_be_repeated_after_kill_9(tmp_path, format):
    never = 1000
    whole = start(format, tmp_path / "whole", never)
    killed = start(format, tmp_path / "killed" / "out", 50)
    assert killed.stdout.readline() == "half way\n"
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    left = [path.name for path in (tmp_path / "killed").iterdir()]
    assert any(name.endswith(".tmp") for name in left)
    assert all(name.startswith(".out.") for name in left)
    again = start(format, tmp_path / "killed" / "out", never)
    assert whole.wait(timeout=300) == again.wait(timeout=300) == 0
    assert [path.name for path in (tmp_path / "killed").iterdir()] == ["out"]
    assert digests(tmp_path / "killed" / "out") == digests(tmp_path / "whole")


def test_failed_export_leaves_no_files(tmp_path):
    with pytest.raises(ZeroDivisionError), exporting(tmp_path / "a" / "out") as folder:
        (folder / "file").write_bytes(b"x")
        assert 1 / 0
    assert not list((tmp_path / "a").iterdir())


def test_existing_files_are_never_overwritten(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("full", "file", "link"):
        with pytest.raises(InputError, match="exists already"), exporting(tmp_path / name):
            pass
    (tmp_path / "empty").mkdir()
    with exporting(tmp_path / "empty") as folder:
        (folder / "file").write_bytes(b"x")
    assert (tmp_path / "empty" / "file").read_bytes() == b"x"


def test_concurrent_exports_to_one_folder_are_safe(tmp_path):
    with exporting(tmp_path / "out"):
        with (
            pytest.raises(InputError, match="another process is exporting"),
            exporting(tmp_path / "out"),
        ):
            pass
        with exporting(tmp_path / "out2"):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out2"]


def test_only_leftovers_of_the_same_export_are_removed(tmp_path):
    for name in (".a[b].0123.tmp", ".ab.0123.tmp", ".a[b].0123"):
        (tmp_path / name).mkdir()
    with exporting(tmp_path / "a[b]"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".a[b].0123",
        ".ab.0123.tmp",
        "a[b]",
    ]
