"""A whole experiment in two processes: the same artifacts with the same numbers in them."""

import numpy as np
import pytest

from inject.stream.exposures import read_exposures
from spikein.store.store import Store
from tests.spikein.pipeline.test_pipeline import one_artifact, run
from tests.spikein.tiny import write_tiny
from train.loop.log import read_log

pytestmark = pytest.mark.slow


def test_two_processes_make_the_artifacts_that_one_makes(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    path = write_tiny(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    # At higher rates training is chaotic, and rounding grows from step to step.
    calm = ["base.lr=1e-3", "train.lr=1e-3"]
    run(path, tmp_path / "one", *calm)
    run(path, tmp_path / "two", *calm, "execution.engine=torchrun", "execution.processes=2")
    names = [
        sorted(folder.name for folder in (tmp_path / name / "store").glob("[a-z]*/*-????????????"))
        for name in ("one", "two")
    ]
    assert names[0] == names[1]
    for label in ("base*", "seed-0"):
        models = [one_artifact(tmp_path / name, "model", label) for name in ("one", "two")]
        losses = [[row.loss for row in read_log(model)] for model in models]
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
        tables = [read_exposures(model) for model in models]
        assert tables[0].drop_columns(["rank"]).equals(tables[1].drop_columns(["rank"]))
        for name in ("one", "two"):
            store = Store(tmp_path / name / "store")
            for artifact in store.root.glob("model/*"):
                store.verify(next(filter(None, [store.find(artifact.name[-12:])])))
    assert not list((tmp_path / "two" / "store" / ".unfinished").glob("model-*"))


def test_a_step_that_cannot_be_shared_out_is_refused(tmp_path):
    from train.launch import ProcessFailed

    path = write_tiny(tmp_path)
    with pytest.raises(ProcessFailed, match="16 windows of a step cannot be shared out"):
        run(path, tmp_path, "execution.engine=torchrun", "execution.processes=3")
