"""One tiny world for all tests of unlearning."""

from pathlib import Path

import pytest
import torch

from tests.train.unlearn.made import make_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with examples and a model."""
    return make_world(tmp_path_factory.mktemp("unlearning") / "world")


@pytest.fixture(autouse=True)
def one_thread():
    """Sums in one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
