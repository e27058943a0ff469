"""The code that computes a number is in its digest: a changed formula is never missed."""

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from detect.registry import detector_names, get_detector
from inject import source_digest
from inject.examples.datasets.registry import built_in_names, find_dataset
from inject.source_digest import PACKAGES, Sources, read_source
from inject.step import Step
from spikein.executors import graph_run
from tests.spikein.pipeline.test_identity import folder, hub, role, steps
from tests.spikein.tiny import run, write_tiny

__all__ = ["folder", "hub"]

PROGRESS = {
    *("spikein.executors.graph_run", "spikein.executors.live_status", "spikein.progress"),
}
"""Modules that forward and show the progress of a step; they do not affect it."""


@pytest.fixture(scope="module", autouse=True)
def parsed_once() -> Iterator[None]:
    """Parse an unedited module once for all sources."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_digest, "parse_module", cache(source_digest.parse_module))
        yield


def edited(module: str) -> Sources:
    """Return our sources with an added statement in one module."""

    def read(name: str) -> bytes | None:
        text = read_source(name)
        assert text is not None or name != module
        return text + b"\n_edited = 1\n" if text is not None and name == module else text

    return Sources(read=read)


def changed(all_steps: list[Step], after: Sources) -> set[str]:
    """Return the steps whose own code has changed."""
    return {role(step) for step in all_steps if after.digest(step.roots) != step.recipe.code}


ALL = (
    "tokenizer corpus examples plan audit base model membership statistics frequency gradients "
    "scores results accuracy accuracy_gain trajectory"
)
ANALYSES = "results trajectory accuracy_gain"


DECIDES = {
    "inject.plan.placement": "plan",
    "inject.plan.make_plan": "plan",
    "inject.plan.audit_step": "audit",
    "inject.overlap.index": "audit corpus",
    "inject.digest": ALL,
    "inject.step": ALL,
    "inject.examples.datasets.boolq": "examples corpus",
    "inject.examples.datasets.fiction": "examples corpus",
    "inject.examples.template": "examples corpus accuracy",
    "inject.examples.membership": "examples",
    "inject.examples.twin_membership": "membership",
    "inject.corpus.background.files": "tokenizer corpus",
    "inject.corpus.build": "corpus",
    "train.loop.training_loop": "base model",
    "detect.engine.forward_pass": "statistics",
    "detect.detectors.surp": "scores",
    "detect.scoring": "scores",
    "detect.evidence.token_counts": "frequency",
    "detect.task_accuracy.scoring": "accuracy",
    "analysis.intervals.clustered": ANALYSES,
    "analysis.intervals.joint": ANALYSES,
    "analysis.trajectory.fading": "trajectory",
    # The readers of unused datasets affect no step.
    "inject.examples.datasets.imdb": "",
    "inject.formats.importing": "",
    "train.launch": "",
    "analysis.page.content": "",
    "spikein.config.schema": "",
    "spikein.pipeline.build_graph": "",
    "spikein.runs.publish": "",
    "spikein.executors.graph_run": "",
    "spikein.store.store": "",
}
"""The steps whose code a module belongs to."""


def test_an_edit_changes_exactly_the_affected_steps(folder):
    all_steps, sources = steps(folder), Sources(read=read_source)
    reached = {step.digest: sources.reached(step.roots) for step in all_steps}
    for module, expected in DECIDES.items():
        assert read_source(module) is not None, module
        deciding = {role(step) for step in all_steps if module in reached[step.digest]}
        assert deciding == {*expected.split()}, module
    # Reached modules are hashed.
    for module in ("detect.scoring", "inject.overlap.index", "train.launch"):
        assert changed(all_steps, edited(module)) == {*DECIDES[module].split()}


def test_comments_and_docstrings_change_no_step(folder):
    def read(name: str) -> bytes | None:
        text = read_source(name)
        if text is None:
            return None
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
                continue
            # The `...` of a protocol is also a constant, but not a text.
            if isinstance(node.value.value, str):
                node.value.value = "Said in other words."
        # Unparsing drops all comments and changes the layout.
        return ast.unparse(tree).encode()

    assert changed(steps(folder), Sources(read=read)) == set()


def test_an_unused_detector_affects_no_step(folder):
    all_steps = steps(folder, "detect.detectors=[loss, lira]")
    assert changed(all_steps, edited("detect.detectors.surp")) == set()
    assert changed(all_steps, edited("detect.detectors.lira")) == {"scores"}


def test_the_code_roots_of_detectors_and_datasets_are_their_registered_modules():
    for name in detector_names():
        (module,) = get_detector(name).code
        assert importlib.import_module(module).DETECTOR is get_detector(name).detector
    for name in built_in_names():
        (module,) = find_dataset(name).code
        assert importlib.import_module(module).DATASET is find_dataset(name).value


def test_all_code_that_runs_in_a_step_is_in_its_digest(tmp_path, monkeypatch):
    """The oracle: modules called while a step is built, against those found in the source."""
    built = graph_run.build_step
    reader = Sources(read=read_source)
    unseen: set[tuple[str, str]] = set()

    def traced(step: Step, *arguments, **more):
        called: set[str] = set()
        seen_files: set[str] = set()

        def note(frame, event, _):
            # A trace function that returns nothing gets only calls.
            file = frame.f_code.co_filename
            if file in seen_files:
                return
            module = frame.f_globals.get("__name__", "")
            is_ours = module.partition(".")[0] in PACKAGES
            # The body of a module or a class runs at its first import, and affects nothing.
            if is_ours and not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                return
            # Code that a library generates for one of our classes has no file.
            if not file.startswith("<"):
                seen_files.add(file)
                called.update([module] if is_ours else [])

        def watched(function):
            def call(context):
                sys.settrace(note)
                try:
                    function(context)
                finally:
                    sys.settrace(None)

            return call

        with pytest.MonkeyPatch.context() as patch:
            find = graph_run.find_function
            patch.setattr(
                graph_run,
                "find_function",
                lambda name: watched(find(name)) if name == step.function else find(name),
            )
            done = built(step, *arguments, **more)
        reached = reader.reached(step.roots)
        unseen.update((step.kind, module) for module in called - reached - PROGRESS)
        return done

    monkeypatch.setattr(graph_run, "build_step", traced)
    write_tiny(tmp_path)
    run(tmp_path, "corpus.tokens=20000", "train.checkpoints={steps: [2]}")
    assert unseen == set()
