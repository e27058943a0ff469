"""`spikein compare`: differences between two runs, their numbers, the page, and refusals."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.findings import Findings
from analysis.results import analyse, write_analysis
from analysis.settings import AnalysisSettings
from inject.errors import InputError
from inject.examples.example import EXAMPLES_FILE, examples_table, read_examples
from inject.stream.exposures import SCHEMA as EXPOSURES
from inject.stream.exposures import write_exposures
from spikein.api.comparison import compare_runs, write_comparison
from spikein.config.load import resolved_yaml
from spikein.runs.comparison.page import pooled_table, summary
from spikein.runs.folder import link_artifact
from spikein.runs.publication import publish_run
from spikein.store.filesystem import delete_tree
from spikein.store.store import ArtifactRules, Store
from tests.analysis.synthetic import make_arm
from tests.command_line import invoke
from tests.pages import Page, overflow
from tests.spikein.records import change_record
from tests.spikein.samples import read, recipe, write

EVIL = "<script>evil</script>"


def exposures(arm: Any) -> pa.Table:
    """Every copy of an arm, seen whole."""
    whole = {"status": "whole", "variant": "whole", "text_start": 0, "text_stop": 9}
    rows = [
        {"example_id": example, "dataset": "d", "copy": copy, "text_length": 9, **whole}
        for example, count in arm.copies.items()
        for copy in range(count)
    ]
    table = pa.Table.from_pylist(rows, schema=EXPOSURES)
    return table.add_column(0, "seed", pa.array([0] * len(rows)))


def write_run(folder: Path, experiment: Any, arms: list[Any], seen: pa.Table) -> None:
    (folder / "experiment.yaml").write_text(resolved_yaml(experiment))
    write_analysis(folder, analyse(arms, AnalysisSettings(replicates=100)))
    table = examples_table(list(read_examples(arms[0].examples)))
    pq.write_table(table.append_column("seed", pa.array([0] * len(table))), folder / EXAMPLES_FILE)
    write_exposures(folder, seen)
    (folder / "figures").mkdir()
    (folder / "report.html").touch()


def publish(root: Path, name: str, *, lr: str, effect: float, made: dict[str, int]) -> None:
    """Publish a run of one simulated arm; `made` are its artifacts by label."""
    store = Store(root / "store")
    arm = make_arm(root / name, axes={}, seed=0, effect=effect, n=60, datasets=("news", EVIL))

    def fill(folder: Path) -> None:
        experiment = read(f"name={name}", "seeds=[0]", f"train.lr={lr}")
        write_run(folder, experiment, [arm], exposures(arm))
        for label, number in made.items():
            result = store.obtain(
                recipe(n=number), write(str(number % 10)), label=label,
                rules=ArtifactRules(volatile=("log.txt",)),
            )  # fmt: skip
            link_artifact(folder, result.artifact)

    publish_run(root / "runs", name, fill)


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("lab")
    # `same` has two recipes with one content: 12 and 2 both write "2".
    publish(root, "slow", lr="0.0003", effect=0.3, made={"shared": 1, "same": 2, "other": 3})
    publish(root, "fast", lr="0.001", effect=1.5, made={"shared": 1, "same": 12, "other": 4})
    return root


@pytest.fixture(scope="module")
def comparison(lab):
    return compare_runs("slow", "fast", runs=lab / "runs")


def test_differing_settings_and_artifacts_are_named_and_run_names_are_not_settings(comparison):
    assert [str(setting) for setting in comparison.origins.settings] == ["train.lr: 0.0003 → 0.001"]
    (kind,) = comparison.origins.kinds
    assert kind == ("thing", 1, 2, 2)
    changes = {change.name: change for change in comparison.origins.changes}
    assert changes.keys() == {"thing/same", "thing/other"}
    assert changes["thing/same"].same_content is True
    assert changes["thing/other"].same_content is False
    assert changes["thing/other"].differs == ("setting n",)
    assert not comparison.origins.notes
    for version in comparison.origins.versions:
        assert version.missing == 0
        assert version.code


def test_a_detector_of_only_one_run_is_named_as_such(comparison):
    rows = [row for row in comparison.metrics.numbers.rows if row["run"] == "first"]
    metrics = comparison.metrics._replace(numbers=Findings(rows))
    cells = str(pooled_table(comparison.names, metrics).rows)
    assert "in one run only" in cells
    assert "no shared rows" not in cells
    sentences = " ".join(summary(comparison.names, comparison.origins, metrics))
    assert "They share no detector" in sentences


@pytest.fixture(scope="module")
def swept(lab) -> Path:
    """A run that also sweeps the learning rate; its first arm has the rows of `slow`."""
    lrs = ("0.0003", "0.01")
    arms = [
        make_arm(lab / f"swept-{lr}", axes={"train.lr": lr}, seed=0, effect=1.0 + at, n=60,
                 datasets=("news", EVIL))
        for at, lr in enumerate(lrs)
    ]  # fmt: skip

    def fill(folder: Path) -> None:
        experiment = read("name=swept", "seeds=[0]", f"sweep={{train.lr: [{', '.join(lrs)}]}}")
        seen = [exposures(arm).add_column(0, "train.lr", [[lr] * sum(arm.copies.values())])
                for arm, lr in zip(arms, lrs, strict=True)]  # fmt: skip
        write_run(folder, experiment, arms, pa.concat_tables(seen))

    publish_run(lab / "runs", "swept", fill)
    return lab / "runs"


def test_an_arm_of_a_sweep_is_compared_with_the_run_of_its_value(swept):
    """One run sweeps a setting of the other: the arm with the same value is compared."""
    result = invoke("compare", "slow", "swept", "--runs", swept, code=0)
    assert "On the same rows" in result.stdout
    assert any(line.strip().startswith("Loss ") for line in result.stdout.splitlines())
    output = re.sub(r"/\d+", "", result.stdout)
    assert (
        "Arms that are not compared: 1.\n  swept: contaminated · lr 0.01 (slow has no such arm)"
        in output
    )


def test_json_has_every_number_and_no_nan(lab, comparison):
    result = invoke("compare", "slow", "fast", "--json", "--runs", lab / "runs", code=0)
    report = json.loads(result.stdout, parse_constant=pytest.fail)
    assert report["settings"] == [{"key": "train.lr", "old": "0.0003", "new": "0.001"}]
    numbers = Findings(report["metrics"])
    first, second, gap = (
        numbers.row(run=run, detector="loss", selection="tuned")
        for run in ("first", "second", "difference")
    )
    assert gap["low"] > 0, "the second run's model saw the copies better"
    assert gap["value"] == pytest.approx(second["value"] - first["value"], abs=0.1)
    rates = [row for row in report["metrics"] if row["metric"].startswith("tpr@")]
    assert {row["run"] for row in rates} == {"first", "second"}


def test_the_page_is_one_file_that_loads_nothing_and_every_text_is_escaped(comparison, tmp_path):
    path = write_comparison(tmp_path / "page.html", comparison)
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "img", "iframe"})
    assert "default-src 'none'; style-src" in html
    assert EVIL not in html
    (table,) = page.titled("AUC over all datasets")
    assert [head.text for head in table.heads][-3:] == [
        "slow/1", "fast/1", "Difference on the same rows",
    ]  # fmt: skip
    (place,) = [cell for cell in comparison.metrics.pooled_aucs() if cell["detector"] == "loss"]
    gap = comparison.metrics.numbers.get(run="difference", **place)
    differences = {row[0].text: row[-1].text for row in table.rows[1:]}
    assert differences["Loss"].startswith(f"{gap.value:+.3f}".replace("-", "−"))
    (all_numbers,) = page.titled("All numbers")
    assert len(all_numbers.rows) - 1 == len(comparison.metrics.places())
    assert EVIL in all_numbers.column("Dataset")
    assert page.titled("Settings")[0].rows[1][0].text == "train.lr"


@pytest.mark.slow
def test_no_table_of_the_page_is_cut(comparison, tmp_path):
    measured = overflow(write_comparison(tmp_path / "page.html", comparison), 390)
    assert measured["scroll"] <= measured["client"]
    assert measured["wide"] == []


def test_a_missing_store_is_noted_and_the_numbers_stay(lab, tmp_path, comparison):
    import shutil

    shutil.copytree(lab / "runs", tmp_path / "runs", symlinks=True)
    shutil.copytree(lab / "store", tmp_path / "store")
    for path in (tmp_path / "store" / "thing").iterdir():
        delete_tree(path)
    for name in ("slow", "fast"):
        record = tmp_path / "runs" / name / "1" / "run.json"
        content = json.loads(record.read_text())
        place = {**content["store"], "absolute": str(tmp_path / "store")}
        change_record(record.parent, store=place)
    without_store = compare_runs("slow", "fast", runs=tmp_path / "runs")
    assert len(without_store.origins.notes) == 2
    assert "3 of 3 artifacts are no longer in the store" in without_store.origins.notes[0]
    assert {change.same_content for change in without_store.origins.changes} == {None}
    assert str(without_store.metrics.numbers.rows) == str(comparison.metrics.numbers.rows)


def test_bad_names_are_refused(lab):
    runs = lab / "runs"
    with pytest.raises(InputError, match="no run is called 'fost'") as caught:
        compare_runs("slow", "fost", runs=runs)
    assert "fast" in str(caught.value)
    with pytest.raises(InputError, match="is compared with itself"):
        compare_runs("slow", runs / "slow", runs=runs)
    invoke("compare", "slow", "nothing", "--runs", runs, code=2)
