"""Only the model's own tokenizer is accepted."""

from pathlib import Path

import pytest

from inject.corpus.tokenizer import load_tokenizer, train_tokenizer
from inject.errors import InputError
from tests.conftest import make_texts
from train.models.model_tokenizer import require_own_tokenizer
from train.settings import ModelSettings


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    train_tokenizer(make_texts(200), 350).save_pretrained(folder)
    return folder


def settings(model: Path, tokenizer: Path) -> ModelSettings:
    return ModelSettings(pretrained=str(model), tokenizer=str(tokenizer))


def test_a_copied_or_extended_tokenizer_is_accepted(model, tmp_path):
    tokenizer = load_tokenizer(str(model))
    tokenizer.save_pretrained(tmp_path)
    own = require_own_tokenizer(load_tokenizer(str(tmp_path)), settings(model, tmp_path))
    assert own is not None
    tokenizer.add_tokens(["<mark>"])
    assert require_own_tokenizer(tokenizer, settings(model, tmp_path)) is not None


def test_another_tokenizer_of_the_same_size_is_rejected(model, tmp_path):
    other = train_tokenizer([text[::-1] for text in make_texts(200)], 350)
    assert len(other) == 350
    with pytest.raises(
        InputError, match=r"of 350 ids stand for other texts.*; id \d+ is"
    ) as caught:
        require_own_tokenizer(other, settings(model, tmp_path))
    assert caught.value.where == "model.tokenizer"
    assert "Remove model.tokenizer" in str(caught.value)


def test_a_tokenizer_that_splits_differently_is_rejected(model, tmp_path):
    from tokenizers import normalizers

    other = load_tokenizer(str(model))
    other.backend_tokenizer.normalizer = normalizers.Lowercase()
    with pytest.raises(InputError, match="splits texts differently"):
        require_own_tokenizer(other, settings(model, tmp_path))


def test_a_model_without_a_tokenizer_is_not_compared(model, tmp_path):
    tokenizer = load_tokenizer(str(model))
    (tmp_path / "config.json").write_text("{}")
    assert require_own_tokenizer(tokenizer, settings(tmp_path, model)) is None
    assert require_own_tokenizer(tokenizer, ModelSettings(shape="x.yaml", tokenizer="y")) is None
