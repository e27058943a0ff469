"""Identity: the parts that enter a digest, and those that do not."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject.step import Recipe
from spikein.store.manifest import StoreError, read_manifest
from spikein.store.store import Store, safe_label
from tests.spikein.samples import recipe, write


def test_everything_that_determines_the_content_enters_the_digest():
    whole = {"kind": "thing", "function": "made:build", "settings": {}}
    for other in (
        {"settings": {"a": None}},
        {"kind": "other"},
        {"function": "made:other"},
        {"inputs": {"a": "0"}},
        {"libraries": {"torch": "2"}},
    ):
        assert Recipe(**{**whole, **other}).digest != recipe().digest


@given(st.text())
def test_labels_stay_in_their_folder(text):
    label = safe_label(text)
    assert label == Path(label).name
    assert label not in ("", ".", "..")
    assert not label.startswith((".", "-"))
    assert len(label) <= 80


DAMAGES = {
    "inputs": 5, "kind": "other", "label": [], "created": None, "protected": "no",
    "identity": math.inf,
}  # fmt: skip


def with_input(root: Path) -> Path:
    """Return the manifest of an artifact with an input."""
    store = Store(root)
    source = store.obtain(recipe(n=1), write("a"), label="given").artifact
    made = Recipe(kind="thing", function="made:build", settings={}, inputs={"a": source.digest})
    path = store.obtain(made, write("b"), label="made").artifact / "manifest.json"
    path.chmod(0o644)
    return path


def test_a_manifest_of_another_version_is_not_called_damaged(tmp_path):
    path = with_input(tmp_path)
    assert read_manifest(path.parent).label == "made"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))
    with pytest.raises(StoreError, match="written by another version of spikein"):
        read_manifest(path.parent)


def test_a_damaged_manifest_is_found(tmp_path):
    path = with_input(tmp_path)
    whole = json.loads(path.read_text())
    nested = "[" * 100_000
    for text in (*(json.dumps({**whole, key: value}) for key, value in DAMAGES.items()), nested):
        path.write_text(text)
        with pytest.raises(StoreError, match="manifest"):
            read_manifest(path.parent)


def test_all_flipped_bytes_of_a_manifest_are_noticed(tmp_path):
    path = with_input(tmp_path)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        if not content[place : place + 1].isspace():
            changed = bytearray(content)
            changed[place] ^= 0x01
            path.write_bytes(changed)
            with pytest.raises(StoreError, match=r"manifest\.json"):
                read_manifest(path.parent)
