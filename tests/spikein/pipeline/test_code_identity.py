"""The code that decides a number is in its digest: changed formulas are never passed over."""

import ast
import importlib
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from detect.registry import detector_names, get_detector
from inject.examples.datasets.registry import built_in_names, find_dataset
from inject.source_digest import PACKAGES, UNDECIDING, Sources, read_source
from spikein.executors import graph_run
from spikein.pipeline.graph import Step
from tests.spikein.pipeline.test_identity import folder, hub, role, steps
from tests.spikein.tiny import run, write_tiny

__all__ = ["folder", "hub"]
REPOSITORY = Path(__file__).resolve().parents[3]


def edited(module: str, name: str) -> Sources:
    """Return our sources with one statement more in one function: `name`, or `Class.name`."""

    def read(asked: str) -> bytes | None:
        text = read_source(asked)
        if asked != module or text is None:
            return text
        tree = ast.parse(text)
        found: ast.AST = tree
        for part in name.split("."):
            [found] = [
                one
                for one in getattr(found, "body", [])
                if isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name == part
            ]
        assert isinstance(found, ast.FunctionDef)
        found.body.append(ast.parse("_edited = 1").body[0])
        return ast.unparse(tree).encode()

    return Sources(read=read)


def changed(found: list[Step], after: Sources) -> set[str]:
    """Return the steps whose own code is another one."""
    before = {step: step.recipe.code for step in found}
    return {role(step) for step in found if after.digest(step.code) != before[step]}


@pytest.mark.parametrize(
    ("module", "function", "expected"),
    [
        ("detect.detectors.surp", "surp_scores", "scores"),
        ("detect.detectors.blind", "_score", "scores"),
        ("detect.engine.vocabulary_statistics", "chunk_sums", "statistics"),
        ("detect.token_frequency", "count_ids", "frequency"),
        ("inject.examples.datasets.boolq", "boolq_rows", "examples corpus"),
        ("inject.examples.datasets.fiction.kinds", "_town", "examples corpus"),
        ("inject.examples.template", "Template.render", "examples corpus accuracy"),
        ("inject.corpus.background.files", "FilesSource.documents", "tokenizer corpus"),
        ("inject.examples.membership", "split_members", "examples"),
        ("inject.plan.placement", "place_copies", "plan"),
        ("inject.stream.audit", "audit", "audit"),
        ("inject.examples.twin_membership", "with_twin_membership", "membership"),
        ("train.loop.training_loop", "train", "base model"),
        ("detect.task_accuracy.scoring", "task_accuracy", "accuracy"),
        ("analysis.intervals.clustered", "cluster", "results trajectory"),
        ("analysis.factors.joint", "join_seeds", "results accuracy_gain"),
        ("analysis.trajectory.fading", "fading_rows", "trajectory"),
        # Reading a source that nobody asked for decides nothing.
        ("inject.examples.datasets.imdb", "imdb_rows", ""),
        ("inject.corpus.background.docstrings", "DocstringsSource.documents", ""),
        ("inject.formats.importing", "import_corpus", ""),
        ("spikein.runs.publish", "fill_run", ""),
    ],
)
def test_an_edit_changes_the_steps_that_it_decides_and_no_other(folder, module, function, expected):
    assert changed(steps(folder), edited(module, function)) == set(expected.split())


def test_comments_and_docstrings_change_no_step(folder):
    def read(name: str) -> bytes | None:
        text = read_source(name)
        if text is None:
            return None
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
                continue
            # The `...` of a protocol is a constant, too, and no text.
            if isinstance(node.value.value, str):
                node.value.value = "Said in other words."
        # Unparsing drops every comment and lays the code out anew.
        return ast.unparse(tree).encode()

    assert changed(steps(folder), Sources(read=read)) == set()


def test_a_detector_that_is_not_asked_for_decides_nothing(folder):
    found = steps(folder, "detect.detectors=[loss, lira]")
    assert changed(found, edited("detect.detectors.surp", "surp_scores")) == set()
    assert changed(found, edited("detect.detectors.lira", "_score")) == {"scores"}


