"""Detectors by text on a real server, `transformers serve`, with a local tiny model."""

import json
import re
from contextlib import closing

import pytest
from typer.testing import CliRunner

from detect.targets.local import LocalTextModel
from detect.targets.server import ServerTextModel
from detect.targets.text_model import Sampling
from inject.server.request import Server
from spikein.cli.main import app
from tests.conftest import make_texts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
GREEDY = Sampling(max_tokens=12)


def served_model(served, model, cache=None, **more):
    server = Server(base_url=served.url, model=str(model), retries=1, **more)
    return closing(ServerTextModel(server, cache=cache))


def test_served_model_continues_like_the_local_one(served, tmp_path):
    from detect.engine.target import load_target

    prompts = [text[:60] for text in make_texts(3)]
    local = LocalTextModel(load_target(str(served.bare), device="cpu"))
    expected = local.complete(prompts, GREEDY)
    with served_model(served, served.bare, tmp_path / "r") as target:
        rows = target.complete(prompts, GREEDY)
        assert [row[0].text for row in rows] == [row[0].text for row in expected]
        assert [row[0].tokens_in for row in rows] == [row[0].tokens_in for row in expected]
        assert all(0 < row[0].tokens_out <= 12 for row in rows)
        assert target.cost.asked == 3
    with served_model(served, served.bare, tmp_path / "r") as again:
        assert again.complete(prompts, GREEDY) == rows
        assert again.cost == (0, 3, 0, 0, 0)


def test_chat_goes_through_the_template(served):
    from detect.engine.target import load_target

    local = LocalTextModel(load_target(str(served.model), device="cpu"))
    [[expected]] = local.answer(["the river of the town"], GREEDY)
    with served_model(served, served.model, api="chat") as target:
        [[completion]] = target.answer(["the river of the town"], GREEDY)
    assert completion.text == expected.text


def test_samples_differ_and_are_cached(served, tmp_path):
    sampling = Sampling(max_tokens=8, temperature=1.0, samples=4, seed=3)
    with served_model(served, served.model, tmp_path / "r", concurrency=1) as target:
        [samples] = target.complete(["the river"], sampling)
        assert len({completion.text for completion in samples}) > 1
        assert target.complete(["the river"], sampling) == [samples]
        assert target.cost.asked == 4
        assert not any("alike" in note for note in target.notes())


def test_detect_uses_the_server_and_a_rerun_sends_no_request(served, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(
            json.dumps(
                {"text": text, "label": row % 2, "paraphrases": [f"{text} {n}" for n in range(3)]}
            )
            + "\n"
            for row, text in enumerate(make_texts(4, words=24))
        )
    )
    command = [
        "detect", "--server", served.url, "--model", str(served.bare), "--examples", str(rows),
        "--detectors", "prefix,samia:samples=2:top_k=50,de_cop", "--out", str(tmp_path / "s.csv"),
        f"server.cache={tmp_path}", "--store", str(tmp_path / "store"),
    ]  # fmt: skip
    tables = []
    for _ in range(2):
        result = CliRunner().invoke(app, command, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        tables.append((tmp_path / "s.csv").read_text())
        requests, before = re.findall(
            r"answered ([\d,]+) requests: .*; ([\d,]+) were answered before", result.output
        )[0]
    assert tables[0] == tables[1]
    assert (requests, before) == ("0", "108")  # 4 + 4 · 2 + 4 · 24
