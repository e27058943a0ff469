"""A sweep of which one arm fails for good: the other is finished, and its report is to be had."""

from pathlib import Path

import pytest

import spikein
from spikein.executors import StepsFailed
from tests.spikein.tiny import write_tiny

GOOD, BAD = "1.0e-2", "1.0e+30"
SMALL = (
    "corpus.tokens=20000", "detect.detectors=[loss]", "base=null", "train.mode=pretrain",
    "executor={kind: local, workers: 2}",
)  # fmt: skip


def run(folder: Path, *overrides: str):
    return spikein.run(
        folder / "tiny.yaml",
        overrides=(*SMALL, *overrides),
        store=folder / "store",
        runs=folder / "runs",
        progress=False,
    )


@pytest.mark.slow
def test_an_arm_that_diverges_leaves_the_other_whole_and_the_message_says_how_to_report_it(
    tmp_path,
):
    write_tiny(tmp_path)
    with pytest.raises(StepsFailed) as raised:
        run(tmp_path, f"sweep={{train.lr: [{GOOD}, {BAD}]}}")
    said = str(raised.value)
    assert raised.value.exit_code == 3
    assert len(raised.value.failures) == 1, said
    assert raised.value.failures[0].name.startswith("model ")
    assert "A report needs every arm" in said
    assert not (tmp_path / "runs/tiny").exists()
    before = {path.name for path in (tmp_path / "store").glob("model/[!.]*")}
    assert len(before) == 1, "the other arm's model is finished"
    # As the message says: without the arm that failed.
    alone = run(tmp_path, f"train.lr={GOOD}")
    assert (alone.folder / "report.html").exists()
    after = {path.name for path in (tmp_path / "store").glob("model/[!.]*")}
    assert after == before, "nothing of the finished arm is trained again"