@pytest.mark.parametrize("name", detector_names())
def test_a_detectors_code_begins_where_the_registry_finds_it(name):
    (begin,) = get_detector(name).code
    module, _, constant = begin.partition(":")
    assert getattr(importlib.import_module(module), constant) is get_detector(name).detector


@pytest.mark.parametrize("name", built_in_names())
def test_a_datasets_code_begins_where_the_registry_finds_it(name):
    (place,) = find_dataset(name).code
    module, _, constant = place.partition(":")
    assert getattr(importlib.import_module(module), constant) is find_dataset(name).dataset


def test_modules_that_decide_nothing_exist_and_say_why():
    for name, reason in UNDECIDING.items():
        assert read_source(name) is not None, name
        assert reason


def test_the_digest_of_a_run_follows_the_source_of_a_detector_on_disk(tmp_path):
    """As a user would: edit a detector, ask what the same experiment is now."""
    for package in PACKAGES:
        # With the data files that count as code.
        shutil.copytree(
            REPOSITORY / package,
            tmp_path / "clone" / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    experiment = write_tiny(tmp_path)
    text = experiment.read_text()
    experiment.write_text(text.replace("[loss,", "[loss, surp,"))

    def digests() -> dict[str, str]:
        program = (
            "import sys; from pathlib import Path; "
            "from spikein.config.load import read_experiment; "
            "from spikein.pipeline.build_graph import build_graph; "
            "[print(s.kind, s.digest) for s in "
            f"build_graph(read_experiment(Path({str(experiment)!r}))).graph.steps]"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "clone")},
            capture_output=True,
            text=True,
            check=True,
        )
        return {line.split()[1]: line.split()[0] for line in done.stdout.splitlines()}

    before = digests()
    formula = tmp_path / "clone" / "detect" / "detectors" / "surp.py"
    formula.write_text(formula.read_text().replace("<", ">"))
    after = digests()
    new = [kind for digest, kind in after.items() if digest not in before]
    assert set(new) == {"scores", "results", "figures"}


def test_whatever_runs_in_a_step_is_in_its_digest(tmp_path, monkeypatch):
    """The oracle: what Python calls while a step is built, against what was found in the source."""
    built = graph_run.build_step
    reader = Sources(read=read_source)
    unseen: set[tuple[str, str, str]] = set()

    def traced(step: Step, *arguments, **more):
        called: set[tuple[str, str]] = set()

        def note(frame, event, _):
            module = frame.f_globals.get("__name__", "")
            ours = module.partition(".")[0] in PACKAGES
            # The body of a class runs where its module is first imported, and decides nothing.
            ours = ours and bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
            # What a library generates for one of our classes has no file.
            if event == "call" and ours and not frame.f_code.co_filename.startswith("<"):
                # What is called from where nothing is decided decides nothing.
                caller, depth = frame.f_back, 0
                while caller is not None and depth < 4:
                    if caller.f_globals.get("__name__") in UNDECIDING:
                        return
                    caller, depth = caller.f_back, depth + 1
                name = frame.f_code.co_qualname.split(".")[0]
                if module not in UNDECIDING and "<" not in name:
                    called.add((module, name))

        build = step.build

        def watched(context):
            sys.setprofile(note)
            try:
                build(context)
            finally:
                sys.setprofile(None)

        object.__setattr__(step, "build", watched)
        try:
            return built(step, *arguments, **more)
        finally:
            object.__setattr__(step, "build", build)
            reached = {(module, name.split(".")[0]) for module, name in reader.reached(step.code)}
            unseen.update((step.kind, *one) for one in called - reached)

    monkeypatch.setattr(graph_run, "build_step", traced)
    write_tiny(tmp_path)
    run(tmp_path, "corpus.tokens=20000", "train.checkpoints={steps: [2]}")
    # Progress is shown, and tells the step nothing.
    shown = {
        *("spikein.executors.step_build", "spikein.executors.graph_run"),
        *("spikein.executors.live_status", "spikein.progress"),
    }
    assert {one for one in unseen if one[1] not in shown} == set()
