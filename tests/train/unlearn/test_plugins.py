"""User-defined methods: a function in a file, or an `UnlearningMethod`."""

import pytest
from safetensors.torch import load_file

from inject.errors import InputError
from inject.stream.exposures import read_exposures
from tests.train.unlearn.made import unlearn
from train.unlearn.registry import find_method, parse_methods

FUNCTION = '''
"""Gradient difference as a user's function."""


def mine(batch):
    return batch.retain.loss - batch.forget.loss


number = 3
'''

METHOD = """
from spikein import MethodSettings, UnlearningBatch, UnlearningMethod


class MineSettings(MethodSettings):
    strength: float = 0.5


def loss(batch: UnlearningBatch):
    return -batch.settings.strength * batch.forget.loss


MINE = UnlearningMethod(name="mine", loss=loss, settings=MineSettings)
TAKEN = UnlearningMethod(name="npo", loss=loss)
"""


def test_a_function_sees_both_kinds_of_texts(world, tmp_path):
    (tmp_path / "own.py").write_text(FUNCTION, encoding="utf-8")
    own = unlearn(world, tmp_path / "own", f"{tmp_path / 'own.py'}:mine")
    # The function has the settings of `MethodSettings`, and these are the same.
    entry = {"method": "gradient_difference", "warmup": 0.0}
    built_in = unlearn(world, tmp_path / "built-in", entry)
    trained, expected = (load_file(folder / "model.safetensors") for folder in (own, built_in))
    assert all((trained[name] == expected[name]).all() for name in expected)
    assert read_exposures(own).equals(read_exposures(built_in))


def test_source_is_part_of_the_identity(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(FUNCTION, encoding="utf-8")
    (setting,) = parse_methods([f"{file}:mine"])
    file.write_text(FUNCTION.replace("- batch", "- 2 * batch"), encoding="utf-8")
    (edited,) = parse_methods([f"{file}:mine"])
    assert setting.label == edited.label == "own.mine"
    assert setting.identity()["plugin"] != edited.identity()["plugin"]
    assert setting.needs_retain


def test_an_edited_source_is_rejected(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(FUNCTION, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (setting,) = parse_methods(["own.py:mine"])
    monkeypatch.chdir("/")
    (again,) = parse_methods([setting.entry()])
    assert again.identity() == setting.identity()
    (tmp_path / "own.py").write_text(f"{FUNCTION}\nMORE = 1\n", encoding="utf-8")
    with pytest.raises(InputError, match="edited since this run was named"):
        parse_methods([setting.entry()])


def test_a_method_can_define_its_own_settings(world, tmp_path):
    file = tmp_path / "whole.py"
    file.write_text(METHOD, encoding="utf-8")
    (half, double) = parse_methods([{"method": f"{file}:MINE", "sweep": {"strength": [0.5, 2.0]}}])
    assert (half.label, double.label) == ("mine-strength-0.5", "mine-strength-2")
    assert not half.needs_retain
    out = unlearn(world, tmp_path / "mine", half.entry(), retain_ids=())
    assert read_exposures(out)["role"].unique().to_pylist() == ["forget"]


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        (FUNCTION, "number", "object of type int, not an unlearning method"),
        (FUNCTION, "nine", "has no 'nine'. Did you mean 'mine'"),
        (METHOD, "TAKEN", "the name 'npo' is already used"),
    ],
)
def test_invalid_methods_are_rejected(tmp_path, source, name, message):
    (tmp_path / "own.py").write_text(source, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        find_method(f"{tmp_path / 'own.py'}:{name}")


def test_a_loss_of_the_wrong_shape_is_rejected(world, tmp_path):
    source = FUNCTION.replace("batch.retain.loss - batch.forget.loss", "batch.forget.logits")
    (tmp_path / "own.py").write_text(source, encoding="utf-8")
    with pytest.raises(InputError, match="one number per text"):
        unlearn(world, tmp_path / "own", f"{tmp_path / 'own.py'}:mine")
