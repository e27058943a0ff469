"""An experiment as a file, as a mapping, or checked: the same experiment, refused by one rule."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from inject.errors import InputError
from spikein.api.experiment import AnyExperiment, Overrides
from spikein.api.experiment import read as read_checked
from spikein.config.schema import Experiment
from tests.spikein.samples import SAMPLE, write_sample

MAPPING = yaml.safe_load(SAMPLE.replace("1e-3", "0.001"))


def read(source: AnyExperiment, overrides: Overrides = ()) -> Experiment:
    return read_checked(source, overrides).experiment


def test_the_three_forms_mean_the_same(tmp_path):
    path = write_sample(tmp_path)
    from_file = read(path)
    assert read(str(path)) == from_file
    assert read(MAPPING) == from_file
    assert read(from_file) == from_file
    checked = read_checked(path)
    assert read_checked(checked) is checked
    assert read_checked(from_file).arms == checked.arms


def test_overrides_replace_values_of_every_form(tmp_path):
    path = write_sample(tmp_path)
    plain = read(path)
    for form in (path, MAPPING, read_checked(path), plain):
        for overrides in (["train.lr=2e-3"], {"train.lr": 2e-3}):
            experiment = read(form, overrides)
            assert experiment.train.lr == 0.002
            assert experiment.model_copy(update={"train": plain.train}) == plain


def test_values_may_be_whole_parts_paths_and_numbers_of_numpy():
    experiment = read(MAPPING, {"copies": {"fixed": 4}, "seeds": [3], "sweep": {"train.lr": [0.1]}})
    assert (experiment.copies.fixed, experiment.copies.poisson, experiment.seeds) == (4, None, (3,))
    assert experiment.train.lr == 0.1
    assert read(MAPPING, {"corpus.sources.0.path": "a: [b"}).corpus.sources[0].path == "a: [b"
    shape = Path("configs/models/llama-1m.yaml")
    changes = {"seeds": (np.int64(0), 1), "model": {**MAPPING["model"], "shape": shape}}
    experiment = read({**MAPPING, **changes})
    assert (experiment.seeds, experiment.model.shape) == ((0, 1), str(shape))


@pytest.mark.parametrize(
    ("source", "overrides", "message"),
    [
        (3, (), "an experiment cannot be read from a int"),
        ({"name": object()}, (), "the experiment given: contains a object"),
        (MAPPING, "train.lr=1", "overrides are a list"),
        (MAPPING, {"train.lr": {1, 2}}, "override train.lr: contains a set"),
        ({**MAPPING, "copeis": {"fixed": 1}}, (), "the experiment given.*copeis.*Did you mean"),
        (MAPPING, {"train.lrr": 1}, "train.lrr"),
        ({**MAPPING, "extends": "quickstart"}, (), "`extends` works only in files"),
        ("no/such/file.yaml", (), "no such file"),
    ],
)
def test_bad_experiments_are_refused(source, overrides, message):
    with pytest.raises(InputError, match=f"(?s){message}"):
        read(source, overrides)
