"""Artifacts that changed since they were built are rebuilt: the store, plans and the executor."""

import time
from itertools import product
from pathlib import Path

import pytest

from inject.step import Step
from spikein.executors import InProcess
from spikein.pipeline.graph import Graph, Planned, plan
from spikein.store.artifact import open_artifact, verified
from spikein.store.manifest import StoreError
from spikein.store.store import Store
from tests.spikein.executors.graphs import events
from tests.spikein.samples import Notices, recipe, write
from tests.spikein.step_functions import step
from tests.spikein.store.damage import DAMAGES, damage, flip, forge

TRACE = ".trace"


def chain(root: Path, *, texts: dict[str, str] | None = None) -> list[Step]:
    """Return a → b → c; each writes its input and a text that is not in the digest."""
    steps: list[Step] = []
    for name in "abc":
        execution = {"text": (texts or {}).get(name, name), "trace": str(root / TRACE)}
        inputs = {"x": steps[-1]} if steps else {}
        steps.append(step(name, "write", kind=name, execution=execution, inputs=inputs))
    return steps


def calls(root: Path) -> list[str]:
    """The steps that were built in a store, in order."""
    return [event["step"] for event in events(root / TRACE)]


def run(steps: list[Step], root: Path, *, whole: bool = True) -> list[str]:
    graph = Graph(goals=(steps[-1],))
    progress = Notices()
    InProcess().run(graph.complete() if whole else graph, Store(root), progress)
    return progress.notices


def folder(root: Path, name: str) -> Path:
    [path] = root.glob(f"{name}/{name}-*")
    return path


def states(root: Path) -> dict[str, Planned]:
    graph = Graph(goals=(chain(root)[-1],)).complete()
    return {planned.step.label: planned for planned in plan(graph, Store(root))}


@pytest.mark.parametrize("file", ["value", "manifest.json"])
def test_a_run_reports_and_repairs_damage_and_keeps_dependent_artifacts(tmp_path, file):
    run(chain(tmp_path), tmp_path)
    store = Store(tmp_path)
    for number, (name, how) in enumerate(product("abc", DAMAGES)):
        aside = tmp_path / f"aside-{number}"
        damage(folder(tmp_path, name) / file, how, aside)
        planned = states(tmp_path)
        assert [label for label, entry in planned.items() if entry.state == "damaged"] == [name]
        assert file in str(planned[name].problem)
        (tmp_path / TRACE).unlink()
        [notice] = run(chain(tmp_path), tmp_path)
        assert file in notice
        assert "it is rebuilt" in notice
        assert calls(tmp_path) == [name]
        for label in "abc":
            store.verify(open_artifact(folder(tmp_path, label)))
        assert run(chain(tmp_path), tmp_path) == []
        assert calls(tmp_path) == [name]


def test_a_flipped_byte_of_an_input_is_never_read(tmp_path):
    steps = chain(tmp_path)
    run(steps[:2], tmp_path)
    flip(folder(tmp_path, "b") / "value")
    run(steps, tmp_path, whole=False)
    assert calls(tmp_path) == ["a", "b", "b", "c"]
    assert (folder(tmp_path, "c") / "value").read_text() == "(c(b(a)))"


def test_an_extra_file_and_a_folder_replaced_by_a_link_are_damage(tmp_path):
    run(chain(tmp_path), tmp_path)
    place = folder(tmp_path, "b")
    place.chmod(0o755)
    (place / "more").write_text("x")
    assert "more is not part of the artifact" in run(chain(tmp_path), tmp_path)[0]
    place = folder(tmp_path, "b")
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert "is a link" in run(chain(tmp_path), tmp_path)[0]
    assert (tmp_path / "elsewhere" / "value").read_text() == "(b(a))"
    assert calls(tmp_path) == ["a", "b", "c", "b", "b"]


def test_a_step_rebuilt_with_other_content_rebuilds_its_dependents(tmp_path):
    run(chain(tmp_path), tmp_path)
    flip(folder(tmp_path, "a") / "value")
    run(chain(tmp_path, texts={"a": "other"}), tmp_path)
    assert calls(tmp_path) == [*"abc", *"abc"]
    assert (folder(tmp_path, "c") / "value").read_text() == "(c(b(other)))"


def test_an_artifact_with_other_content_than_recorded_damages_its_dependents(tmp_path):
    run(chain(tmp_path), tmp_path)
    forge(folder(tmp_path, "a"), "value")
    planned = states(tmp_path)["b"]
    assert planned.state == "damaged"
    assert "its input x no longer has" in str(planned.problem)
    run(chain(tmp_path), tmp_path)
    assert calls(tmp_path) == [*"abc", "b", "c"]
    forged = (folder(tmp_path, "a") / "value").read_text()
    assert (folder(tmp_path, "c") / "value").read_text() == f"(c(b{forged}))"


def test_an_input_that_is_edited_while_it_is_read_spoils_no_artifact(tmp_path):
    first, *_ = chain(tmp_path)
    bad = step("bad", "spoil_input", kind="bad", x=first)
    with pytest.raises(StoreError, match="changed since it was built"):
        run([first, bad], tmp_path)
    assert not list(tmp_path.glob("bad/*-*"))


def test_a_file_is_hashed_once_unless_it_may_have_changed(tmp_path, monkeypatch):
    from spikein.store import artifact as verification

    artifact = Store(tmp_path).obtain(recipe(a=1), write("x"), label="l").artifact
    hashed: list[str] = []
    quick = verification.quick_digest

    def counted(path: Path) -> str:
        hashed.append(path.name)
        return quick(path)

    monkeypatch.setattr(verification, "quick_digest", counted)
    # Files written this recently may change again without a change of their times.
    monkeypatch.setattr(verification, "_SETTLED_NS", 10**18)
    verified(artifact)
    verified(artifact)
    assert hashed == ["a.txt", "log.txt"] * 2
    hashed.clear()
    monkeypatch.setattr(verification, "_SETTLED_NS", -(10**18))
    verified(artifact)
    verified(artifact)
    assert hashed == ["a.txt", "log.txt"]
    # In place, so that only the time of change reveals it.
    time.sleep(0.03)
    flip(artifact / "deep/a.txt", in_place=True)
    with pytest.raises(StoreError, match=r"a\.txt: changed since it was built"):
        verified(artifact)
