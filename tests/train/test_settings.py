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
def test_zero_negative_and_meaningless_values_are_rejected(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        TrainSettings.model_validate({field: value})
    assert caught.value.errors()[0]["loc"][0] == field


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (TrainSettings, {"context": 256, "batch_tokens": 4000}, "nearest are 3840 or 4096"),
        (TrainSettings, {"context": 256, "batch_tokens": 100}, "nearest are 256"),
        (TrainSettings, {"mode": "continue", "loss_on": "completion"}, "modes: finetune, lora"),
        (TrainSettings, {"mode": "finetune", "lora": {}}, "lora requires mode: lora"),
        (LoraSettings, {"target_modules": ()}, "at least 1 item"),
        (ModelSettings, {}, "neither"),
        (ModelSettings, {"shape": "a.yaml", "pretrained": "b", "tokenizer": "t"}, "both"),
        (ModelSettings, {"shape": "a.yaml"}, "needs a tokenizer"),
        (
            ModelSettings,
            {"pretrained": "b", "tokenizer": {"vocab_size": 512}},
            "keeps the tokenizer",
        ),
    ],
)
def test_conflicting_settings_are_rejected(kind, fields: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        kind.model_validate(fields)


def test_base_inherits_missing_settings_from_train() -> None:
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


def test_adapters_belong_to_lora() -> None:
    assert TrainSettings().adapters is None
    assert TrainSettings(mode="lora").adapters == LoraSettings()
    assert TrainSettings(mode="lora", lora=LoraSettings(rank=4)).adapters == LoraSettings(rank=4)


def test_mode_model_and_base_must_be_compatible() -> None:
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
