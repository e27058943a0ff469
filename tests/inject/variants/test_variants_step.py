"""The step that writes variants: what names it, and a local model that it finds by name."""

from pathlib import Path

import pytest

from inject.examples.example import Example, write_examples
from inject.step import Step, StepContext, find_function
from inject.variants.rendition import read_renditions
from inject.variants.settings import Variants
from inject.variants.variants_step import LocalModels, variants_step

LOCAL = LocalModels(f"{__name__}:identity", f"{__name__}:Writer")
EXAMPLES = Step(kind="examples", label="e", function="inject.digest:digest", settings={})
TOKENIZER = Step(kind="tokenizer", label="t", function="inject.digest:digest", settings={})
HERE = {"kind": "paraphrase", "by": "model", "model": "here"}
SERVED = {**HERE, "base_url": "http://localhost:1/v1"}


def identity(name: str) -> dict[str, str]:
    return {"files": f"of {name}"}


class Writer:
    """Answers with capitals, and leaves a file in its folder."""

    def __init__(self, variant, cache: Path) -> None:
        cache.mkdir()
        (cache / variant.model).touch()

    def write(self, questions, *, progress=None):
        return [one.prompt.upper() for one in questions]

    def notes(self):
        return ("answers were kept",)

    def close(self) -> None:
        pass


def step(*kinds) -> Step | None:
    variants = Variants.model_validate({"of": kinds})
    return variants_step(variants, EXAMPLES, TOKENIZER, seed=0, local=LOCAL)


def test_whole_examples_need_no_step():
    assert step({"kind": "whole"}) is None


@pytest.mark.parametrize(("kind", "here"), [(HERE, True), (SERVED, False)])
def test_a_model_counts_with_its_code_where_it_runs_on_this_machine(kind, here):
    found = step(kind)
    assert found is not None
    assert found.settings["variants"][0]["model"] == (identity("here") if here else "here")
    assert found.code == (tuple(LOCAL) if here else ())


def test_the_writer_is_found_by_its_name(tmp_path, tiny_tokenizer):
    folders = {name: tmp_path / name for name in ("out", "examples", "tokenizer")}
    for folder in folders.values():
        folder.mkdir()
    row = Example(
        example_id="a", dataset="d", source_id="1", group="a", text="the bridge", side="member"
    )
    write_examples(folders["examples"], [row])
    tiny_tokenizer.save_pretrained(folders["tokenizer"])
    found = step({**HERE, "prompt": "{text}!"})
    assert found is not None
    notes: list[str] = []
    find_function(found.function)(
        StepContext(
            out=folders["out"],
            inputs=folders,
            settings=found.settings,
            execution=found.execution,
            unfinished=tmp_path / "unfinished",
            report=lambda *_, **__: None,
            notice=notes.append,
        )
    )
    (rendition,) = read_renditions(folders["out"])
    assert tiny_tokenizer.decode(rendition.tokens) == "THE BRIDGE!"
    assert (tmp_path / "unfinished" / "here").is_file()
    assert notes == ["answers were kept"]
