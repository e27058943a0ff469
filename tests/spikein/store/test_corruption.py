"""Every kind of artifact damaged in four ways: caught before use, and repaired by a run.

One tiny experiment with every kind is run once. Each case damages one file of its store, plans a
run, and undoes the damage; recovery, which builds, is tested for all kinds.
"""

import shutil
from pathlib import Path

import pytest

from inject.digest import digest
from inject.errors import InputError
from inject.formats.export import ExportSettings
from spikein.api.plan import plan as plan_experiment
from spikein.api.report import render_report
from spikein.executors import InProcess, RunReport
from spikein.pipeline.graph import Graph, plan
from spikein.runs.audit import audit_run
from spikein.runs.folder import artifact_rows
from spikein.runs.streams import export_run
from spikein.store.artifact import open_artifact, require_current, verified
from spikein.store.filesystem import delete_tree
from spikein.store.garbage import collect_damaged
from spikein.store.manifest import StoreError, read_manifest
from spikein.store.store import Store
from tests.spikein.samples import Notices
from tests.spikein.store.damage import DAMAGES, damage, flip, forge, own, restore
from tests.spikein.tiny import run, write_tiny

pytestmark = pytest.mark.slow

OVERRIDES = (
    "corpus.tokens=16_000",
    "train.checkpoints={fractions: [0.5]}",
    "variants={of: [{kind: whole}, {kind: lower_case}]}",
    "detect.detectors=[loss, lowercase, reference, dc_pdd, blind]",
)
EXPORT = ExportSettings(format="jsonl")
KINDS = {
    "tokenizer", "corpus", "examples", "variants", "plan", "audit", "model", "statistics",
    "frequency", "scores", "accuracy", "accuracy_gain", "trajectory", "results",
}  # fmt: skip
UNREAD = {"results", "trajectory", "accuracy_gain"}
"""Kinds from which no other artifact is made."""
LEAST_CASES = 144
"""The least number of pairs of file and damage in the test of all."""


class Log(Notices):
    """Records built steps and notices."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[str] = []

    def step_started(self, name: str, *, number: int, total: int) -> None:
        self.built.append(name)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corruption")
    write_tiny(folder)
    run(folder, *OVERRIDES)
    return folder


@pytest.fixture(scope="module")
def graph(finished: Path) -> Graph:
    return _graph(finished)


@pytest.fixture
def lab(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished store and its run, to be damaged."""
    for name in ("store", "runs"):
        shutil.copytree(finished / name, tmp_path / name, symlinks=True)
    return tmp_path


def _graph(folder: Path, *overrides: str, goal: str = "") -> Graph:
    """Return the graph of the whole experiment, or of one goal of its arm."""
    from spikein.config.load import read_experiment
    from spikein.pipeline.build_graph import build_graph

    built = build_graph(read_experiment(folder / "tiny.yaml", [*OVERRIDES, *overrides]))
    return Graph(goals=(getattr(built.nodes[0], goal),)) if goal else built.graph.complete()


def artifacts(root: Path, kind: str = "*") -> list[Path]:
    paths = (path for path in (root / "store").glob(f"{kind}/*-*") if path.is_dir())
    return sorted(path for path in paths if not path.parent.name.startswith("."))


def contents(root: Path) -> dict[str, str]:
    """Return the content of every artifact, which is whole, by kind and digest."""
    store, content_by_artifact = Store(root / "store"), {}
    for path in artifacts(root):
        artifact = open_artifact(path)
        store.verify(artifact)
        content_by_artifact[f"{path.parent.name}/{artifact.digest}"] = artifact.manifest.content
    return content_by_artifact


def repair(graph: Graph, root: Path) -> tuple[Log, RunReport]:
    log = Log()
    return log, InProcess().run(graph, Store(root / "store"), log)


def name_of(path: Path) -> str:
    return f"{path.parent.name} {read_manifest(path).label}"


def chosen_files(root: Path) -> list[tuple[Path, str]]:
    """Return the files to damage: all those of one artifact per kind, and of both models."""
    chosen = []
    for kind in sorted(KINDS):
        folders = artifacts(root, kind)
        for folder in folders if kind == "model" else folders[:1]:
            names = sorted(read_manifest(folder).files)
            chosen += [(folder, name) for name in (*names, "manifest.json")]
    return chosen


