"""`transformers serve` with a local tiny model: a real server of the protocol."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from inject.corpus.tokenizer import train_tokenizer
from tests.conftest import make_texts
from train.models.shapes import Shape, build_model

COMMAND = Path(sys.executable).with_name("transformers")
TEMPLATE = "{% for one in messages %}{{ one['content'] }}\n{% endfor %}"
SHAPE = Shape(
    architecture="llama", hidden=16, layers=1, heads=2, intermediate=32, context=256
)  # fmt: skip


class Served(NamedTuple):
    """A running server and its models."""

    url: str
    model: Path
    """With a chat template; it samples."""
    bare: Path
    """The same model without one, which always takes the likeliest token."""


@contextmanager
def transformers_serve(folder: Path) -> Iterator[Served]:
    """Start a server; end it and its children by their process group."""
    paths = []
    for name, template in (("model", TEMPLATE), ("bare", None)):
        tokenizer = train_tokenizer(make_texts(200), 350)
        tokenizer.chat_template = template
        tokenizer.save_pretrained(folder / name)
        model = build_model(SHAPE, 350, 0, 0)
        # The server samples if the model's own settings do, whatever the requested temperature.
        model.generation_config.do_sample = template is not None
        model.save_pretrained(folder / name)
        paths.append(folder / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "log"
    place = ["--device", "cpu", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        running = subprocess.Popen(
            [COMMAND, "serve", *place],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            start_new_session=True,
        )
    try:
        for _ in range(200):
            if running.poll() is not None:
                pytest.fail(f"the server ended: {log.read_text()[-2000:]}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                time.sleep(0.5)
        else:
            pytest.fail(f"the server does not answer: {log.read_text()[-2000:]}")
        yield Served(f"http://127.0.0.1:{port}/v1", *paths)
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(timeout=20)
