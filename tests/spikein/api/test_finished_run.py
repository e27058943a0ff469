"""Opening a finished run: its tables and figures, and the message if something is missing."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spikein
from analysis.findings import read_findings
from analysis.results import analyse, write_analysis
from analysis.settings import AnalysisSettings
from inject.errors import InputError
from inject.examples.example import EXAMPLES_FILE
from inject.reading.former_names import FORMER_COLUMNS, FormerNameWarning, rename_columns
from inject.stream.exposures import SCHEMA as EXPOSURES
from inject.stream.exposures import write_exposures
from inject.verified_files import file_digests
from spikein.api.comparison import compare_runs
from spikein.api.ground_truth import stored_truth
from spikein.api.report import render_report
from spikein.config.former_keys import FORMER_KEYS
from spikein.config.load import resolved_yaml
from spikein.runs.folder import link_artifact, run_rows
from spikein.runs.publication import publish_run
from spikein.runs.streams import run_arms
from spikein.store.filesystem import delete_tree
from spikein.store.store import Store
from tests.analysis.synthetic import make_arm
from tests.command_line import invoke
from tests.spikein.records import change_record
from tests.spikein.samples import read, recipe, write

FIGURES = ("copies", "detectors", "roc")


SENTENCES = ["A text copied once is often found.", "The chosen detector is Min-K%."]


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Path:
    """A folder with a store and a run of two simulated arms."""
    root = tmp_path_factory.mktemp("lab")
    store = Store(root / "store")
    made = store.obtain(recipe(n=1), write("x"), label="thing").artifact
    arms = [
        make_arm(root / lr, axes={"train.lr": lr}, seed=0, effect=effect, n=40)
        for lr, effect in (("0.0003", 0.2), ("<0.001>", 1.5))
    ]

    def fill(folder: Path) -> None:
        experiment = read("name=sample", "seeds=[0]", "sweep={train.lr: [0.0003, 0.001]}")
        (folder / "experiment.yaml").write_text(resolved_yaml(experiment))
        write_analysis(folder, analyse(arms, AnalysisSettings(replicates=100)))
        shutil.copyfile(root / "0.0003" / EXAMPLES_FILE, folder / EXAMPLES_FILE)
        write_exposures(folder, pa.Table.from_pylist([{}], schema=EXPOSURES))
        (folder / "figures").mkdir()
        for name in FIGURES:
            (folder / "figures" / f"{name}.png").touch()
            (folder / "figures" / f"{name}.svg").touch()
        (folder / "report.html").touch()
        (folder / "summary.json").write_text(json.dumps({"sentences": SENTENCES}))
        link_artifact(folder, made)

    publish_run(root / "runs", "sample", fill)
    return root


@pytest.fixture
def folder(lab, tmp_path) -> Path:
    """A copy of the run and its store, to spoil."""
    shutil.copytree(lab / "runs", tmp_path / "runs", symlinks=True)
    shutil.copytree(lab / "store", tmp_path / "store")
    run_folder = tmp_path / "runs" / "sample" / "1"
    record = json.loads((run_folder / "run.json").read_text())
    change_record(run_folder, store={**record["store"], "absolute": str(tmp_path / "store")})
    return run_folder


def test_a_run_is_found_by_folder_by_name_and_by_the_variable(lab, monkeypatch):
    by_folder = spikein.load_run(lab / "runs" / "sample" / "latest")
    assert spikein.load_run("sample", runs=lab / "runs") == by_folder
    monkeypatch.setenv("SPIKEIN_RUNS", str(lab / "runs"))
    assert spikein.load_run("sample") == by_folder
    monkeypatch.delenv("SPIKEIN_RUNS")
    monkeypatch.chdir(lab)
    assert spikein.load_run("sample").name == "sample"


def test_tables_match_the_folder_and_convert_to_pandas(lab):
    run = spikein.load_run(lab / "runs" / "sample" / "latest")
    for name in ("findings", "scores", "examples", "exposures"):
        table = getattr(run, name)
        assert table is getattr(run, name)
        stored_table = pq.read_table(run.folder / f"{name}.parquet")
        assert table.to_pandas().equals(stored_table.to_pandas())
        assert len(table) > 0
    assert run.axes == ("train.lr",)
    assert run.settings["train"]["lr"] == 0.0003
    assert run.report == run.folder / "report.html"
    assert [*run.summary] == SENTENCES


def test_a_run_describes_itself_and_finds_its_figures_by_name(lab):
    run = spikein.load_run(lab / "runs" / "sample" / "latest")
    for part in ("Run 'sample'", "train.lr (2 values)", "min_k", "1 in the store"):
        assert part in repr(run), part
    page = run._repr_html_()
    assert "lr &lt;0.001&gt;" in page
    assert "<0.001>" not in page
    assert page.count("<b>") == 2
    assert run.figures == FIGURES
    assert run.figure("copies", kind="svg") == run.folder / "figures" / "copies.svg"
    with pytest.raises(InputError, match=r"no figure 'copis'\. Did you mean 'copies'"):
        run.figure("copis")
    with pytest.raises(InputError, match="no figure"):
        run.figure("../figures/copies")


def test_artifacts_are_found_by_kind_and_metrics_outlive_them(folder):
    run = spikein.load_run(folder)
    assert (run.artifacts("thing")["thing"] / "deep" / "a.txt").read_text() == "x"
    with pytest.raises(InputError, match=r"no artifact of the kind 'thang'.*Did you mean 'thing'"):
        run.artifacts("thang")
    delete_tree(folder.parents[2] / "store")
    run = spikein.load_run(folder)
    assert len(run.metrics)
    assert "1 of 1 are gone from the store" in repr(run)
    with pytest.raises(InputError, match="gone from the store") as caught:
        run.artifacts("thing")
    assert f"spikein run {folder / 'experiment.yaml'}" in str(caught.value)


def test_other_folders_are_refused_with_the_existing_runs(lab, tmp_path):
    with pytest.raises(InputError, match="is not the folder of a run"):
        spikein.load_run(tmp_path)
    with pytest.raises(InputError, match=r"a folder of runs, not a run.*runs/sample"):
        spikein.load_run(lab / "runs")
    with pytest.raises(InputError, match=r"no run is called 'sampel'. Did you mean 'sample'"):
        spikein.load_run("sampel", runs=lab / "runs")
    with pytest.raises(InputError, match="There are no runs yet"):
        spikein.load_run("sample", runs=tmp_path)


def rewrite_as_version(folder: Path, version: str) -> None:
    """Make a run look like one of another version: its digests match its files."""
    record = json.loads((folder / "run.json").read_text())
    tables = [name for name in record["digests"] if (folder / name).is_file()]
    digests = file_digests(folder, tables)
    change_record(folder, version=version, digests=digests)


def test_opening_a_run_of_an_earlier_version_names_version_missing_files_and_remedy(folder):
    rewrite_as_version(folder, "0.0.7")
    assert spikein.load_run(folder).record.version == "0.0.7"
    (folder / "exposures.parquet").unlink()
    findings = read_findings(folder).drop_columns(["variant", "n_seeds"])
    pq.write_table(findings, folder / "findings.parquet")
    rewrite_as_version(folder, "0.0.7")
    with pytest.raises(InputError) as caught:
        spikein.load_run(folder)
    message = str(caught.value)
    assert "made by spikein 0.0.7" in message
    assert f"this is spikein {spikein.__version__}" in message
    assert "exposures.parquet" in message
    assert "columns of findings.parquet (n_seeds, variant)" in message
    assert f"spikein run {folder / 'experiment.yaml'}" in message
    assert str(folder / "report.html") in message


@pytest.mark.parametrize("read", [spikein.load_run, render_report, stored_truth, run_arms])
def test_opening_a_run_of_another_format_names_the_remedy(folder, read):
    change_record(folder, format=9)
    with pytest.raises(InputError, match="made by another version") as caught:
        read(folder)
    assert str(folder / "report.html") in str(caught.value)
    assert f"spikein run {folder / 'experiment.yaml'}" in str(caught.value)
    [row] = [row for row in run_rows(folder.parents[1]) if row.name == "sample/1"]
    assert "another version" in (row.problem or "")


@pytest.mark.parametrize("name", ["findings.parquet", "experiment.yaml"])
def test_bit_flip_is_reported_on_read(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(bytes(content))
    runs = folder.parents[1]
    for open_run in (spikein.load_run, lambda run: compare_runs(run, run, runs=runs)):
        with pytest.raises(InputError, match=name.replace(".", r"\.")) as caught:
            open_run(folder)
        assert str(folder) in str(caught.value)
    result = invoke("status", "sample", "--runs", runs)
    assert f"content of {name} was changed" in " ".join(result.stderr.split())


def test_figures_and_the_page_may_be_changed(folder):
    (folder / "report.html").write_text("mine")
    (folder / "figures" / "roc.svg").write_text("mine")
    spikein.load_run(folder)
    [row] = [row for row in run_rows(folder.parents[1]) if row.name == "sample/1"]
    assert row.problem is None


def test_run_of_version_0_1_is_read_with_a_note(folder):
    """Its findings and its experiment file have the former names."""
    expected = spikein.load_run(folder)
    path = folder / "findings.parquet"
    current = {new: old for old, new in FORMER_COLUMNS[path.name].items()}
    table = pq.read_table(path)
    names = [current.get(name, name) for name in table.column_names]
    pq.write_table(rename_columns(table, names), path)
    experiment = folder / "experiment.yaml"
    text = experiment.read_text()
    for key, name in FORMER_KEYS.items():
        text = text.replace(f"{name.rpartition('.')[2]}:", f"{key.rpartition('.')[2]}:")
    experiment.write_text(text)
    rewrite_as_version(folder, "0.1.0")
    run = spikein.load_run(folder)
    with pytest.warns(FormerNameWarning, match="pointwise_low, pointwise_high"):
        assert run.findings.to_pandas().equals(expected.findings.to_pandas())
    assert run.metrics.to_pandas().equals(expected.metrics.to_pandas())
    assert run.settings == expected.settings
    assert run.axes == expected.axes
