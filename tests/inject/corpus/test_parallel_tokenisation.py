"""Corpora built by several processes, and by builds that were killed: always the same files."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.background.document import Document
from inject.corpus.build import BuildOptions, build_corpus
from inject.corpus.corpus import Corpus
from inject.corpus.parallel_tokenisation import chunk_folder, finished_chunk
from inject.errors import InputError, SpikeinError
from tests.conftest import make_texts

TEXTS = make_texts(300)
TOKENS = 4_000
SIZE = 700


def documents():
    return (Document(text, f"t:{index}", index % 3) for index, text in enumerate(TEXTS))


def build(out: Path, tokenizer, *, tokens=TOKENS, size=SIZE, processes=1, **more):
    out.mkdir(parents=True)
    options = BuildOptions(processes=processes, shard_bytes=size, **more)
    return build_corpus(
        out, documents=documents(), tokenizer=tokenizer, tokens=tokens, options=options
    )


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_number_of_processes_does_not_change_the_files(tmp_path, tiny_tokenizer):
    alone = build(tmp_path / "1", tiny_tokenizer)
    assert len(alone.shards) > 5
    build(tmp_path / "3", tiny_tokenizer, processes=3)
    assert files(tmp_path / "3") == files(tmp_path / "1")


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 5_000), st.integers(1, TOKENS), st.data())
def test_finished_chunks_are_reused_unchanged(tmp_path_factory, tiny_tokenizer, size, tokens, data):
    """Any subset of the chunks of an earlier build may be left; whole, torn or of other texts."""
    folder = tmp_path_factory.mktemp("build")
    build(folder / "clean", tiny_tokenizer, size=size, tokens=tokens)
    left = folder / "left"
    build(folder / "first", tiny_tokenizer, size=size, tokens=tokens, unfinished=left)
    described = sorted(left.glob("*/spikein.json"))
    for path in described:
        fate = data.draw(st.sampled_from(["keep", "gone", "torn", "other texts"]))
        if fate == "gone":
            path.unlink()
        elif fate == "torn":
            path.write_text(path.read_text()[:-5])
        elif fate == "other texts":
            path.write_text(path.read_text().replace('"digest": "', '"digest": "0'))
    build(folder / "second", tiny_tokenizer, size=size, tokens=tokens, unfinished=left)
    assert files(folder / "second") == files(folder / "clean")


@pytest.mark.parametrize("part", range(3))
def test_damaged_chunk_is_reported_and_tokenised_again(tmp_path, tiny_tokenizer, part, caplog):
    """With any file left by a kill, the corpus equals that of an undisturbed build."""
    build(tmp_path / "clean", tiny_tokenizer)
    left = tmp_path / "left"
    build(tmp_path / "first", tiny_tokenizer, unfinished=left)
    paths = sorted(path for path in left.rglob("*") if path.is_file())
    # Links, as a build has them, would carry the damage into the finished corpus of the test.
    shutil.rmtree(tmp_path / "first")
    content = bytearray(paths[3 + part].read_bytes())
    content[len(content) // 2] ^= 1
    paths[3 + part].write_bytes(content)
    build(tmp_path / "second", tiny_tokenizer, unfinished=left)
    assert files(tmp_path / "second") == files(tmp_path / "clean")
    [note] = caplog.messages
    assert f"{left / 'chunk-000001'} is damaged" in note


CODE = """
import sys
from pathlib import Path
from inject.corpus.build import BuildOptions, build_corpus
from inject.corpus.tokenizer import load_tokenizer
from tests.inject.corpus.test_parallel_tokenisation import documents, TOKENS, SIZE

tokenizer, out, left = sys.argv[1:]
if __name__ == "__main__":
    Path(out).mkdir(parents=True)
    build_corpus(
        Path(out), documents=documents(), tokenizer=load_tokenizer(tokenizer), tokens=TOKENS,
        options=BuildOptions(shard_bytes=SIZE, processes=2, unfinished=Path(left)),
        on_progress=lambda done: print(done, flush=True),
    )
"""


def start_build(folder: Path, tokenizer, out: Path, left: Path, **more) -> subprocess.Popen:
    """A process that builds a corpus, with one line of output per step."""
    tokenizer.save_pretrained(folder / "tokenizer")
    (folder / "code.py").write_text(CODE)
    repository = Path(__file__).parents[3]
    return subprocess.Popen(
        [sys.executable, folder / "code.py", folder / "tokenizer", out, left],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
        text=True,
        **more,
    )


@pytest.mark.slow
def test_killed_build_resumes(tmp_path, tiny_tokenizer):
    after = 4
    whole = build(tmp_path / "whole", tiny_tokenizer)
    left = tmp_path / "left"
    running = start_build(
        tmp_path, tiny_tokenizer, tmp_path / "killed", left, start_new_session=True
    )
    assert running.stdout is not None
    for _ in range(after):
        assert running.stdout.readline().strip()
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(timeout=30)
    finished = [finished_chunk(chunk_folder(left, n), _digest(left, n)) for n in range(after)]
    assert all(finished)
    stamps = {path: path.stat().st_mtime_ns for path in left.glob("*/*.bin")}
    time.sleep(0.01)
    build(tmp_path / "again", tiny_tokenizer, unfinished=left)
    assert files(tmp_path / "again") == files(tmp_path / "whole")
    assert len(whole.shards) > after
    for index in range(after):
        path = chunk_folder(left, index) / "chunk.bin"
        assert path.stat().st_mtime_ns == stamps[path]


@pytest.mark.slow
def test_tokenising_processes_end_when_their_runner_is_killed(tmp_path, tiny_tokenizer):
    """Only the runner is killed, not its group; no process remains to notify the others."""
    running = start_build(tmp_path, tiny_tokenizer, tmp_path / "x", tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline().strip()
    # Stopped, so that it can neither finish nor clean up before it is killed.
    running.send_signal(signal.SIGSTOP)
    started = psutil.Process(running.pid).children(recursive=True)
    running.kill()
    running.wait(timeout=30)
    assert len(started) >= 2
    _, left = psutil.wait_procs(started, timeout=10)
    for child in left:
        child.kill()
    assert left == []


def _digest(folder: Path, number: int) -> str:
    import json

    return json.loads((folder / f"chunk-{number:06d}/spikein.json").read_text())["facts"]["digest"]


class Dies:
    """A tokenizer on which its processes break."""

    def to_str(self) -> str:
        return "{}"


@pytest.mark.slow
def test_a_tokenising_process_that_dies_is_an_error(tmp_path, tiny_tokenizer, monkeypatch):
    # Its text form cannot be read, so the processes end before they take any work.
    monkeypatch.setattr(type(tiny_tokenizer), "backend_tokenizer", Dies())
    with pytest.raises(SpikeinError, match="process died at chunk 0, after t:0"):
        build(tmp_path / "out", tiny_tokenizer, processes=2)


def test_an_edit_of_equal_length_is_noticed(tmp_path, tiny_tokenizer):
    build(tmp_path / "c", tiny_tokenizer)
    opened = Corpus.open(tmp_path / "c")
    opened.verify()
    name = opened.facts.shards[3].name
    path = tmp_path / "c" / name
    data = bytearray(path.read_bytes())
    data[4] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"{name}.*changed since"):
        Corpus.open(tmp_path / "c").verify()
