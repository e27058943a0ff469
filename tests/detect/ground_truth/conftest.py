"""An invented ground truth and its bundle, for the tests of this folder."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from detect.ground_truth.ground_truth import Description, GroundTruth
from detect.ground_truth.packing import write_bundle
from tests.detect.ground_truths import make_truth, store_truth


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    made = make_truth(8, arms=(1, 4), datasets=("news", "secret"), protected="secret", empty=True)
    (first, *others) = made.models
    return replace(made, models=(replace(first, fixed_levels=True), *others))


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def described(truth, store) -> Description:
    return store_truth(truth, store)


@pytest.fixture(scope="module")
def bundle(described, store, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "made-up.bundle"
    write_bundle(path, described, store, parts=["all"])
    return path


@pytest.fixture
def copied(bundle, tmp_path) -> Path:
    return Path(shutil.copytree(bundle, tmp_path / "copied.bundle"))
