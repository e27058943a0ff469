"""Each settings key, changed by itself, changes exactly the steps that read it."""

import json
import shutil
import sys
import types
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from inject import step as step_module
from inject.builtin_files import CONFIGS, SHAPES
from inject.digest import digest
from inject.step import Step
from spikein.config.load import check_document
from spikein.config.schema import Experiment
from spikein.config.yaml_document import parse_document
from spikein.pipeline.build_graph import build_graph
from tests.conftest import make_texts
from tests.detect.taggers import NO_SPACY
from tests.spikein.pipeline.mutations import CASES, EVERYTHING, unlearning
from tests.spikein.tiny import SHAPE
from train.device import Device


def settings_of(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) is Literal:
        return []
    return [inner for part in get_args(annotation) for inner in settings_of(part)]


def takes_plain(annotation: Any) -> bool:
    """Return whether a value without its own section fits, such as the tokenizer's path."""
    if isinstance(annotation, type):
        return not issubclass(annotation, BaseModel | types.NoneType)
    if get_origin(annotation) is Annotated:
        return takes_plain(get_args(annotation)[0])
    unions = (Union, types.UnionType)
    return get_origin(annotation) in unions and any(map(takes_plain, get_args(annotation)))


def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield every key of an experiment file, those of each member of a union separately."""
    for name, field in model.model_fields.items():
        key, inner = f"{prefix}{name}", settings_of(field.annotation)
        if not inner or takes_plain(field.annotation):
            yield key
        for member in inner:
            kinds = get_args(member.model_fields["kind"].annotation) if len(inner) > 1 else [""]
            for kind in kinds:
                yield from leaves(member, f"{key}[{kind}]." if kind else f"{key}.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Files for every kind of source; only their content counts here."""
    folder = tmp_path_factory.mktemp("everything")
    (folder / "shape.yaml").write_text(SHAPE.format(architecture="llama"))
    (folder / "other.yaml").write_text(SHAPE.format(architecture="llama").replace("16", "32"))
    for number, name in enumerate(("texts", "more", "rows")):
        texts = make_texts(20, seed=number, words=30)
        (folder / f"{name}.jsonl").write_text("".join(f'{{"text": "{t}"}}\n' for t in texts))
    row = {"question": "is it", "title": "t", "answer": True, "passage": "It is."}
    (folder / "boolq.jsonl").write_text(json.dumps(row) + "\n")
    for name in ("a", "b", "tok", "local"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text('{"model_type": "none"}')
        (folder / name / "model.safetensors").write_text(name)
        (folder / name / "tokenizer.json").write_text(name)
    for name in ("tagger-a", "tagger-b"):
        (folder / name).mkdir()
        (folder / name / "config.cfg").write_text("[components]\n")
        (folder / name / "strings.json").write_text(f'["{name}"]')
    for name in ("meg.bin", "meg.idx", "other.bin", "other.idx", "one.npy", "two.npy"):
        (folder / name).write_text(name)
    for name in ("one.parquet", "two.parquet"):
        (folder / name).write_text(name)
    return folder


@pytest.fixture(autouse=True)
def hub(monkeypatch, tmp_path_factory, folder):
    """A hub with all repositories, each revision under its own commit."""
    monkeypatch.setenv("SPIKEIN_CACHE", str(folder / "cache"))

    def commit(kind: str, name: str, revision: str | None) -> str:
        return f"{name}@{revision}"

    monkeypatch.setattr("inject.hub.resolver.resolve_commit", commit)


CPU = Device("cpu")
_cached_steps: dict[tuple[tuple[str, ...], Device], list[Step]] = {}


def steps(folder: Path, *overrides: str, device: Device = CPU) -> list[Step]:
    if (overrides, device) not in _cached_steps:
        document = parse_document(EVERYTHING.format(folder=folder), name="everything.yaml")
        filled_overrides = [override.format(folder=folder) for override in overrides]
        graph = build_graph(check_document(document, filled_overrides), device=device).graph
        _cached_steps[overrides, device] = list(graph.steps)
    return _cached_steps[overrides, device]


def role(step: Step) -> str:
    """Return the role of a step: its kind, or the one of several models or sets that it makes."""
    if step.kind == "model":
        made = {"method": "unlearned", "relearn": "relearned", "rounded": "rounded"}
        for name, label in made.items():
            if name in step.settings:
                return label
        return "base" if step.settings.get("from") == "end" else "model"
    if "relearned" in step.settings:
        return "half"
    return "membership" if "membership" in step.settings else step.kind


def own(nodes: list[Step]) -> Counter[tuple[str, str]]:
    """Return role and identity of each step, without its inputs."""
    return Counter((role(step), digest({**step.recipe.identity(), "inputs": {}})) for step in nodes)


def test_the_table_names_every_key_of_an_experiment_file():
    assert sorted(CASES) == sorted(set(leaves(Experiment)))


@pytest.mark.parametrize("key", [key for key, case in CASES.items() if case.reads])
def test_a_key_changes_the_steps_that_read_it_and_no_other(folder, key):
    reads, change, setup, _ = CASES[key]
    if key == "detect.tagger":
        pytest.importorskip("spacy", reason=NO_SPACY)
    before, after = own(steps(folder, *setup)), own(steps(folder, *setup, change))
    changed = (before - after) + (after - before)
    assert {name for name, _ in changed} == set(reads.split())


def test_keys_that_no_step_reads_change_no_digest(folder):
    """Each with its reason in the table; those that need the same setup are changed at once."""
    unread: dict[tuple[str, ...], list[str]] = {}
    for key, case in CASES.items():
        assert bool(case.reads) != bool(case.reason), key
        if case.reason:
            kind = key if key.endswith(".kind") else ""
            unread.setdefault((*case.setup, kind), []).append(case.change)
    for (*setup, _), changes in unread.items():
        before, after = steps(folder, *setup), steps(folder, *setup, *changes)
        assert [step.digest for step in before] == [step.digest for step in after], changes


def changed_roles(monkeypatch, folder: Path, change: Callable[[], None], *setup: str) -> set[str]:
    """Return the steps whose own identity a change outside of the experiment file changes."""
    monkeypatch.setattr(sys.modules[__name__], "_cached_steps", {})
    before = own(steps(folder, *setup))
    change()
    _cached_steps.clear()
    after = own(steps(folder, *setup))
    return {name for name, _ in (before - after) + (after - before)}


UNLEARNT = unlearning(more=", relearn: {{steps: [1]}}")


@pytest.mark.parametrize(
    ("changed_part", "engine"),
    [("configuration", "deepspeed"), ("version", "deepspeed"), ("version", "torchrun")],
)
def test_deepspeed_configuration_and_version_count_only_if_it_trains(
    folder, monkeypatch, tmp_path, changed_part, engine
):
    def configuration() -> None:
        shutil.copytree(CONFIGS / "deepspeed", tmp_path / "deepspeed")
        file = tmp_path / "deepspeed" / "zero2.json"
        content = {**json.loads(file.read_text()), "gradient_clipping": 0.25}
        file.write_text(json.dumps(content))
        monkeypatch.setattr("train.execution.CONFIGS", tmp_path)

    def version() -> None:
        plain = step_module.distribution_version
        other = {"deepspeed": "9"}
        monkeypatch.setattr(
            step_module, "distribution_version", lambda name: other.get(name) or plain(name)
        )

    change = {"configuration": configuration, "version": version}[changed_part]
    setup = (*UNLEARNT, "twins.shadows=0", f"training_runtime.engine={engine}")
    roles = changed_roles(monkeypatch, folder, change, *setup)
    trained = {"base", "model", "unlearned", "relearned"}
    assert roles == (trained if engine == "deepspeed" else set())


@pytest.mark.parametrize(
    ("library", "expected", "by_loss"),
    [
        ("zlib", {"scores"}, set()),
        (
            "unicode",
            {"corpus", "examples", "membership", "audit", "frequency", "statistics", "scores"},
            # `blind` runs always, and counts words.
            {"corpus", "examples", "membership", "audit", "scores"},
        ),
    ],
)
def test_runtime_libraries_count_only_in_steps_that_use_them(
    folder, monkeypatch, library, expected, by_loss
):
    def change() -> None:
        monkeypatch.setitem(step_module.RUNTIME, library, lambda: "0")

    setup = ("detect.detectors=[loss, zlib, lowercase, tag_tab]", "twins.shadows=0")
    roles = changed_roles(monkeypatch, folder, change, *setup)
    assert roles == expected
    monkeypatch.undo()
    without = changed_roles(
        monkeypatch, folder, change, "detect.detectors=[loss]", "twins.shadows=0"
    )
    assert without == by_loss


def test_the_recorded_zlib_version_is_that_of_the_runtime():
    assert step_module.library_versions(["zlib", "unicode"]) == {
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "unicode": unicodedata.unidata_version,
    }


def test_a_shape_is_identified_by_its_content_not_by_name_or_path(folder):
    named, by_path, other = (
        [step.digest for step in steps(folder, f"model.shape={shape}")]
        for shape in ("llama-1m", SHAPES.find("llama-1m"), "olmo-1m")
    )
    assert named == by_path
    assert named != other


def test_all_steps_name_their_code(folder):
    all_steps = steps(folder) + steps(folder, *CASES["seeds"].setup)
    assert {role(step) for step in all_steps} == {
        *("tokenizer", "corpus", "examples", "membership", "variants", "plan", "audit", "base"),
        *("model", "frequency", "statistics", "scores", "accuracy", "results", "accuracy_gain"),
        *("trajectory", "gradients"),
    }  # fmt: skip
    assert not [step.name for step in all_steps if not step.recipe.code]
