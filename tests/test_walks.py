"""The walks of the architecture page: one small experiment calls all functions they name."""

import inspect
import json
import re
import sys
from pathlib import Path
from types import CodeType

import pytest

from tests.spikein.tiny import run, write_tiny

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parent.parent
WALK = re.compile(r"^## (From [^\n]+)\n(.*?)(?=^## |\Z)", re.M | re.S)
FUNCTION = re.compile(r"`([\w/.]+)::(\w+)`")
ELSEWHERE = {
    "inject/examples/pool.py::draw_held_out",  # only if rows are held out
    "spikein/config/schema.py::UnlearningSection",
    "detect/detectors/min_k.py::MinKParameters",
}
"""Not in this run, or checked by pydantic without a visible call to our code."""


def walks() -> dict[str, list[str]]:
    """Return the functions of each walk of the page, in their order."""
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    return {
        title: [f"{file}::{name}" for file, name in FUNCTION.findall(text)]
        for title, text in WALK.findall(page)
    }


@pytest.fixture(scope="module")
def called(tmp_path_factory) -> set[str]:
    """Return the functions, and classes by their methods, that a run of all walks called."""
    folder = tmp_path_factory.mktemp("walks")
    write_tiny(folder)
    rows = [
        {"question": f"is {word} a word", "passage": f"{word} is a word of {n} letters " * 6,
         "answer": n % 2 == 0, "title": f"t{n}"}
        for n, word in enumerate(f"word{number}" for number in range(60))
    ]  # fmt: skip
    (folder / "boolq.jsonl").write_text("\n".join(map(json.dumps, rows)))
    codes: set[CodeType] = set()

    def note(frame, event, _) -> None:
        # Called millions of times.
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        run(
            folder,
            f"contaminants=[{{dataset: boolq, path: {folder}/boolq.jsonl, members: 20, "
            "nonmembers: 20}]",
            "unlearning={forget: {share: 0.5}, methods: [{method: npo, lr: 1.0e-3, epochs: 1}]}",
            "detect.detectors=['min_k:k=0.35', loss, blind]",
            "train.context=128",
            "pool.long_examples=truncate",
            "corpus.tokens=20_000",
        )
    finally:
        sys.setprofile(None)
    root = f"{REPOSITORY}/"
    return {
        f"{code.co_filename.removeprefix(root)}::{code.co_qualname.partition('.')[0]}"
        for code in codes
        # The body of a class runs when its module is imported.
        if code.co_filename.startswith(root) and code.co_flags & inspect.CO_OPTIMIZED
    }


@pytest.mark.parametrize("title", walks())
def test_documented_walk_is_executed(title, called):
    steps = [step for step in walks()[title] if step not in ELSEWHERE]
    assert len(steps) >= 5
    assert [step for step in steps if step not in called] == []
