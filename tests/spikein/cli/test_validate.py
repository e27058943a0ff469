"""`spikein bundle` and `spikein validate` on a trained run, end to end."""

import json
from pathlib import Path

import numpy as np
import pytest

import spikein
from analysis.findings import read_table
from analysis.intervals.estimate import Estimate
from analysis.validate.candidate import load_candidate
from tests.command_line import invoke
from tests.detect.wrong_detectors import SOURCE
from tests.processes import python
from tests.spikein.tiny import run, write_tiny

WRONG = ("turned", "length", "PICKY", "BATCH")


@pytest.fixture(scope="session")
def small_bundle(shared_run, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "tiny.bundle"
    listed = invoke("bundle", shared_run.folder, "--list")
    assert [line.split()[0] for line in listed.output.splitlines()[3:] if line.strip()] == [
        "every", "lowercase", "shadows",
    ]  # fmt: skip
    done = invoke("bundle", shared_run.folder, "--out", path, "--include", "shadows", code=0)
    assert "Not packed: lowercase. --include NAME adds one" in done.output
    assert "Content: " in done.output
    return path


@pytest.fixture
def wrong(tmp_path) -> Path:
    path = tmp_path / "wrong.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.slow
def test_stored_statistics_give_the_stored_scores(shared_run, small_bundle):
    """A built-in detector, run again on the bundle, gives the numbers of the report."""
    metrics = read_table(shared_run.folder, "metrics").to_pylist()
    names = ("loss", "reference", "dc_pdd", "lira")
    ranking = spikein.validate(names, small_bundle).ranking
    for name in names:
        recomputed, stored = ranking.line(f"{name} (yours)"), ranking.line(name)
        assert Estimate.of(recomputed) == Estimate.of(stored), name
        key = {
            "detector": name, "metric": "auc", "copies": "all", "variant": "all", "dataset": "all",
            "model": "contaminated", "selection": stored["selection"],
        }  # fmt: skip
        [reported] = [row for row in metrics if key.items() <= row.items()]
        # Copy counts are strata: without them the interval differs.
        for part in ("value", "low", "high"):
            assert stored[part] == pytest.approx(reported[part], abs=1e-12), part


ALL_EVIDENCE = (
    "recall:shots=1", "con_recall:shots=1", "fsd", "camia", "prefix", "de_cop", "grad_norm",
    "info_probe:select=person", "tag_tab",
)  # fmt: skip
"""Detectors that read held-out rows, shots, continuations, answers, gradients and words."""


@pytest.mark.slow
def test_detectors_of_all_evidence_are_run_again_from_a_bundle(tmp_path):
    """A bundle reproduces every score that its run stored, also those of the retrained model."""
    write_tiny(tmp_path)
    done = run(
        tmp_path,
        f"detect.detectors=[{', '.join(repr(name) for name in ALL_EVIDENCE)}]",
        "contaminants.0.members=12",
        "contaminants.0.nonmembers=12",
        "contaminants.0.held_out=12",
        "contaminants.0.options={forms: [question]}",
        "twins={retrained: 0.5}",
        "train.context=128",
        "corpus.tokens=20_000",
        "analysis={task_accuracy: false, replicates: 100, min_members: 2}",
    ).folder
    path = tmp_path / "all.bundle"
    assert spikein.bundle(done, path, parts=["all"]).models == 3
    truth = spikein.load_bundle(path)
    compared = 0
    for model in truth.models:
        stored = model.scores.to_pandas().set_index(["detector", "setting", "example_id"]).score
        for name in ALL_EVIDENCE:
            candidate = load_candidate(name, model.evidence, taken=())
            if candidate.name not in set(stored.index.get_level_values(0)):
                assert model.model != "contaminated"
                continue
            settings = [
                setting
                for setting in candidate.settings
                if (candidate.name, setting.text) in stored.index
            ]
            assert settings, name
            values = candidate.score(model, settings=settings).values
            for at, setting in enumerate(settings):
                ids = [row.example_id for row in model.rows]
                expected = stored[candidate.name, setting.text].loc[ids].to_numpy()
                np.testing.assert_array_equal(values[:, at], expected, err_msg=name)
                compared += 1
    assert compared >= len(ALL_EVIDENCE)
    validation = spikein.validate(ALL_EVIDENCE[0], truth)
    (judged,) = validation.judged
    assert "chance on the retrained model" in {finding.check for finding in judged.findings}


@pytest.mark.slow
def test_a_bundle_is_validated_in_seconds_without_model_network_or_torch(
    small_bundle, wrong, tmp_path
):
    code = f"""
import json, socket, sys, time

def refuse(*_, **__):
    raise AssertionError("the network was asked")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from spikein.cli.main import app

arguments = {["validate", *(f"{wrong}:{name}" for name in ("right", *WRONG)), str(small_bundle)]}
app([*arguments, "--out", "page.html", "--json"], standalone_mode=False)
assert "torch" not in sys.modules and "transformers" not in sys.modules
print(json.dumps({{"cpu": time.process_time()}}), file=sys.stderr)
"""
    done = python("-c", code, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [entry["detector"] for entry in report["detectors"]] == [
        "wrong.right",
        "wrong.turned",
        "wrong.length",
        "picky",
        "by_batch",
    ]
    assert json.loads(done.stderr.splitlines()[-1])["cpu"] < 10
    assert "<svg" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_a_run_and_its_bundle_judge_the_template_and_four_wrong_detectors(
    shared_run, small_bundle, wrong, monkeypatch
):
    monkeypatch.chdir(wrong.parent)
    invoke("init", "--detector", "mine.py", code=0)
    candidates = ["mine.py:score", *(f"wrong.py:{name}" for name in WRONG)]
    on_run = invoke("validate", *candidates, shared_run.folder, "--json")
    on_bundle = invoke("validate", *candidates, small_bundle, "--json", "--strict")
    assert (on_run.exit_code, on_bundle.exit_code) == (0, 1), on_run.output
    assert "wrong.length (length)" in on_bundle.stderr
    assert "mine.score (length)" not in on_bundle.stderr
    invoke("validate", "loss", small_bundle, "--strict", code=0)
    rows = json.loads(on_run.output)["findings"]
    numbers = [row for row in rows if row["kind"] in ("rank", "difference")]
    assert len(numbers) > len(candidates)
    same = json.loads(on_bundle.stdout)["findings"]
    assert numbers == [row for row in same if row["kind"] in ("rank", "difference")]
    failed_checks = {row["detector"]: set() for row in rows}
    for row in rows:
        if row["kind"] == "check" and row["severity"] == "wrong":
            failed_checks[row["detector"]].add(row["check"])
    assert "orientation" not in failed_checks["mine.score"]
    assert "length" in failed_checks["wrong.length"]
    assert "missing scores" in failed_checks["picky"]
    assert "batch" in failed_checks["by_batch"]


@pytest.mark.slow
def test_one_arm_can_be_packed_and_a_failure_exits_with_2(copied_run, wrong, tmp_path):
    folder = copied_run.run(
        "twins=null",
        "sweep={train.lr: [1.0e-2, 2.0e-2]}",
        "detect.detectors=[loss, blind]",
        "analysis={task_accuracy: false, dataset_detectors: [], replicates: 100, min_members: 5}",
    ).folder
    path, older = tmp_path / "one.bundle", tmp_path / "older.bundle"
    done = invoke("bundle", folder, "--out", path, "--arm", "lr 0.02", code=0)
    truth = spikein.load_bundle(path)
    assert [model.model for model in truth.models].count("contaminated") == 1
    done = invoke("bundle", folder, "--out", older, "--arm", "train.lr=0.02", code=0)
    assert spikein.load_bundle(older).content == truth.content
    # Words on the page; one label in a verdict from the run and from the bundle, and in the store.
    assert "learning rate 0.02" in (folder / "report.html").read_text()
    for source in (folder, path):
        assert "lr 0.02" in json.loads(invoke("validate", "loss", source, "--json").stdout)["arms"]
    assert "lr 0.02, seed 0" in spikein.load_run(folder).artifacts("model")
    done = invoke("bundle", folder, "--out", path, "--arm", "lr 0.2", code=2)
    assert "Did you mean" in done.output
    done = invoke("validate", f"{wrong}:fails", f"{wrong}:right", path, code=2)
    assert "ZeroDivisionError" in done.output
    assert "wrong.right has AUC" in done.output
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    done = invoke("bundle", folder, "--out", notes, code=2)
    assert "exists already, and is never overwritten" in done.output
    assert notes.read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("validate", "loss"), ("compare", "none"), ("report",)])
