"""Paraphrases by a real OpenAI-compatible server: `transformers serve` with a model of our own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from inject.corpus.tokenizer import train_tokenizer
from inject.errors import InputError
from inject.variants.server import ServerTextGenerator
from inject.variants.settings import ParaphraseVariant
from tests.conftest import make_texts
from train.models.shapes import Shape, build_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
COMMAND = Path(sys.executable).with_name("transformers")
SHAPE = Shape(
    architecture="llama", hidden=16, layers=1, heads=2, intermediate=32, context=256
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer(make_texts(200), 350)
    tokenizer.chat_template = "{% for one in messages %}{{ one['content'] }}\n{% endfor %}"
    tokenizer.save_pretrained(folder)
    build_model(SHAPE, 350, 0, 0).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    """The address of a server that answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("serve") / "log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            [
                COMMAND,
                "serve",
                model,
                "--device",
                "cpu",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
            ],
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
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(timeout=20)


def writer(model: Path, server: str, **more) -> ServerTextGenerator:
    settings = {"temperature": 0.7, "max_tokens": 16, **more}
    return ServerTextGenerator(
        ParaphraseVariant(
            kind="paraphrase", by="model", model=str(model), base_url=server, **settings
        )
    )


def test_a_served_model_writes(model, server):
    one = writer(model, server)
    answers = [one.write("the river of the town", seed=seed) for seed in (1, 2)]
    assert all(isinstance(answer, str) and answer for answer in answers)
    assert one.write("the river of the town", seed=1) == answers[0]
    short = writer(model, server, max_tokens=1).write("the river of the town", seed=1)
    assert 0 < len(short) < len(answers[0])


def test_a_model_that_is_not_served(model, server, tmp_path):
    shutil.copytree(model, tmp_path / "other")
    with pytest.raises(InputError, match="gave no answer") as found:
        writer(tmp_path / "other", server).write("the river", seed=0)
    assert found.value.where == server
