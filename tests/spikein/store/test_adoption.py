"""Steps whose inputs read the same are not built again: adoption, facets, and avoided training."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from inject.examples.example import read_examples, write_examples
from inject.step import InputProjection, Step, StepContext, find_function
from spikein.api.plan import plan as plan_experiment
from spikein.api.run import run as run_experiment
from spikein.executors import InProcess
from spikein.pipeline.graph import Graph, plan
from spikein.progress import Progress
from spikein.store.artifact import open_artifact
from spikein.store.store import Store
from tests.spikein import step_functions
from tests.spikein.store.damage import flip
from tests.spikein.tiny import write_tiny

OTHER = {"tune": "test", "test": "tune"}
TOKENS = "corpus.tokens=16_000"


class Built(Progress):
    """Records the steps that are built, and those that are taken over."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.taken_over: list[str] = []

    def step_started(self, name: str, *, number: int, total: int) -> None:
        self.steps.append(name)

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        if same_as is not None:
            self.taken_over.append(name)

    def count(self, kind: str) -> int:
        return sum(name.split()[0] == kind for name in self.steps)


def pair(text: str, *, facet: str | None = "head") -> tuple[Step, Step]:
    """Return a step that writes a text, and one that reads its first letter."""
    facets = {"head": f"{step_functions.__name__}:first_letter"}
    source = step_functions.step(text, "write", kind="source", facets=facets)
    reads = {"x": InputProjection(facet=facet)} if facet else {}
    return source, Step(
        kind="taken",
        label=text,
        function=f"{step_functions.__name__}:write_first_letter",
        settings={},
        inputs={"x": source},
        reads=reads,
    )


def built(steps: tuple[Step, ...], root: Path) -> Built:
    log = Built()
    InProcess().run(Graph(goals=steps).complete(), Store(root), log)
    return log


def states(steps: tuple[Step, ...], root: Path) -> list[str]:
    return [row.state for row in plan(Graph(goals=steps).complete(), Store(root))]


def test_a_step_with_unchanged_reading_takes_over_the_files(tmp_path):
    built(pair("abc"), tmp_path)
    assert states(pair("axx"), tmp_path) == ["build", "maybe"]
    log = built(pair("axx"), tmp_path)
    assert log.steps == ["source axx"]
    assert log.taken_over == ["taken axx"]
    assert states(pair("axx"), tmp_path) == ["stored", "stored"]
    store = Store(tmp_path)
    artifact = store.find(pair("axx")[1].digest)
    assert artifact is not None
    assert artifact.manifest.same_as == pair("abc")[1].digest
    assert (artifact / "value").read_text() == "(a(a(a"
    store.verify(artifact)
    assert built(pair("bxx"), tmp_path).steps == ["source bxx", "taken bxx"]


def test_a_step_that_reads_everything_is_built_again(tmp_path):
    built(pair("abc", facet=None), tmp_path)
    assert built(pair("axx", facet=None), tmp_path).count("taken") == 1


def test_files_taken_over_are_protected_if_their_input_now_is(tmp_path):
    built(pair("abc"), tmp_path)
    source, taken = pair("axx")
    source = replace(source, protected=True)
    taken = replace(taken, inputs={"x": source})
    assert built((source, taken), tmp_path).taken_over == ["taken axx"]
    marks = {step.digest: Store(tmp_path).find(step.digest) for step in (pair("abc")[1], taken)}
    assert [artifact.manifest.protected for artifact in marks.values() if artifact] == [False, True]


def test_a_damaged_artifact_is_not_taken_over(tmp_path):
    built(pair("abc"), tmp_path)
    [path] = tmp_path.glob("taken/*/value")
    flip(path)
    assert built(pair("axx"), tmp_path).count("taken") == 1
    assert [value.read_text() for value in tmp_path.glob("taken/axx-*/value")] == ["(a(a(a"]


def test_a_plan_reports_equal_files(tmp_path):
    built(pair("abc"), tmp_path)
    built((pair("axx")[0],), tmp_path)
    assert states(pair("axx"), tmp_path) == ["stored", "same"]


