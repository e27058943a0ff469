"""The columns of the token table reach the detectors of an experiment that read them."""

import math

import pyarrow.parquet as pq
import pytest

from detect.token_statistics import read_statistics
from inject.errors import InputError
from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import build_graph
from tests.spikein.tiny import run, write_tiny

DETECTORS = (
    "detect.detectors=[loss, wbc, ez_mia, gap_k, acmia, 'acmia:beta=2:form=contrast', tag_tab]"
)


def test_an_experiment_scores_by_every_column(tmp_path):
    write_tiny(tmp_path)
    run(tmp_path, DETECTORS, "detect.inverse_temperatures=[2]", "base=null", "train.mode=pretrain",
        "detect.reference=twin", "twins.clean=true", "detect.tune_share=0")  # fmt: skip
    store = tmp_path / "store"
    scored = {}
    for path in store.glob("scores/*/scores.parquet"):
        for row in pq.read_table(path).to_pylist():
            key = row["detector"], row["setting"]
            scored.setdefault(key, []).append(not math.isnan(row["score"]))
    assert {name for name, _ in scored} == {
        "loss", "wbc", "ez_mia", "gap_k", "acmia", "tag_tab", "blind",
    }  # fmt: skip
    assert ("acmia", "beta=2.0:form=contrast") in scored
    for key, found in scored.items():
        assert sum(found) > 0.9 * len(found), key
    for folder in store.glob("statistics/*"):
        for statistics in read_statistics(folder).values():
            assert list(statistics.tempered) == [2.0]
            assert (statistics.offsets >= 0).all()


def test_a_temperature_that_nobody_makes_is_refused_before_the_work(tmp_path):
    path = write_tiny(tmp_path)
    with pytest.raises(
        InputError, match=r"acmia needs inverse temperature 2\.0.*detect\.inverse_temperatures"
    ):
        build_graph(read_experiment(path, ["detect.detectors=['acmia:beta=2']"]))