def test_the_experiment_has_every_kind(finished):
    assert {path.parent.name for path in artifacts(finished)} == KINDS
    checkpoints = list((finished / "store" / "model").glob("*/step-*/model.safetensors"))
    assert checkpoints


def test_all_damage_to_files_of_all_kinds_is_named_and_planned_for_repair(
    finished, graph, tmp_path
):
    store, cases = Store(finished / "store"), 0
    assert all(planned.state == "stored" for planned in plan(graph, store))
    for folder, name in chosen_files(finished):
        file = folder / name
        for how in DAMAGES:
            if how == "flipped" and not file.stat().st_size:
                continue
            damage(file, how, tmp_path / "aside")
            try:
                unstored = {
                    planned.step.name: planned
                    for planned in plan(graph, store)
                    if planned.state != "stored"
                }
                assert [planned.state for planned in unstored.values()] == ["damaged"], (file, how)
                [planned] = unstored.values()
                assert folder.name.endswith(planned.step.digest[:12])
                # A file of an intermediate model is named with its folder.
                assert name in str(planned.problem), (file, how)
                if name != "manifest.json":
                    with pytest.raises(StoreError):
                        verified(open_artifact(folder))
            finally:
                restore(file, tmp_path / "aside")
            cases += 1
    assert all(planned.state == "stored" for planned in plan(graph, store))
    assert cases >= LEAST_CASES


def delete_kind(root: Path, kind: str) -> None:
    for path in artifacts(root, kind):
        delete_tree(path)


def test_a_run_repairs_damaged_and_missing_artifacts_of_all_kinds_and_no_others(
    lab, graph, tmp_path
):
    before = contents(lab)
    for number, kind in enumerate(sorted(KINDS)):
        folders = artifacts(lab, kind)
        how = (*DAMAGES, "deleted")[number % 5]
        if how == "deleted":
            names = sorted(map(name_of, folders))
            delete_kind(lab, kind)
        else:
            names = [name_of(folders[0])]
            files = [path for path in folders[0].rglob("*") if path.is_file()]
            file = max(files, key=lambda path: path.stat().st_size)
            damage(file, how, tmp_path / f"aside-{kind}")
        log, _ = repair(graph, lab)
        assert sorted(log.built) == names, kind
        assert [str(file) in notice for notice in log.notices] == [True] * (how != "deleted")
    assert contents(lab) == before


def forged_file(place: Path) -> Path:
    """Change an artifact's largest file, and its manifest to match."""
    manifest = read_manifest(place)
    names = [name for name in manifest.files if name not in manifest.volatile]
    name = max(names, key=lambda file_name: manifest.files[file_name].size)
    if place.parent.name == "model":
        # All readers of an arm's model read its exposures, some of them only these.
        name = "exposures.parquet" if "plan" in manifest.inputs else name
    forge(place, name, {facet: digest([of, "x"]) for facet, of in manifest.facets.items()})
    return place / name


def test_artifacts_built_from_changed_content_are_damaged_in_all_kinds(lab, graph):
    store = Store(lab / "store")
    cases = [(kind, "*") for kind in sorted(KINDS - UNREAD - {"model"})]
    for kind, label in (*cases, ("model", "base-*"), ("model", "seed-0-*")):
        places = sorted((lab / "store" / kind).glob(label))
        whole = {place: (place, shutil.copytree(place, lab / place.name)) for place in places}
        forged = {read_manifest(forged_file(place).parent).digest for place in places}
        planned = plan(graph, store)
        below = {
            entry.step.name
            for entry in planned
            if any(source.digest in forged for source in entry.step.inputs.values())
        }
        assert below
        damaged = [entry for entry in planned if entry.state == "damaged"]
        assert {entry.step.name for entry in damaged} == below
        assert all("content that its input" in str(entry.problem) for entry in damaged)
        removed = collect_damaged(store, dry_run=True).removed
        # A corpus records its own tokens, so it is also damaged.
        itself = {kind} & {"corpus"}
        assert {entry.path.parent.name for entry in removed} == {
            *(name.split()[0] for name in below), *itself,
        }  # fmt: skip
        for place, copy in whole.values():
            delete_tree(place)
            copy.rename(place)
    assert all(entry.state == "stored" for entry in plan(graph, store))