def test_files_taken_over_are_repaired_on_both_sides(tmp_path):
    built(pair("abc"), tmp_path)
    built(pair("axx"), tmp_path)
    for path in tmp_path.glob("taken/*/value"):
        path.chmod(0o644)
        path.write_text("zzz")
    log = built((*pair("abc"), *pair("axx")), tmp_path)
    assert log.count("taken") == 1
    assert {path.read_text() for path in tmp_path.glob("taken/*/value")} == {"(a(a(a"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adopting")
    write_tiny(folder)
    experiment(folder)
    return folder


def experiment(folder: Path, *overrides: str) -> Built:
    log = Built()
    run_experiment(
        folder / "tiny.yaml",
        overrides=(TOKENS, *overrides),
        store=folder / "store",
        runs=folder / "runs",
        progress=log,
    )
    return log


@pytest.mark.slow
def test_tune_share_trains_no_model_and_scores_nothing_again(lab):
    planned = plan_experiment(
        lab / "tiny.yaml", overrides=[TOKENS, "detect.tune_share=0.5"], store=lab / "store"
    )
    by_kind = {row.kind: row.state for row in planned.rows}
    assert by_kind["corpus"] == "in the store"
    assert by_kind["examples"] == "to do"
    assert by_kind["model"] == "to do, unless its inputs stay equal"
    log = experiment(lab, "detect.tune_share=0.5", "name=tuned")
    kinds = {name.split()[0] for name in log.steps}
    assert kinds == {"examples", "results", "accuracy_gain"}


@pytest.mark.slow
def test_a_file_of_another_name_and_an_audit_that_drops_nothing_new_train_no_model(lab):
    (lab / "texts.jsonl").rename(lab / "other.jsonl")
    sources = f'corpus.sources=[{{kind: files, path: "{lab}/other.jsonl"}}]'
    try:
        log = experiment(lab, sources, "audit.ngram=40", "audit.near_duplicate=null", "name=other")
    finally:
        (lab / "other.jsonl").rename(lab / "texts.jsonl")
    assert log.count("corpus") == 1
    assert log.count("model") == log.count("statistics") == log.count("plan") == 0


@pytest.mark.slow
def test_another_dataset_that_drops_nothing_trains_the_arm_and_not_the_base(lab):
    rows = [{"text": f"zq{number}x " * 12, "id": str(number)} for number in range(24)]
    (lab / "more.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    more = "{dataset: rows, name: more, path: " + str(lab / "more.jsonl") + ", fields: "
    more += '{id: id, question: text}, template: "{question}", members: 6, nonmembers: 6}'
    log = experiment(
        lab,
        "contaminants=[{dataset: fictional, members: 24, nonmembers: 24}, " + more + "]",
        "name=more",
    )
    assert log.count("corpus") == 1
    assert [name for name in log.steps if name.startswith("model ")] == ["model seed 0"]


@pytest.mark.slow
def test_steps_that_declare_not_to_read_the_split_do_not_read_it(lab, tmp_path):
    """Each such step of the experiment is built again from examples of the other split."""
    from dataclasses import replace

    from spikein.config.load import read_experiment
    from spikein.pipeline.build_graph import build_graph

    steps = build_graph(read_experiment(lab / "tiny.yaml", [TOKENS])).graph.steps
    store = Store(lab / "store")
    kinds = set()
    for number, step in enumerate(steps):
        facets = {
            name: reading.facet for name, reading in step.reads.items() if name in step.inputs
        }
        split = [name for name, facet in facets.items() if facet in ("unsplit", "texts", "audited")]
        if not split or step.kind == "model":
            continue
        inputs = {}
        for name, source in step.inputs.items():
            artifact = store.find(source.digest, kind=source.kind)
            assert artifact is not None
            inputs[name] = artifact.path
            if name in split:
                inputs[name] = folder = tmp_path / f"{number}-{name}"
                folder.mkdir()
                rows = read_examples(artifact.path)
                write_examples(folder, [replace(row, split=OTHER[row.split]) for row in rows])
                for facet, function in source.facets.items():
                    assert find_function(function)(folder) == artifact.manifest.facets[facet]
        out = tmp_path / f"out-{number}"
        out.mkdir()
        settings, execution = step.json_values()
        find_function(step.function)(
            StepContext(
                out=out,
                inputs=inputs,
                settings=settings,
                execution=execution,
                unfinished=tmp_path / f"unfinished-{number}",
                report=lambda *_, **__: None,
            )
        )
        stored = store.find(step.digest, kind=step.kind)
        assert stored is not None
        for name in set(stored.manifest.files) - set(step.volatile):
            assert (out / name).read_bytes() == (stored / name).read_bytes(), (step.name, name)
        kinds.add(step.kind)
    assert kinds == {"plan", "audit", "statistics", "scores", "accuracy"}


@pytest.mark.slow
def test_facets_reflect_all_changes_except_the_omitted_one(lab, tmp_path):
    from dataclasses import replace

    from inject.corpus.corpus import OF_CORPUS
    from inject.examples.example import OF_EXAMPLES

    folder, *_ = sorted((lab / "store" / "examples").glob("fictional-seed0-*"))
    first, *others = read_examples(folder)
    before = {name: find_function(take)(folder) for name, take in OF_EXAMPLES.items()}
    changed = {
        "text": replace(first, text=first.text + "."),
        "side": replace(first, side="nonmember" if first.side == "member" else "member"),
        "group": replace(first, group="other"),
        "split": replace(first, split=OTHER[first.split]),
    }
    log = {}
    for name, row in changed.items():
        write_examples(tmp_path, [row, *others])
        log[name] = {
            facet
            for facet, take in OF_EXAMPLES.items()
            if find_function(take)(tmp_path) != before[facet]
        }
    assert log == {
        "text": {"unsplit", "texts", "audited"},
        "side": {"unsplit", "audited"},
        "group": {"unsplit", "audited"},
        "split": set(),
    }
    corpus, *_ = sorted((lab / "store" / "corpus").iterdir())
    assert (
        find_function(OF_CORPUS["tokens"])(corpus)
        == open_artifact(corpus).manifest.facets["tokens"]
    )
