"""Every kind of artifact damaged in four ways: caught before it is used, and mended by a run.

One tiny experiment with every kind is run once. Each case damages one file of its store, asks what
a run would do, and takes the damage back; recovery, which builds, is tried for every kind.
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
    "train.checkpoints={fractions: [0.5]}",
    "variants={of: [{kind: whole}, {kind: lower_case}]}",
    "detect.detectors=[loss, lowercase, reference, dc_pdd, blind]",
)
EXPORT = ExportSettings(format="jsonl")
KINDS = {
    "tokenizer", "corpus", "examples", "variants", "plan", "audit", "model", "statistics",
    "frequency", "scores", "accuracy", "accuracy_gain", "trajectory", "results",
}  # fmt: skip
READ_BY_NOBODY = {"results", "trajectory", "accuracy_gain"}
"""Kinds of which no other artifact is made."""
LEAST_CASES = 144
"""Of files and damages, in the test of all of them."""


class Log(Notices):
    """Names what was built and what was said."""

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
    found = (path for path in (root / "store").glob(f"{kind}/*-*") if path.is_dir())
    return sorted(path for path in found if not path.parent.name.startswith("."))


def contents(root: Path) -> dict[str, str]:
    """Return the content of every artifact, which is whole, by kind and digest."""
    store, found = Store(root / "store"), {}
    for path in artifacts(root):
        artifact = open_artifact(path)
        store.verify(artifact)
        found[f"{path.parent.name}/{artifact.digest}"] = artifact.manifest.content
    return found


def mended(graph: Graph, root: Path) -> tuple[Log, RunReport]:
    log = Log()
    return log, InProcess().run(graph, Store(root / "store"), log)


def name_of(path: Path) -> str:
    return f"{path.parent.name} {read_manifest(path).label}"


def chosen_files(root: Path) -> list[tuple[Path, str]]:
    """Return the files to damage: of one artifact a kind, and of both models, every file."""
    chosen = []
    for kind in sorted(KINDS):
        folders = artifacts(root, kind)
        for folder in folders if kind == "model" else folders[:1]:
            names = sorted(read_manifest(folder).files)
            chosen += [(folder, name) for name in (*names, "manifest.json")]
    return chosen


def test_the_experiment_has_every_kind(finished):
    assert {path.parent.name for path in artifacts(finished)} == KINDS
    kept = list((finished / "store" / "model").glob("*/step-*/model.safetensors"))
    assert kept


def test_any_damage_to_any_file_of_any_kind_is_planned_to_be_mended_and_named(
    finished, graph, tmp_path
):
    store, cases = Store(finished / "store"), 0
    assert all(one.state == "stored" for one in plan(graph, store))
    for folder, name in chosen_files(finished):
        file = folder / name
        for how in DAMAGES:
            if how == "flipped" and not file.stat().st_size:
                continue
            damage(file, how, tmp_path / "aside")
            try:
                found = {one.step.name: one for one in plan(graph, store) if one.state != "stored"}
                assert [one.state for one in found.values()] == ["damaged"], (file, how)
                [one] = found.values()
                assert folder.name.endswith(one.step.digest[:12])
                # Of a kept model's folder the file is named with it.
                assert name in str(one.problem), (file, how)
                if name != "manifest.json":
                    with pytest.raises(StoreError):
                        verified(open_artifact(folder))
            finally:
                restore(file, tmp_path / "aside")
            cases += 1
    assert all(one.state == "stored" for one in plan(graph, store))
    assert cases >= LEAST_CASES


def delete_kind(root: Path, kind: str) -> None:
    for path in artifacts(root, kind):
        delete_tree(path)


def test_a_run_mends_every_kind_that_is_damaged_or_gone_and_leaves_the_rest(lab, graph, tmp_path):
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
        log, _ = mended(graph, lab)
        assert sorted(log.built) == names, kind
        assert [str(file) in notice for notice in log.notices] == [True] * (how != "deleted")
    assert contents(lab) == before


def forged_file(place: Path) -> Path:
    """Change an artifact's largest file together with all that its manifest says of it."""
    manifest = read_manifest(place)
    names = [name for name in manifest.files if name not in manifest.volatile]
    name = max(names, key=lambda one: manifest.files[one].size)
    if place.parent.name == "model":
        # What an arm was fed is read by all that read it, alone or with everything else.
        name = "exposures.parquet" if "plan" in manifest.inputs else name
    forge(place, name, {facet: digest([of, "x"]) for facet, of in manifest.facets.items()})
    return place / name


