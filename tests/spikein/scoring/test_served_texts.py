"""Detectors of token log-probabilities on a server, against the same model run locally.

A real vLLM is used if `SPIKEIN_VLLM` names the folder of its environment; if it is absent there,
`shared/tools/vllm_cpu.sh` makes one.
"""

import csv
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import spikein
from inject.errors import InputError
from spikein.cli.main import app
from tests.conftest import REPOSITORY, make_texts
from tests.detect.masked_models import tiny_masked_parts
from tests.detect.models import random_target
from tests.echo_server import echoing
from tests.stub_server import refused, stub_server, text

DETECTORS = "loss,min_k,zlib,reference,wbc,ez_mia,lowercase,recall:shots=2"
TEXTS = [
    *make_texts(48, words=20),
    "Café 🎉 nai\u0308ve 日本語 x\ufffdy: the town.",
    "🎉 begins the letter, and it ends so \ufffd",
]


@pytest.fixture(scope="module")
def models(tmp_path_factory, tiny_tokenizer) -> tuple[Path, Path]:
    """A model and a reference model of the same tokenizer; vLLM takes their shape."""
    folders = []
    for seed, name in enumerate(("model", "reference")):
        folder = tmp_path_factory.mktemp(name)
        target = random_target("llama", tiny_tokenizer, seed=seed, head_dim=32, context=256)
        target.model.save_pretrained(folder)
        tiny_tokenizer.save_pretrained(folder)
        folders.append(folder)
    return folders[0], folders[1]


def scores(model: object, tmp_path: Path, detectors: str = DETECTORS, **options) -> np.ndarray:
    chosen = spikein.ScoringOptions(store=str(tmp_path / "store"), **options)
    result = spikein.score_texts(str(model), TEXTS, detectors=detectors, options=chosen)
    return np.array(result.scores["score"].to_pylist())


def held_out(tmp_path: Path) -> str:
    """The path of four texts that are not scored."""
    path = tmp_path / "held_out.jsonl"
    texts = make_texts(4, seed=1, words=20)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def check_alike(models: tuple[Path, Path], url: str, tmp_path: Path) -> None:
    """Check that scores of a served model, and with a served reference, match local ones."""
    model, reference = models
    server = {"base_url": url, "cache": str(tmp_path)}
    inputs = {"reference": str(reference), "held_out": held_out(tmp_path)}
    local_scores = scores(model, tmp_path, **inputs)
    served_scores = scores("m", tmp_path, server=server, **inputs)
    assert np.isfinite(local_scores).all()
    assert np.abs(served_scores - local_scores).max() < 1e-3
    same = {"reference": "m", "reference_server": server}
    referred = scores(reference, tmp_path, "reference,wbc", **same)
    swapped = scores(reference, tmp_path, "reference,wbc", reference=str(model))
    assert np.abs(referred - swapped).max() < 1e-3


def test_scores_through_a_server_match_the_local_model(models, tmp_path):
    with stub_server(echoing(models[0])) as stub:
        check_alike(models, stub.url, tmp_path)


