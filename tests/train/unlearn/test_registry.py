"""Methods by name, and their entries in an experiment file."""

import pytest

from inject.errors import InputError
from inject.settings import plain
from train.unlearn.registry import find_method, method_names, parse_methods


def test_all_methods_have_builtin_settings():
    for name in method_names():
        (setting,) = parse_methods([name])
        assert setting.label == name
        assert setting.identity() == {"method": name, "settings": plain(setting.settings)}
        assert setting.code == (f"train.unlearn.methods.{name}",)
        assert set(setting.known.defaults) <= set(setting.method.settings.model_fields)


def test_a_sweep_is_the_product_of_its_values():
    settings = parse_methods([{"method": "npo", "sweep": {"lr": [1e-4, 1e-5], "beta": [0.1, 1]}}])
    assert [setting.label for setting in settings] == [
        "npo-lr-0.0001-beta-0.1",
        "npo-lr-0.0001-beta-1",
        "npo-lr-1e-05-beta-0.1",
        "npo-lr-1e-05-beta-1",
    ]
    assert [setting.settings.lr for setting in settings] == [1e-4, 1e-4, 1e-5, 1e-5]


def test_setting_entry_round_trip():
    for setting in parse_methods(
        ["npo", {"method": "npo", "name": "mild", "sweep": {"beta": [2]}}]
    ):
        (again,) = parse_methods([setting.entry()])
        assert (again.label, again.identity()) == (setting.label, setting.identity())
    plain, labelled = parse_methods(["npo", {"method": "npo", "name": "again"}])
    assert plain.identity() == labelled.identity(), "a label is not part of the identity"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["nop"], "unknown unlearning method 'nop'. Did you mean 'npo'"),
        ([{"method": "npo", "betta": 1}], "no setting 'betta'. Did you mean 'beta'"),
        ([{"method": "npo", "beta": -1}], "greater than 0"),
        ([{"method": "npo", "sweep": {"beta": 1}}], "a list of values"),
        ([{"name": "npo"}], "names no method"),
        (["npo", "npo"], "two entries have the name 'npo'"),
        ([], "no method is named"),
        (["nowhere.py:mine"], "there is no such file"),
        ([{"method": "npo", "lora": {"rank": 2}}], "lora requires mode: lora"),
        ([{"method": "npo", "name": 1}], r"methods\.name: 1 is not a name.*A-Z a-z 0-9"),
        ([{"method": "npo", "name": "方法"}], r"'方法' is not a name.*A-Z a-z 0-9"),
        (["relearn"], r"relearn is not an unlearning method.*Use unlearning\.relearn"),
    ],
)
def test_bad_entries_are_rejected(entries, message):
    with pytest.raises(InputError, match=message):
        parse_methods(entries)


def test_names_are_normalised_and_labels_keep_allowed_characters():
    assert find_method("Gradient-Ascent").method.name == "gradient_ascent"
    (setting,) = parse_methods([{"method": "npo", "name": "方法 2"}])
    assert setting.label == "2"