def test_what_was_made_of_content_that_is_gone_is_damaged_in_every_kind(lab, graph):
    store = Store(lab / "store")
    cases = [(kind, "*") for kind in sorted(KINDS - READ_BY_NOBODY - {"model"})]
    for kind, label in (*cases, ("model", "base-*"), ("model", "seed-0-*")):
        places = sorted((lab / "store" / kind).glob(label))
        whole = {place: (place, shutil.copytree(place, lab / place.name)) for place in places}
        forged = {read_manifest(forged_file(place).parent).digest for place in places}
        planned = plan(graph, store)
        below = {
            one.step.name
            for one in planned
            if any(given.digest in forged for given in one.step.inputs.values())
        }
        assert below
        damaged = [one for one in planned if one.state == "damaged"]
        assert {one.step.name for one in damaged} == below
        assert all("content that its input" in str(one.problem) for one in damaged)
        found = collect_damaged(store, dry_run=True).removed
        # A corpus says itself which tokens it has, so it is damaged, too.
        itself = {kind} & {"corpus"}
        assert {one.path.parent.name for one in found} == {
            *(name.split()[0] for name in below), *itself,
        }  # fmt: skip
        for place, copy in whole.values():
            delete_tree(place)
            copy.rename(place)
    assert all(one.state == "stored" for one in plan(graph, store))


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
    log, report = mended(_graph(finished, override, goal=goal), lab)
    assert [name for name in log.built if name.startswith("model ")] == again
    assert str(weights) in log.notices[0]
    [model] = (path for path in (lab / "store" / "model").glob(label) if path.name == model.name)
    assert read_manifest(model).content == content
    for outcome in report.outcomes:
        built = {one.step.digest: one.artifact.manifest for one in report.outcomes}
        named = outcome.step.inputs.items()
        inputs = {name: built[one.digest] for name, one in named if one.digest in built}
        require_current(outcome.artifact, inputs)


def test_the_advised_repair_leaves_a_run_that_works(lab, finished):
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


def test_commands_that_read_a_run_refuse_damage_and_say_what_mends_it(lab):
    run_folder = lab / "runs" / "tiny" / "1"
    aside = lab / "aside"

    def refused(kind: str, pattern: str, command) -> None:
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
                assert len([one for one in problems if one]) == 1
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
        refused(kind, pattern, lambda: render_report(run_folder, store_root=lab / "store"))
    for kind, pattern in (("audit", "audit.json"), ("corpus", "tokens-*.bin")):
        refused(kind, pattern, lambda: audit_run(run_folder, rules=None))
    for kind, pattern in (("corpus", "tokens-*.bin"), ("plan", "payload.bin")):
        refused(kind, pattern, lambda: export_run(run_folder, lab / "out", EXPORT))
    render_report(run_folder, store_root=lab / "store")


def test_a_report_needs_what_the_page_reads_and_a_run_builds_the_rest_again(lab, graph):
    before = contents(lab)
    gone = ("tokenizer", "statistics", "frequency", "variants", "accuracy")
    for kind in gone:
        delete_kind(lab, kind)
    page = render_report(lab / "runs" / "tiny" / "latest", store_root=lab / "store")
    assert "Audit of the training streams" in page.read_text()
    assert not {path.parent.name for path in artifacts(lab)} & set(gone)
    log, _ = mended(graph, lab)
    assert {name.split()[0] for name in log.built} == set(gone)
    assert contents(lab) == before
