"""Fixtures of tests of `spikein detect`: rows as a file, and a run of the command's function."""

import json

import pytest

from spikein.scoring.detect_file import plan_file, score_file
from spikein.scoring.options import ScoringOptions


@pytest.fixture
def write(tmp_path):
    """Write rows as JSON Lines, and return the path."""

    def written(rows, name="rows.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(path)

    return written


@pytest.fixture
def detect(tmp_path, tiny_model_path, write):
    """Score rows, or a file of them, by default with the tiny model and `loss`."""

    def run(rows, detectors="loss", *, model=tiny_model_path, out=None, benchmark=None, **options):
        examples = rows if isinstance(rows, str) else write(rows)
        chosen = ScoringOptions(detectors=detectors, **options)
        path = out or tmp_path / "scores.parquet"
        return score_file(plan_file(examples, str(model), path, chosen, benchmark=benchmark), path)

    return run
