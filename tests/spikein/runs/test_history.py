"""What a run folder keeps when it is made again: files of the user, and earlier results."""

import json
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

import spikein.runs.replacement as module
from inject.errors import InputError
from spikein.runs.folder import link_artifact, referenced_artifacts
from spikein.runs.history import earlier_results
from spikein.runs.record import read_record
from spikein.runs.replacement import PublishedRun, publish_run
from spikein.store.artifact import Artifact
from spikein.store.store import ArtifactRules, Store
from tests.spikein.samples import recipe, write


def results(store: Store, number: int, *, protected: bool = False) -> Artifact:
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
            link_artifact(folder, results(store, number))

    return publish_run(root / "runs", "r", fill, built=built)


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_what_the_user_put_there_stays_when_a_run_is_made_again(tmp_path):
    folder = publish(tmp_path, 1).folder
    (folder / "note.txt").write_text("mine")
    (folder / "notes" / "deep").mkdir(parents=True)
    (folder / "notes" / "deep" / "a.txt").write_text("deep")
    (folder / "empty").mkdir()
    (folder / "figures" / "own.png").write_text("own")
    (folder / "link").symlink_to("note.txt")
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    (folder / "notes" / "deep").chmod(0o500)
    for numbers in ((1,), (2,), (1,)):
        publish(tmp_path, *numbers, page=f"new {numbers}")
        found = tree(folder)
        assert found["report.html"] == f"new {numbers}"
        assert found["note.txt"] == "mine"
        assert found["notes/deep/a.txt"] == "deep"
        assert found["figures/own.png"] == "own"
        assert (folder / "empty").is_dir()
        assert os.readlink(folder / "link") == "note.txt"
        assert os.readlink(folder / "dangling") == "nowhere"
        assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)
        assert stat.S_IMODE((folder / "notes" / "deep").stat().st_mode) == 0o500
    (folder / "notes" / "deep").chmod(0o700)


def test_a_file_of_the_user_gives_way_in_name_only(tmp_path):
    folder = publish(tmp_path, 1).folder
    (folder / "accuracy.parquet").write_text("mine")

    def fill(hidden: Path) -> None:
        (hidden / "accuracy.parquet").write_text("new")

    for _ in range(2):
        publish_run(tmp_path / "runs", "r", fill)
        assert (folder / "accuracy.parquet").read_text() == "new"
        assert (folder / "accuracy.parquet.kept-1").read_text() == "mine"
        assert not (folder / "accuracy.parquet.kept-2").exists()


def test_a_file_that_comes_while_the_folder_is_swapped_is_not_lost(tmp_path, monkeypatch):
    folder = publish(tmp_path, 1).folder
    (folder / "note.txt").write_text("old")
    swap = module.swap

    def late(new: Path, final: Path) -> None:
        (final / "late.txt").write_text("late")
        (final / "saved").write_text("edited by an editor that writes anew")
        os.replace(final / "saved", final / "note.txt")
        swap(new, final)

    monkeypatch.setattr(module, "swap", late)
    publish(tmp_path, 2)
    assert (folder / "late.txt").read_text() == "late"
    assert (folder / "note.txt").read_text().startswith("edited")
    assert not list(folder.glob("*.kept-*"))


def test_other_results_of_a_name_keep_the_earlier_ones_with_page_and_links(tmp_path):
    first = publish(tmp_path, 1, page="first")
    before = tree(first.folder)
    second = publish(tmp_path, 2, page="second")
    assert (second.folder / "report.html").read_text() == "second"
    ((entry, record),) = earlier_results(second.folder)
    assert second.earlier == entry
    assert {name: text for name, text in tree(entry).items() if name != "run.json"} == {
        name: text for name, text in before.items() if name != "run.json"
    }
    assert record.artifacts == first.record.artifacts
    assert record.finished == first.record.finished
    (link,) = (entry / "artifacts" / "thing").iterdir()
    assert (link / "deep" / "a.txt").read_text() == "1"
    assert referenced_artifacts(second.folder) == {
        *first.record.artifacts,
        *second.record.artifacts,
    }


