"""An invented benchmark: two labelled and two held-out models, and submissions to it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.leaderboard.submission import SUBMISSION
from detect.ground_truth.benchmark import LEAST_SEED, withhold_labels
from detect.ground_truth.bundle import read_bundle
from detect.ground_truth.ground_truth import GroundTruth
from detect.ground_truth.packing import write_bundle
from detect.scores.table import SCORES_FILE
from inject.digest import file_digest
from spikein.api.leaderboard import submit
from tests.detect.ground_truths import make_examples, make_model, make_truth, store_truth
from tests.detect.wrong_detectors import SOURCE

SEED = LEAST_SEED + 5


class Benchmark(NamedTuple):
    """The folders of a benchmark, and a file of detectors."""

    bundle: Path
    labels: Path
    detectors: Path

    def submit(self, folder: Path, *names: str) -> list[Path]:
        return submit([f"{self.detectors}:{name}" for name in names], self.bundle, folder=folder)[1]

    @property
    def truths(self) -> tuple[GroundTruth, GroundTruth]:
        return read_bundle(self.bundle), read_bundle(self.labels)


@pytest.fixture(scope="package")
def benchmark_folders(tmp_path_factory) -> Benchmark:
    root = tmp_path_factory.mktemp("benchmark")
    truth = make_truth(60, arms=(1, 4))
    rows = make_examples(60, datasets=("other",))
    hidden = [
        make_model(rows, axes={"copies": f"fixed={dose}"}, seed=SEED, dose=dose, key=50 + dose)
        for dose in (1, 4)
    ]
    described = store_truth(replace(truth, models=(*truth.models, *hidden)), root / "store")
    public, organiser, unlabelled = withhold_labels(described, SEED)
    write_bundle(root / "labels", organiser, root / "store")
    write_bundle(root / "bundle", public, root / "store", unlabelled=unlabelled)
    (root / "wrong.py").write_text(SOURCE)
    return Benchmark(root / "bundle", root / "labels", root / "wrong.py")


def change(folder: Path, scores=None, **header) -> Path:
    """Change a submission as its author could: some scores, with their digest, or the header."""
    if scores is not None:
        table = pq.read_table(folder / SCORES_FILE)
        pq.write_table(scores(table), folder / SCORES_FILE)
        header["scores"] = file_digest(folder / SCORES_FILE)
    values = json.loads((folder / SUBMISSION).read_text())
    (folder / SUBMISSION).write_text(json.dumps({**values, **header}))
    return folder


def with_scores(table: pa.Table, values: np.ndarray) -> pa.Table:
    return table.set_column(table.column_names.index("score"), "score", pa.array(values))