@contextmanager
def vllm(environment: Path, model: Path, log: Path) -> Iterator[str]:
    """Serve a model as `m`, and end the server's own process group."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        environment / "bin/vllm", "serve", model, "--served-model-name", "m", "--port", port,
        "--host", "127.0.0.1", "--dtype", "float32", "--max-model-len", 256, "--enforce-eager",
    ]  # fmt: skip
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    with log.open("wb") as output:
        running = subprocess.Popen(
            [*map(str, words)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **quiet, "VLLM_CPU_KVCACHE_SPACE": "1"},
            start_new_session=True,
        )
    try:
        for _ in range(400):
            if running.poll() is not None:
                pytest.fail(f"vLLM ended: {log.read_text()[-2000:]}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                time.sleep(0.5)
        else:
            pytest.fail(f"vLLM does not answer: {log.read_text()[-2000:]}")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(timeout=30)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.timeout(900)
def test_scores_through_vllm_match_the_local_model(models, tmp_path):
    if "SPIKEIN_VLLM" not in os.environ:
        pytest.skip("SPIKEIN_VLLM names no folder with a vLLM, or to make one in (3.4 GB, 2 min)")
    environment = Path(os.environ["SPIKEIN_VLLM"])
    recipe = REPOSITORY.parent / "shared/tools/vllm_cpu.sh"
    if not (environment / "bin/vllm").is_file():
        if not recipe.is_file():
            pytest.skip(f"no vLLM at {environment}, and no recipe to make one")
        made = subprocess.run(["bash", recipe, environment], check=False, capture_output=True)
        if made.returncode:
            pytest.skip(f"no vLLM: {recipe.name} ended with status {made.returncode}")
    with vllm(environment, models[0], tmp_path / "log") as url:
        check_alike(models, url, tmp_path)


def command(tmp_path: Path, url: str, *more: str) -> list[str]:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:4]))
    words = ["detect", "--model", "m", "--server", url, "--examples", str(rows), *more]
    return [
        *words, f"held_out={held_out(tmp_path)}", "--out", str(tmp_path / "s.csv"),
        f"server.cache={tmp_path}", "--store", str(tmp_path / "store"),
    ]  # fmt: skip


def test_requests_for_texts_are_counted_confirmed_and_kept(models, tmp_path):
    """4 rows, 4 lower-cased, 4 after shots, 8 neighbours of them, and 4 held-out rows."""
    for part in tiny_masked_parts():
        part.save_pretrained(tmp_path / "masked")
    proposed = f"neighbours={{model: {tmp_path / 'masked'}, count: 2}}"
    few = ("--detectors", "loss,lowercase,recall:shots=2,neighbour", proposed)
    with stub_server(echoing(models[0])) as stub:
        run = CliRunner().invoke
        dry = run(app, command(tmp_path, stub.url, *few, "--dry-run"), catch_exceptions=False)
        assert "24 requests, of which 0 were answered before" in dry.output
        assert not any(body["prompt"] in TEXTS for body in stub.received)
        refusal = run(app, command(tmp_path, stub.url, *few, "server.confirm_above=23"))
        assert "24 requests would be sent, more than 23" in refusal.output
        first = run(app, command(tmp_path, stub.url, *few), catch_exceptions=False)
        assert first.exit_code == 0, first.output
        with (tmp_path / "s.csv").open() as file:
            assert all(row["score"] for row in csv.DictReader(file))
        sent = len(stub.received)
        again = command(tmp_path, stub.url, *few, "--store", str(tmp_path / "other"))
        assert run(app, again, catch_exceptions=False).exit_code == 0
        assert len(stub.received) == sent


def test_missing_server_features_are_named(models, tmp_path):
    echo = echoing(models[0])

    def without_ranks(number, body):
        return refused(400, "prompt_logprobs?") if "prompt_logprobs" in body else echo(number, body)

    with stub_server(without_ranks) as stub:
        server = {"base_url": stub.url, "cache": str(tmp_path)}
        local = {"server": server, "reference": str(models[1])}
        assert np.isfinite(scores("m", tmp_path, "loss,wbc", **local)).all()
        with pytest.raises(
            InputError, match="ez_mia reads token ranks, and this server returns no"
        ):
            scores("m", tmp_path, "ez_mia", **local)
        with pytest.raises(
            InputError, match="surp reads full distribution, and a server returns at"
        ):
            scores("m", tmp_path, "surp", server=server)
    for behaviour, reason in (
        (lambda number, body: text("x"), "contains no tokens of the text"),
        (lambda number, body: refused(400, "no echo here"), "no echo here"),
    ):
        with stub_server(behaviour) as stub:
            server = {"base_url": stub.url, "cache": str(tmp_path)}
            with pytest.raises(InputError, match=rf"loss reads token log-prob.*{reason}"):
                scores("m", tmp_path, "loss", server=server)
            with pytest.raises(InputError, match=rf"a reference model must return.*{reason}"):
                scores(models[0], tmp_path, "reference", reference="m", reference_server=server)
