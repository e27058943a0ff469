"""Training runs that several tests share."""

from pathlib import Path

import pytest

from tests.conftest import made_once


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    """Use one thread: sums keep their order, and two threads would mostly wait on tiny matrices."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory, tiny_tokenizer) -> Path:
    """The folder of a tokenizer, for the runs of `tests.train.killable`."""
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny_tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def killable_run(tmp_path_factory, tokenizer) -> Path:
    """A complete run (`whole`), and one stopped after step 11 (`left`)."""
    from tests.train.killable import Stopped, stop_at, train_run

    def make(root: Path) -> None:
        train_run(root / "whole", None, tokenizer, dropout=True)
        with pytest.raises(Stopped):
            train_run(root / "x", root / "left", tokenizer, dropout=True, progress=stop_at(11))
        assert not any((root / "x").iterdir()), "an error leaves nothing in the model's folder"
        assert {path.name for path in root.glob("left/*-*")} == {
            "checkpoint-6", "checkpoint-9", "step-2", "step-7",
        }  # fmt: skip

    return made_once(tmp_path_factory, "killable", make)


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> Path:
    """The examples and the model of the tests of unlearning."""
    from tests.train.unlearn.made import make_world

    return make_world(tmp_path_factory.mktemp("unlearning") / "world")


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory) -> Path:
    """A corpus of 4,000 tokens, for the jobs of `tests.train.jobs`."""
    from tests.train.jobs import build_small_corpus

    return build_small_corpus(tmp_path_factory.mktemp("corpus"))
