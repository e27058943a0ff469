"""Publishing runs: numbered folders, whole or absent, that nothing changes afterwards."""

import json
import os
import shutil
import textwrap
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import spikein.runs.publication as module
from inject.errors import InputError
from spikein.runs.folder import (
    artifact_rows,
    find_run,
    link_artifact,
    linked_artifacts,
    run_folders,
    run_name,
    run_rows,
)
from spikein.runs.publication import PublishedRun, publish_run
from spikein.runs.record import checked_record, read_record
from spikein.runs.register import find_roots
from spikein.store.artifact import Artifact
from spikein.store.garbage import collect
from spikein.store.store import ArtifactRules, Store
from tests.processes import python
from tests.spikein.records import change_record
from tests.spikein.samples import recipe, write


def artifact(store: Store, number: int, *, protected: bool = False) -> Artifact:
    return store.obtain(
        recipe(n=number),
        write(str(number)),
        label=f"n{number}",
        rules=ArtifactRules(protected=protected),
    ).artifact


def publish(root: Path, *numbers: int, page: str = "page", built: bool = True) -> PublishedRun:
    store = Store(root / "store")

    def fill(folder: Path) -> None:
        (folder / "report.html").write_text(page)
        (folder / "figures").mkdir()
        (folder / "figures" / "roc.png").write_text(page)
        for number in numbers:
            link_artifact(folder, artifact(store, number))

    return publish_run(root / "runs", "r", fill, built=built)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def hidden(root: Path) -> list[Path]:
    return list((root / "runs" / "r").glob(".*.tmp"))


def test_runs_have_numbered_folders_and_latest_links_to_the_newest(tmp_path):
    made = [publish(tmp_path, number, page=str(number)).folder for number in range(10)]
    assert made == [tmp_path / "runs" / "r" / str(number) for number in range(1, 11)]
    assert run_folders(tmp_path / "runs") == made
    assert [run_name(folder) for folder in made[:2]] == ["r/1", "r/2"]
    for number, folder in enumerate(made):
        assert (folder / "report.html").read_text() == str(number)
    for name in ("r", "r/10", "r/latest", str(tmp_path / "runs" / "r")):
        assert find_run(tmp_path / "runs", name) == made[-1]
    assert find_run(tmp_path / "runs", "r/3") == made[2]
    assert (tmp_path / "runs" / "r" / "latest" / "report.html").read_text() == "9"


def test_publishing_the_same_run_again_reuses_it_and_runs_never_change(tmp_path):
    first = publish(tmp_path, 1)
    (first.folder / "note.txt").write_text("mine")
    before = tree(first.folder)
    assert publish(tmp_path, 1, built=False) == first
    assert publish(tmp_path, 1, page="rendered again", built=False).folder.name == "2"
    publish(tmp_path, 3)
    assert tree(first.folder) == before


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_new_run_is_published_if_the_newest_is_damaged(tmp_path, damage):
    folder = publish(tmp_path, 1).folder
    if damage == "gone":
        (folder / "figures" / "roc.png").unlink()
    else:
        (folder / "report.html").write_text("pagE")
    again = publish(tmp_path, 1)
    assert again.folder.name == "2"
    assert again.earlier is None
    checked_record(again.folder)


def test_changed_results_refer_to_the_previous_run(tmp_path):
    first = publish(tmp_path, 1)
    assert first.earlier is None
    assert publish(tmp_path, 2).earlier == first.folder
    assert publish(tmp_path, 2, page="rendered again").earlier is None


def test_republished_results_keep_their_finish_time(tmp_path, monkeypatch):
    from datetime import UTC, datetime

    class Clock(datetime):
        hour_now = 1

        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, cls.hour_now, tzinfo=UTC)

    monkeypatch.setattr(module, "datetime", Clock)
    times = []
    for hour, number, built in ((1, 1, True), (2, 1, False), (3, 2, True), (4, 2, True)):
        Clock.hour_now = hour
        made = publish(tmp_path, number, page=str(hour), built=built)
        times.append(made.record.finished[11:13])
    assert times == ["01", "01", "03", "04"]


def test_a_failed_fill_leaves_nothing(tmp_path):
    def fail(folder: Path) -> None:
        (folder / "report.html").write_text("half")
        raise RuntimeError("no")

    for runs in ([], ["1"]):
        with pytest.raises(RuntimeError):
            publish_run(tmp_path / "runs", "r", fail)
        assert [run.name for run in run_folders(tmp_path / "runs")] == runs
        assert not hidden(tmp_path)
        publish(tmp_path, 1)