@pytest.mark.parametrize(
    ("label", "override", "goal", "again"),
    [
        ("base-*", "copies={fixed: 1}", "trained", ["model base-4k", "model seed 0"]),
        ("seed-0-*", "detect.dtype=bfloat16", "scores", ["model seed 0"]),
    ],
)
def test_flipped_weights_are_neither_trained_on_nor_scored(
    lab, finished, label, override, goal, again
):
    """Another arm starts from the base model, another detection reads the trained one."""
    [model] = (lab / "store" / "model").glob(label)
    weights, content = model / "model.safetensors", read_manifest(model).content
    flip(weights)
    log, report = repair(_graph(finished, override, goal=goal), lab)
    assert [name for name in log.built if name.startswith("model ")] == again
    assert str(weights) in log.notices[0]
    [model] = (path for path in (lab / "store" / "model").glob(label) if path.name == model.name)
    assert read_manifest(model).content == content
    for outcome in report.outcomes:
        built = {entry.step.digest: entry.artifact.manifest for entry in report.outcomes}
        named = outcome.step.inputs.items()
        inputs = {name: built[source.digest] for name, source in named if source.digest in built}
        require_current(outcome.artifact, inputs)


def test_the_advised_repair_restores_the_run(lab, finished):
    """The issue's case: `scores.parquet` cut short, `gc --damaged`, `run`."""
    before = contents(lab)
    scores = [path for path in artifacts(lab, "scores") if path.name.startswith("seed-0-")]
    names = [name for name in map(name_of, scores) if "step" not in name]
    for path in scores:
        own(path / "scores.parquet")
        (path / "scores.parquet").write_bytes(b"PAR1")
    assert len(collect_damaged(Store(lab / "store")).removed) == len(scores)
    lacking = plan_experiment(
        finished / "tiny.yaml", overrides=list(OVERRIDES), store=lab / "store"
    )
    assert {f"{row.kind} {row.label}" for row in lacking.rows if not row.stored} >= set(names)
    shutil.copy(finished / "tiny.yaml", lab / "tiny.yaml")
    result = run(lab, *OVERRIDES)
    assert result.built == len(scores)
    assert contents(lab) == before
    metrics = (finished / "runs" / "tiny" / "latest" / "findings.parquet").read_bytes()
    assert (result.folder / "findings.parquet").read_bytes() == metrics


def test_commands_that_read_a_run_refuse_damage_and_name_the_remedy(lab):
    run_folder = lab / "runs" / "tiny" / "1"
    aside = lab / "aside"

    def check_refused(kind: str, pattern: str, command) -> None:
        read = [folder for folder in artifacts(lab, kind) if "step-" not in folder.name]
        files = [path for folder in read for path in folder.glob(pattern)]
        assert files
        for file in files:
            damage(file, "flipped", aside)
            try:
                with pytest.raises(InputError) as caught:
                    command()
                assert str(file) in str(caught.value)
                assert f"spikein run {run_folder / 'experiment.yaml'}" in str(caught.value)
                problems = [row.problem for row in artifact_rows(run_folder, read=True)]
                assert len([problem for problem in problems if problem]) == 1
            finally:
                restore(file, aside)

    for kind, pattern in (
        ("results", "findings.parquet"),
        ("scores", "scores.parquet"),
        ("audit", "audit.json"),
        ("examples", "examples.parquet"),
        ("model", "exposures.parquet"),
        ("corpus", "overlaps.json"),
    ):
        check_refused(kind, pattern, lambda: render_report(run_folder, store_root=lab / "store"))
    for kind, pattern in (("audit", "audit.json"), ("corpus", "tokens-*.bin")):
        check_refused(kind, pattern, lambda: audit_run(run_folder, rules=None))
    for kind, pattern in (("corpus", "tokens-*.bin"), ("plan", "payload.bin")):
        check_refused(kind, pattern, lambda: export_run(run_folder, lab / "out", EXPORT))
    render_report(run_folder, store_root=lab / "store")


def test_a_report_needs_only_artifacts_of_the_page_and_a_run_rebuilds_others(lab, graph):
    before = contents(lab)
    gone = ("tokenizer", "statistics", "frequency", "variants", "accuracy")
    for kind in gone:
        delete_kind(lab, kind)
    page = render_report(lab / "runs" / "tiny" / "latest", store_root=lab / "store")
    assert "Audit of the training streams" in page.read_text()
    assert not {path.parent.name for path in artifacts(lab)} & set(gone)
    log, _ = repair(graph, lab)
    assert {name.split()[0] for name in log.built} == set(gone)
    assert contents(lab) == before
