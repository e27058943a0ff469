"""Several nodes: two torchrun agents with one process each find each other and train a job."""

import socket

import numpy as np
import pytest
from safetensors.torch import load_file

from inject.stream.exposures import read_exposures
from tests.processes import started
from tests.train.jobs import job
from train.job import run
from train.loop.log import read_log

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_two_nodes_match_one_process(tmp_path, small_corpus):
    """The documented command runs once per node; here both nodes are this machine."""
    run(job(tmp_path / "one", small_corpus, engine="process"))
    file = tmp_path / "job.json"
    file.write_text(job(tmp_path / "two", small_corpus, engine="torchrun").model_dump_json())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "-m", "train.worker", str(file),
    ]  # fmt: skip
    nodes = [started(*command, OMP_NUM_THREADS="1") for _ in range(2)]
    outputs = ["".join(node.communicate(timeout=200)) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], "\n".join(outputs)[-3000:]
    first, second = tmp_path / "one" / "out", tmp_path / "two" / "out"
    logs = [read_log(path) for path in (first, second)]
    assert [row.tokens for row in logs[0]] == [row.tokens for row in logs[1]]
    np.testing.assert_allclose(
        [row.loss for row in logs[0]], [row.loss for row in logs[1]], rtol=1e-5
    )
    assert read_exposures(second).num_rows == 0
    for model in ("", "step-5"):
        weights, others = (
            load_file(path / model / "model.safetensors") for path in (first, second)
        )
        assert all((weights[name] - others[name]).abs().max() < 1e-3 for name in weights)
    assert sum("progress " in text for text in outputs) == 1, "only rank 0 reports progress"
