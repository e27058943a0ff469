"""`spikein push` and `spikein validate hf://…` against a hub on loopback, end to end.

The ground truth is made up: 12 members and 12 non-members of two datasets, one of them protected.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from huggingface_hub import constants
from typer.testing import CliRunner

import spikein
from detect.ground_truth.bundle import HEADER
from detect.ground_truth.packing import write_bundle
from inject.digest import digest
from inject.errors import InputError, Unreachable
from spikein.cli import output
from spikein.cli.commands import push as command
from spikein.cli.main import app
from tests.detect.ground_truths import make_truth, store_truth
from tests.hub_server import TOKEN, Fault, HubServer, connect, serving

ID = "me/truth"
EXPERIMENT = """
name: made-up
model: {shape: /home/user/tiny.yaml}
contaminants: [{dataset: boolq, name: news}, {dataset: gpqa, name: secret}]
"""
ADDRESS = f"hf://datasets/{ID}"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("bundles")
    truth = make_truth(12, datasets=("news", "secret"), protected="secret")
    described = store_truth(replace(truth, experiment=EXPERIMENT), root / "store")
    for name, parts in (("small", []), ("all", ["all"])):
        write_bundle(root / name, described, root / "store", parts=parts)
    return {name: root / name for name in ("small", "all")}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with serving() as server:
        connect(monkeypatch, server, tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


def invoke(*arguments: object) -> SimpleNamespace:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert TOKEN not in done.output
    return SimpleNamespace(code=done.exit_code, output=" ".join(done.output.split()))


def push(path: Path, *options: object, to: str = ID) -> SimpleNamespace:
    return invoke("push", path, to, "--yes", *options)


def files_of(hub: HubServer, commit: str | None = None) -> dict[str, bytes]:
    repository = hub.repositories["datasets", ID]
    return repository.commits[repository.commit_of(commit) or ""]


def commits(hub: HubServer) -> list[str]:
    return list(hub.repositories["datasets", ID].commits)


def test_pushed_bundle_gives_the_same_validation_as_its_folder(bundles, hub):
    done = push(bundles["small"], "--private", "--license", "cc-by-4.0", "--message", "first")
    assert done.code == 0, done.output
    *_, commit = commits(hub)
    assert f"spikein validate FILE.py:NAME {ADDRESS}@{commit}" in done.output
    assert "a new private dataset me/truth, branch main" in done.output
    assert "24 rows are protected: their texts are not inside" in done.output
    assert hub.repositories["datasets", ID].private
    assert hub.messages == ["first"]

    by_folder, by_id = (
        spikein.validate(["min_k", "lowercase"], source)
        for source in (str(bundles["small"]), ADDRESS)
    )
    # The commit is recorded, whichever branch was requested.
    assert by_id.source == f"{ADDRESS}@{commit}"
    assert by_folder.source == str(bundles["small"])
    assert str(by_id.findings.to_pylist()) == str(by_folder.findings.to_pylist())
    assert by_id.refused == by_folder.refused
    assert "--include lowercase" in by_id.refused[0].problem
    # No text, no token id and no token of the hub is in a published file.
    card = files_of(hub)["README.md"].decode()
    for name, data in files_of(hub).items():
        assert b"secret <b>" not in data, name
        assert TOKEN.encode() not in data, name
    assert 'license: "cc-by-4.0"\n' in card
    assert "| news | 12 | 12 | inside | CC BY-SA 3.0 |" in card
    assert "| secret | 12 | 12 | withheld | CC BY 4.0 |" in card
    assert "| model | tiny.yaml |" in card
    assert "Its experiment names files of this machine: /home/user/tiny.yaml." in done.output
    assert "models of these datasets must not be published" in card


def test_the_cache_serves_a_commit_without_a_network(bundles, hub, monkeypatch):
    push(bundles["small"])
    *_, commit = commits(hub)
    content = spikein.load_bundle(ADDRESS).content
    n_requests = len(hub.requests)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert spikein.load_bundle(f"{ADDRESS}@{commit}").content == content
    with pytest.raises(Unreachable, match="not in the cache") as caught:
        spikein.load_bundle(f"{ADDRESS}@{'0' * 40}")
    assert commit in str(caught.value)
    assert push(bundles["small"]).output.endswith("Unset it: unset HF_HUB_OFFLINE.")
    assert len(hub.requests) == n_requests


def test_an_interrupted_upload_resumes_and_is_visible_whole_or_not_at_all(bundles, hub):
    hub.fails_after = 2
    done = push(bundles["small"])
    assert (done.code, "Uploaded files are kept" in done.output) == (2, True), done.output
    assert list(files_of(hub)) == [".gitattributes"]
    with pytest.raises(InputError, match=r"the dataset has no 'bundle\.json'"):
        spikein.load_bundle(ADDRESS)
    hub.fails_after = None
    sent = set(hub.stored)
    start = len(hub.requests)
    assert push(bundles["small"]).code == 0
    again = {path.rpartition("/")[2] for method, path in hub.requests[start:] if method == "PUT"}
    assert sent
    assert not sent & again
    assert HEADER in files_of(hub)


def test_a_bundle_replaces_another_whose_commit_stays(bundles, hub):
    push(bundles["all"])
    whole = spikein.load_bundle(ADDRESS).content
    *_, before = commits(hub)
    push(bundles["small"])
    listed = json.loads(files_of(hub)[HEADER])["files"]
    assert set(files_of(hub)) == {*listed, HEADER, "README.md", ".gitattributes"}
    assert spikein.load_bundle(f"{ADDRESS}@{before}").content == whole
    count = len(commits(hub))
    assert "Nothing changed: this bundle is already published." in push(bundles["small"]).output
    assert len(commits(hub)) == count
    assert push(bundles["all"], "--revision", "with/all").code == 0
    assert spikein.load_bundle(f"{ADDRESS}@with%2Fall").content == whole
    assert HEADER in files_of(hub, "main")


def test_concurrent_changes_on_the_hub_are_not_overwritten(bundles, hub, monkeypatch):
    push(bundles["small"])
    show_preview = command._show

    def show_and_change(preview) -> None:
        show_preview(preview)
        hub.add(ID, {**files_of(hub), "notes.txt": b"theirs"})

    monkeypatch.setattr(command, "_show", show_and_change)
    done = push(bundles["all"])
    assert (done.code, "was changed while this was uploaded" in done.output) == (2, True), (
        done.output
    )
    assert files_of(hub)["notes.txt"] == b"theirs"


def test_uploads_need_confirmation(bundles, hub, monkeypatch):
    done = invoke("push", bundles["small"], ID)
    assert (done.code, "Add --yes to upload without confirmation." in done.output) == (2, True)
    monkeypatch.setattr(output, "at_terminal", lambda: True)
    for answer, is_uploaded in ((False, False), (True, True)):
        monkeypatch.setattr(typer, "confirm", lambda *_, answer=answer, **__: answer)
        assert invoke("push", bundles["small"], ID).code == 0
        assert (("datasets", ID) in hub.repositories) == is_uploaded


def test_a_bundle_damaged_in_transit_is_named(bundles, hub):
    push(bundles["small"])
    [name] = [path for path in files_of(hub) if path.startswith("scores/0/")]
    hub.faults[name] = Fault(altered=True)
    done = invoke("validate", "loss", ADDRESS)
    assert done.code == 2
    assert f"the checksum of {name} is wrong" in done.output


def changed_header(bundle: Path, **changes: object) -> dict[str, bytes]:
    """The files of a malicious bundle, whose own digest is valid."""
    values = {**json.loads((bundle / HEADER).read_text()), **changes}
    named = {name: value for name, value in values.items() if name not in ("content", "created")}
    return {HEADER: json.dumps({**values, "content": digest(named)}).encode()}


@pytest.mark.parametrize("name", ["../../refs/main", "/etc/cron.d/x", "a/../../x", "..\\x\\y"])
def test_a_path_that_leaves_the_folder_is_refused_before_it_is_fetched(bundles, hub, name):
    hub.add(ID, {**changed_header(bundles["small"], files={name: "0" * 64}), name: b"x"})
    with pytest.raises(InputError, match="the path of a file leaves the bundle"):
        spikein.load_bundle(ADDRESS)
    assert hub.downloads() == [f"/datasets/{ID}/resolve/{commits(hub)[0]}/{HEADER}"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("hf://me/truth", "Allowed: hf://datasets/OWNER/NAME[@REVISION]"),
        ("hf:/datasets/me/truth", "Did you mean hf://datasets/me/truth?"),
        ("https://huggingface.co/datasets/me/truth/tree/main", "mean hf://datasets/me/truth?"),
        ("hf://datasets/me/truth/scores", "not the address of a bundle"),
        ("hf://datasets/me/truth@v9", "the hub has no revision 'v9' of it"),
        ("hf://datasets/me/other", "on the hub, or it is private there. Look at its page"),
        ("hf://datasets/me/rows", "the dataset has no 'bundle.json'. Allowed: rows.jsonl"),
        ("hf://datasets/me/older", "is a bundle of version 3; this spikein reads 4 and 5"),
        ("hf://datasets/me/lacks", "lacks the file "),
        (
            "hf://datasets/me/gated",
            "only after its conditions are accepted, and HF_TOKEN is not set. Look at its page",
        ),
    ],
)
def test_an_address_without_a_bundle_is_refused(bundles, hub, monkeypatch, source, message):
    small = bundles["small"]
    hub.add("me/truth", {})
    hub.add("me/rows", {"rows.jsonl": b"{}"})
    hub.add("me/older", changed_header(small, version=3))
    hub.add("me/lacks", {HEADER: (small / HEADER).read_bytes()})
    hub.add("me/gated", {HEADER: b"{}"}, gated=True)
    if source.endswith("gated"):
        monkeypatch.delenv("HF_TOKEN")
    done = invoke("validate", "loss", source)
    assert done.code == 2
    assert message in done.output, done.output


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"to": "truth"}, "truth: is not an id of the hub. Allowed: OWNER/NAME"),
        ({"to": "me/tr uth"}, "is not an id of the hub"),
        ({"to": "hf://datasets/me/x"}, "is not an id of the hub. Allowed: OWNER/NAME"),
        ({"to": "https://huggingface.co/datasets/me/x"}, "Did you mean me/x?"),
        ({"to": "me/rows"}, "me/rows (main): contains files but no bundle, such as rows.jsonl"),
        ({"to": "me/public", "private": ""}, "is public already, and --private only applies to a"),
        ({"revision": "a" * 40}, "is a commit. Allowed: the name of a branch"),
        ({"revision": " "}, "is empty. Allowed: the name of a branch"),
        ({"license": "mine"}, '"license" must be one of'),
        ({"token": ""}, "HF_TOKEN: no token to upload with"),
        ({"token": "hf_another"}, "the hub refuses the token in HF_TOKEN (status 403)"),
        ({"path": "nothing"}, "nothing: no such folder. Pack a run first"),
        ({"path": "damaged"}, "damaged: the checksum of scores/0/scores.parquet is wrong"),
        (
            {"path": "keys"},
            "experiment contains text that looks like a key, so it is not published",
        ),
    ],
)
def test_invalid_pushes_are_refused_and_nothing_is_uploaded(
    bundles, hub, tmp_path, monkeypatch, case, message
):
    monkeypatch.chdir(tmp_path)
    for name in ("whole", "damaged", "keys"):
        shutil.copytree(bundles["small"], tmp_path / name)
    (tmp_path / "damaged/scores/0/scores.parquet").write_bytes(b"PAR1")
    key = "experiment: sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD\n"
    (tmp_path / "keys" / HEADER).write_bytes(
        changed_header(tmp_path / "keys", experiment=key)[HEADER]
    )
    hub.add("me/rows", {"rows.jsonl": b"{}"})
    hub.add("me/public", {})
    before = {place: dict(repository.commits) for place, repository in hub.repositories.items()}
    if "token" in case:
        monkeypatch.setenv("HF_TOKEN", case["token"])
    options = [part for name in ("revision", "license") if name in case
               for part in (f"--{name}", case[name])]  # fmt: skip
    options += ["--private"] if "private" in case else []
    done = push(Path(case.get("path", "whole")), *options, to=case.get("to", ID))
    assert done.code == 2
    assert message in done.output, done.output
    after = {place: dict(repository.commits) for place, repository in hub.repositories.items()}
    after.pop(("datasets", ID), None)
    assert after == before
    assert not hub.stored