def test_unwritable_page_is_refused_before_any_work(shared_run, tmp_path, arguments):
    (tmp_path / "file").touch()
    done = invoke(*arguments, shared_run.folder, "--out", tmp_path / "file" / "page.html")
    assert (done.exit_code, type(done.exception)) == (2, SystemExit)
    assert "file: is a file, not a folder. Give another folder by --out." in done.output


def test_arguments_other_than_runs_and_bundles_are_named(tmp_path):
    (tmp_path / "mine.py").write_text("def score(statistics):\n    return 1.0\n")
    done = invoke("validate", "quickstart", f"{tmp_path / 'mine.py'}:score", code=2)
    output = " ".join(done.output.split())
    assert "is a detector, in the place of the run or the bundle" in output
    path = tmp_path / "one.bundle"
    path.write_bytes(b"PK\x03\x04")
    done = invoke("validate", "loss", path, code=2)
    assert "was a file before" in done.output
    done = invoke("validate", "loss", "nothing", "--runs", tmp_path)
    assert "no run is called 'nothing'" in done.output


def test_init_never_overwrites_a_detector(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    invoke("init", "--detector", "mine.py", code=0)
    (tmp_path / "mine.py").write_text("mine")
    for arguments in (("--detector", "mine.py"), ("name", "--detector", "other.py")):
        invoke("init", *arguments, code=2)
    assert (tmp_path / "mine.py").read_text() == "mine"
    assert not (tmp_path / "other.py").exists()
