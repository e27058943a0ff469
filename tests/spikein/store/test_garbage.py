"""Damage and garbage: named, removed, and nothing else."""

from pathlib import Path

import pytest

from inject.corpus.background.document import Document
from inject.corpus.build import build_corpus
from inject.corpus.corpus import Corpus
from inject.errors import InputError
from inject.step import Recipe
from spikein.store.garbage import collect, collect_damaged
from spikein.store.manifest import StoreError
from spikein.store.store import Store
from tests.conftest import make_texts
from tests.spikein.samples import recipe, visible, write
from tests.spikein.store.damage import damage, flip


@pytest.mark.parametrize(("file", "how"), [("deep/a.txt", "missing"), ("manifest.json", "flipped")])
def test_damage_is_named_and_can_be_repaired(tmp_path, file, how):
    store = Store(tmp_path / "store")
    good = store.obtain(recipe(a=2), write("x"), label="good").artifact
    bad = store.obtain(recipe(a=1), write("x"), label="l").artifact
    damage(bad / file, how, tmp_path / "aside")
    with pytest.raises(StoreError, match="spikein run") as caught:
        store.find(recipe(a=1).digest)
    assert file in str(caught.value)
    [removed] = collect_damaged(store, dry_run=True).removed
    assert removed.path == bad.path
    assert file in removed.reason
    assert [entry.path for entry in collect_damaged(store).removed] == [bad.path]
    assert store.obtain(recipe(a=1), write("x"), label="l").built
    assert store.find(good.digest) is not None


def test_collect_keeps_needed_artifacts_and_their_inputs(tmp_path):
    store = Store(tmp_path)
    below = store.obtain(recipe(a=1), write("1"), label="bottom").artifact
    chain = [below]
    for kind in ("middle", "upper"):
        on_it = Recipe(kind=kind, function="made:build", settings={}, inputs={"in": below.digest})
        below = store.obtain(on_it, write(kind), label=kind).artifact
        chain.append(below)
    top = chain[-1]
    lonely = store.obtain(recipe(a=3), write("3"), label="lonely").artifact
    stale = tmp_path / "thing" / ".0123456789ab.ff.tmp"
    stale.mkdir()
    before = visible(tmp_path)

    tried = collect(store, keep=[top.digest[:12]], dry_run=True)
    assert {entry.path for entry in tried.removed} == {lonely.path, stale}
    assert visible(tmp_path) == before

    done = collect(store, keep=[top.digest])
    assert done.kept == 3
    assert done.removed == tried.removed
    assert store.find(lonely.digest) is None
    assert not stale.exists()
    for artifact in chain:
        store.verify(artifact)
    assert not collect(store, keep=[top.digest]).removed


@pytest.mark.parametrize("remove", ["damaged", "unneeded"])
def test_a_symlinked_artifact_is_removed_and_its_target_keeps_mode_and_content(tmp_path, remove):
    store, target = Store(tmp_path / "store"), tmp_path / "mine"
    needed = store.obtain(recipe(a=1), write("1"), label="kept").artifact
    made = store.obtain(recipe(a=2), write("2"), label="moved").artifact
    made.path.chmod(0o755)
    made.path.rename(target)
    (target / "deep").chmod(0o500)
    target.chmod(0o500)
    made.path.symlink_to(target)
    modes = [path.stat().st_mode for path in (target, target / "deep")]
    with pytest.raises(StoreError, match="is a link"):
        store.find(made.digest)
    result = collect_damaged(store) if remove == "damaged" else collect(store, keep=[needed.digest])
    assert [(entry.path, entry.size) for entry in result.removed] == [(made.path, 0)]
    assert not made.path.is_symlink()
    assert [path.stat().st_mode for path in (target, target / "deep")] == modes
    assert (target / "deep/a.txt").read_text() == "2"


def test_a_corpus_with_other_tokens_than_recorded_is_removed(tmp_path, tiny_tokenizer):
    """Its files match the store's digests, but the tokens were damaged before."""
    documents = [Document(text, f"t:{index}", 0) for index, text in enumerate(make_texts(40))]
    good, bad = (
        Recipe(kind="corpus", function="made:build", settings={"a": number}) for number in range(2)
    )

    def build(out: Path) -> None:
        build_corpus(out, documents=iter(documents), tokenizer=tiny_tokenizer, tokens=300)

    def build_damaged(out: Path) -> None:
        build(out)
        flip(out / "tokens-00000.bin")

    store = Store(tmp_path)
    store.obtain(good, build, label="good")
    made = store.obtain(bad, build_damaged, label="bad").artifact
    store.verify(made)
    with pytest.raises(InputError, match="differ from those written"):
        Corpus.open(made.path).verify()
    [removed] = collect_damaged(store).removed
    assert removed.path == made.path
    assert "tokens-00000.bin" in removed.reason
    assert collect_damaged(store).removed == ()
    assert len(list(store.artifacts())) == 1
