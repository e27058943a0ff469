"""Code that a model takes from another repository is pinned, or rejected by name."""

import json

import pytest

from inject.errors import InputError, Unreachable
from inject.hub.resolver import UNRESOLVED, without_network
from inject.hub.snapshot import foreign_code, trusted_code
from tests.inject.hub.fake_hub import MAIN, NEXT, forget_commits
from train.models.pretrained import model_identity


def config(folder, **auto_map):
    (folder / "config.json").write_text(json.dumps({"model_type": "own", "auto_map": auto_map}))


def test_code_in_the_model_repository_is_among_its_files(tmp_path, hub):
    config(tmp_path, AutoConfig="code.Config")
    assert foreign_code(tmp_path, name="model") is None
    assert trusted_code(tmp_path, name="model") == {"trust_remote_code": True}
    assert hub.asked == []


def test_code_of_another_repository_enters_the_identity(tmp_path, hub):
    config(tmp_path, AutoConfig="other/code--config.Config", AutoModel="other/code--model.Model")
    (tmp_path / "model.safetensors").write_bytes(b"w")
    hub.add("other/code", {"config.py": b"", "weights.bin": b""})
    plain, trusted = (
        model_identity(str(tmp_path), trust_remote_code=trusted) for trusted in (False, True)
    )
    assert "code" not in plain
    assert trusted == {**plain, "code": {"hub": "other/code", "commit": MAIN}}
    assert trusted_code(tmp_path, name="model") == {
        "trust_remote_code": True,
        "code_revision": MAIN,
    }
    forget_commits()
    hub.main = NEXT
    moved = model_identity(str(tmp_path), trust_remote_code=True)
    assert moved["code"]["commit"] == NEXT


def test_a_repository_that_names_itself_is_at_its_own_commit(tmp_path, hub):
    files = {"config.json": {"auto_map": {"AutoModel": "own/er--code.Model"}}, "code.py": b""}
    hub.add("own/er", {**files, "model.safetensors": b"w"})
    identity = model_identity("own/er", revision=NEXT, trust_remote_code=True)
    assert identity["commit"] == identity["code"]["commit"] == NEXT


def test_code_of_several_repositories_is_rejected_by_name(tmp_path, hub):
    config(tmp_path, AutoConfig="one/code--config.Config", AutoModel="two/code--model.Model")
    with pytest.raises(InputError, match=r"one/code \(config.json: auto_map: .*two/code"):
        foreign_code(tmp_path, name="model")


def test_unresolvable_code_is_not_run(tmp_path, hub):
    config(tmp_path, AutoConfig="other/code--config.Config")
    (tmp_path / "model.safetensors").write_bytes(b"w")
    hub.reachable = False
    with pytest.raises(Unreachable, match="other/code"):
        trusted_code(tmp_path, name="model")
    with without_network() as notes:
        identity = model_identity(str(tmp_path), trust_remote_code=True)
    assert identity["code"]["commit"] == UNRESOLVED
    assert list(notes) == ["code of other/code"]