def test_the_same_results_add_no_history(tmp_path):
    publish(tmp_path, 1, page="first")
    again = publish(tmp_path, 1, page="rendered anew")
    assert again.earlier is None
    assert not (again.folder / "history").exists()
    publish(tmp_path, 2)
    for _ in range(3):
        publish(tmp_path, 1, built=False)
        publish(tmp_path, 2, built=False)
    assert len(earlier_results(again.folder)) == 1


def test_results_shown_again_keep_the_time_they_were_finished(tmp_path, monkeypatch):
    from datetime import UTC, datetime

    class Clock(datetime):
        hour_now = 1

        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, cls.hour_now, tzinfo=UTC)

    monkeypatch.setattr(module, "datetime", Clock)
    times = []
    for hour, number, built in ((1, 1, True), (2, 1, False), (3, 2, True), (4, 1, False)):
        Clock.hour_now = hour
        times.append(publish(tmp_path, number, built=built).record.finished[11:13])
    assert times == ["01", "01", "03", "01"]
    Clock.hour_now = 5
    assert publish(tmp_path, 1, built=True).record.finished[11:13] == "05"


def test_a_folder_made_before_there_were_records_is_kept_too(tmp_path):
    folder = publish(tmp_path, 1, page="old").folder
    (folder / "run.json").unlink()
    (folder / "note.txt").write_text("mine")
    publish(tmp_path, 2, page="new")
    assert (folder / "note.txt").read_text() == "mine"
    ((entry, record),) = earlier_results(folder)
    assert (entry / "report.html").read_text() == "old"
    assert len(record.artifacts) == 1
    assert not (entry / "note.txt").exists()


def test_a_damaged_record_is_named_and_replaced_by_the_next_run(tmp_path):
    folder = publish(tmp_path, 1).folder
    (folder / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json: cannot be read"):
        read_record(folder)
    publish(tmp_path, 1)
    assert read_record(folder) is not None


def test_a_damaged_entry_of_the_history_stands_in_no_run_s_way(tmp_path):
    for number in (1, 2):
        folder = publish(tmp_path, number).folder
    ((entry, _),) = earlier_results(folder)
    (entry / "run.json").write_text("{")
    publish(tmp_path, 3)
    assert (entry / "report.html").is_file()
    with pytest.raises(InputError, match="or delete the folder"):
        referenced_artifacts(folder)


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "figures/../../../x", ""])
def test_a_record_that_leads_out_of_its_folder_is_refused(tmp_path, name):
    folder = publish(tmp_path, 1).folder
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**record, "files": [name]}))
    with pytest.raises(InputError, match="leads out of the run's folder"):
        read_record(folder)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="renameat2 is Linux's")
def test_a_reader_never_sees_half_of_it(tmp_path):
    folder = publish(tmp_path, 0, page="0").folder
    (folder / "note.txt").write_text("mine")
    stop = threading.Event()
    bad: list[object] = []

    def read() -> None:
        while not stop.is_set():
            handle = os.open(folder, os.O_RDONLY)
            try:
                names = set(os.listdir(handle))
                if not {"report.html", "run.json", "figures", "artifacts", "note.txt"} <= names:
                    # The folder that was replaced may be on its way out; the present one may not.
                    now = set(os.listdir(folder))
                    if not {"report.html", "run.json", "note.txt"} <= now:
                        bad.append(now)
            except OSError as error:
                bad.append(error)
            finally:
                os.close(handle)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 20):
        publish(tmp_path, number % 3, page=str(number))
    stop.set()
    reader.join()
    assert not bad


def test_no_link_leads_to_protected_artifacts_and_the_folder_says_so(tmp_path):
    store = Store(tmp_path / "store")
    secret, plain = results(store, 1, protected=True), results(store, 2)

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
    assert referenced_artifacts(folder) == {f"thing/{one.path.name}" for one in (secret, plain)}
