"""Identity: what enters a digest, and what does not."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject.step import Recipe, library_versions
from spikein.store.manifest import StoreError, read_manifest
from spikein.store.store import Store, safe_label
from tests.spikein.samples import recipe, write

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def reordered(value):
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=4))
def test_key_order_does_not_enter_the_identity(settings):
    assert recipe(x=settings).digest == recipe(x=reordered(settings)).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (recipe(a=1), recipe(a=2)),
        (recipe(a=1), recipe(a=1.0)),
        (recipe(a=1), recipe(a=True)),
        (recipe(a="1"), recipe(a=1)),
        (recipe(a=None), recipe()),
        (recipe(), Recipe(kind="other", function="made:build", settings={})),
        (recipe(), Recipe(kind="thing", function="made:other", settings={})),
        (recipe(), Recipe(kind="thing", function="made:build", settings={}, inputs={"a": "0"})),
        (
            recipe(),
            Recipe(kind="thing", function="made:build", settings={}, libraries={"torch": "2"}),
        ),
    ],
)
def test_everything_that_bears_on_the_content_enters(one, other):
    assert one.digest != other.digest


@pytest.mark.parametrize("value", [Path("a"), {1: 2}, float("nan"), object(), b"a", {1, 2}])
def test_what_has_no_canonical_form_raises(value):
    with pytest.raises(TypeError):
        _ = recipe(a=value).digest


def test_library_versions_say_nothing_of_the_device():
    assert "+" not in library_versions(["torch"])["torch"]


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
    given = store.obtain(recipe(n=1), write("a"), label="given").artifact
    made = Recipe(kind="thing", function="made:build", settings={}, inputs={"a": given.digest})
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


def test_every_flipped_byte_of_a_manifest_is_noticed(tmp_path):
    path = with_input(tmp_path)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        if not content[place : place + 1].isspace():
            changed = bytearray(content)
            changed[place] ^= 0x01
            path.write_bytes(changed)
            with pytest.raises(StoreError, match=r"manifest\.json"):
                read_manifest(path.parent)
