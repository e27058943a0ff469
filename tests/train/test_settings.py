import pytest
from pydantic import ValidationError

from inject.errors import InputError
from train.settings import BaseSettings, LoraSettings, ModelSettings, TrainSettings, check_start


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lr", 0.0),
        ("epochs", 0),
        ("context", 1),
        ("warmup", 1.0),
        ("betas", (0.9, 1.0)),
        ("lr", float("nan")),
        ("checkpoints", {"fractions": (1,)}),
    ],
)
def test_zero_negative_and_senseless_values_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        TrainSettings.model_validate({field: value})
    assert caught.value.errors()[0]["loc"][0] == field


def test_a_batch_of_partial_windows_is_refused_with_the_nearest_sizes() -> None:
    with pytest.raises(ValidationError, match="nearest are 3840 or 4096"):
        TrainSettings(context=256, batch_tokens=4000)
    with pytest.raises(ValidationError, match="nearest are 256"):
        TrainSettings(context=256, batch_tokens=100)
    assert TrainSettings(context=256, batch_tokens=4096).batch_windows == 16


def test_the_model_is_either_a_shape_or_pretrained() -> None:
    with pytest.raises(ValidationError, match="neither"):
        ModelSettings()
    with pytest.raises(ValidationError, match="both"):
        ModelSettings(shape="a.yaml", pretrained="b", tokenizer="t")
    with pytest.raises(ValidationError, match="needs a tokenizer"):
        ModelSettings(shape="a.yaml")
    with pytest.raises(ValidationError, match="keeps the tokenizer"):
        ModelSettings.model_validate({"pretrained": "b", "tokenizer": {"train": 512}})
    assert ModelSettings(pretrained="b").trust_remote_code is False


def test_base_fills_its_gaps_from_train() -> None:
    train = TrainSettings(context=128, batch_tokens=1024, lr=1e-4)
    base = BaseSettings(tokens=1000, lr=2e-3).resolved(train)
    assert (base.mode, base.context, base.batch_tokens, base.lr) == ("pretrain", 128, 1024, 2e-3)
    assert (base.schedule, base.warmup) == ("cosine", 0.05)
    own = BaseSettings(tokens=1000, context=64, batch_tokens=128).resolved(train)
    assert (own.context, own.batch_tokens) == (64, 128)
    with pytest.raises(InputError, match=r"base\.batch_tokens"):
        BaseSettings(tokens=1000, context=96).resolved(train)
    apart = train.model_copy(update={"separate_documents": True})
    assert not BaseSettings(tokens=1000).resolved(apart).separate_documents
    assert BaseSettings(tokens=1000, separate_documents=True).resolved(train).separate_documents


def test_answers_alone_are_for_the_tuning_modes() -> None:
    for mode in ("finetune", "lora"):
        assert TrainSettings(mode=mode, loss_on="completion").loss_on == "completion"
    for mode in ("pretrain", "continue"):
        with pytest.raises(ValidationError, match="allowed modes: finetune, lora"):
            TrainSettings(mode=mode, loss_on="completion")


def test_adapters_belong_to_lora() -> None:
    assert TrainSettings().adapters is None
    assert TrainSettings(mode="lora").adapters == LoraSettings()
    assert TrainSettings(mode="lora", lora=LoraSettings(rank=4)).adapters == LoraSettings(rank=4)
    with pytest.raises(ValidationError, match="lora belongs to mode: lora"):
        TrainSettings(mode="finetune", lora=LoraSettings())
    with pytest.raises(ValidationError):
        LoraSettings(target_modules=())


def test_mode_model_and_base_must_fit() -> None:
    shape = ModelSettings(shape="a.yaml", tokenizer="t")
    saved = ModelSettings(pretrained="b")
    check_start(shape, has_base=False, mode="pretrain")
    for mode in ("continue", "finetune", "lora"):
        check_start(saved, has_base=False, mode=mode)
        check_start(shape, has_base=True, mode=mode)
        with pytest.raises(InputError, match=f"{mode} needs a model"):
            check_start(shape, has_base=False, mode=mode)
    with pytest.raises(InputError, match="its own base"):
        check_start(saved, has_base=True, mode="continue")
    with pytest.raises(InputError, match="would not use"):
        check_start(saved, has_base=False, mode="pretrain")