def test_a_killed_publication_is_not_seen_and_is_cleaned_up(tmp_path):
    publish(tmp_path, 1)
    code = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from spikein.runs.publication import publish_run
        def fill(folder):
            (folder / "report.html").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
        publish_run(Path(sys.argv[1]), "r", fill)
        """
    )
    python("-c", code, tmp_path / "runs")
    assert [run.name for run in run_folders(tmp_path / "runs")] == ["1"]
    assert len(hidden(tmp_path)) == 1
    publish(tmp_path, 2)
    assert not hidden(tmp_path)


def test_a_reader_of_the_newest_run_always_sees_a_complete_one(tmp_path):
    publish(tmp_path, 0, page="0")
    latest = tmp_path / "runs" / "r" / "latest"
    stop = threading.Event()
    bad: list[object] = []

    def read() -> None:
        while not stop.is_set():
            try:
                names = set(os.listdir(latest))
                if not {"report.html", "run.json", "figures", "artifacts"} <= names:
                    bad.append(names)
            except OSError as error:
                bad.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 20):
        publish(tmp_path, number % 3, page=str(number))
    stop.set()
    reader.join()
    assert not bad


@pytest.mark.parametrize("content", ["file", "folder", "earlier version"])
def test_foreign_content_is_refused_and_stays(tmp_path, content):
    home = tmp_path / "runs" / "r"
    if content == "file":
        home.parent.mkdir()
        home.write_text("years")
    else:
        home.mkdir(parents=True)
        (home / ("thesis.tex" if content == "folder" else "run.json")).write_text('{"format": 1}')
    message = (
        "an earlier version of spikein"
        if content == "earlier version"
        else "was not written by spikein"
    )
    with pytest.raises(InputError, match=message):
        publish(tmp_path, 1)


@pytest.mark.parametrize("name", ["/etc/passwd", "figures/../../../x", ""])
def test_a_record_that_leads_out_of_its_folder_is_refused(tmp_path, name):
    folder = publish(tmp_path, 1).folder
    change_record(folder, digests={name: [1, "0"]})
    with pytest.raises(InputError, match="leads out of the run's folder"):
        read_record(folder)


def test_changed_bit_of_record_is_refused_unless_nothing_changes(tmp_path):
    folder = publish(tmp_path, 1, 2).folder
    record, path = read_record(folder), folder / "run.json"
    content = path.read_bytes()
    for at in range(0, 8 * len(content), 29):
        changed = bytearray(content)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        with suppress(InputError):
            assert read_record(folder) == record, (content[at // 8 - 9 : at // 8 + 9], at % 8)


def test_record_of_previous_format_needs_no_digest(tmp_path):
    folder = publish(tmp_path, 1).folder
    values = json.loads((folder / "run.json").read_text()) | {"format": 2}
    (folder / "run.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"run\.json.* its digest is wrong"):
        read_record(folder)
    del values["digest"]
    (folder / "run.json").write_text(json.dumps(values))
    assert read_record(folder).id == values["id"]


def test_protected_artifacts_are_listed_instead_of_linked(tmp_path):
    store = Store(tmp_path / "store")
    secret, plain = artifact(store, 1, protected=True), artifact(store, 2)

    def fill(folder: Path) -> None:
        link_artifact(folder, secret)
        link_artifact(folder, plain)

    folder = publish_run(tmp_path / "runs", "r", fill).folder
    (link,) = (folder / "artifacts" / "thing").iterdir()
    assert link.name == plain.path.name
    for path, _, files in os.walk(folder, followlinks=True):
        for file in files:
            assert not (Path(path) / file).samefile(secret / "deep/a.txt")
    assert secret.path.name in (folder / "artifacts" / "protected.txt").read_text()
    assert {target.name for target in linked_artifacts(folder)} == {
        secret.path.name,
        plain.path.name,
    }


def test_artifacts_of_a_run_stay_until_the_run_is_deleted(tmp_path):
    store = Store(tmp_path / "store")
    for number in (1, 2, 3):
        publish(tmp_path, number)
    artifact(store, 4)

    def labels_after_collection() -> set[str]:
        roots = find_roots(store.root, tmp_path / "runs")
        collect(store, keep=lambda: roots.needed())
        return {path.name[:2] for path in (tmp_path / "store" / "thing").iterdir()}

    assert labels_after_collection() == {"n1", "n2", "n3"}
    shutil.rmtree(tmp_path / "runs" / "r" / "2")
    assert labels_after_collection() == {"n1", "n3"}
    assert publish(tmp_path, 3).folder.name == "3"


def test_the_list_of_runs_counts_artifacts_and_names_missing_ones(tmp_path):
    made = [publish(tmp_path, number).folder for number in (1, 2)]
    (gone,) = linked_artifacts(made[0])
    gone.rename(gone.with_name(gone.name.replace("n1", "n9")))
    first, second = run_rows(tmp_path / "runs")
    assert (first.name, first.linked, first.whole) == ("r/1", 1, 0)
    assert "missing in the store" in str(first.problem)
    assert (second.name, second.linked, second.whole, second.problem) == ("r/2", 1, 1, None)
    assert [row.problem is None for row in artifact_rows(made[1])] == [True]
