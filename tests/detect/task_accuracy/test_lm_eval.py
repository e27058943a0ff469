"""lm-evaluation-harness gives our answers to our prompts, from a model folder of the store."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from detect.engine.target import load_target
from detect.task_accuracy.prompts import ask
from detect.task_accuracy.scoring import answer_scores
from inject.examples.contaminant import Contaminant
from inject.examples.load import load_examples
from tests.spikein import tiny

PYTHON = os.environ.get("SPIKEIN_LM_EVAL") or (sys.executable if find_spec("lm_eval") else None)
ROWS = 60
SOURCES = {
    "boolq": "bench/boolq/dev.jsonl.gz",
    "commonsenseqa": "bench/commonsenseqa/dev_rand_split.jsonl.gz",
    "truthfulqa": "bench/truthfulqa/TruthfulQA.csv",
}
CONTEXT = 1024
TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: prompt
doc_to_choice: answers
doc_to_target: gold
target_delimiter: ""
metric_list: [{{metric: acc}}]
"""


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(
    PYTHON is None,
    reason="LM-EVALUATION-HARNESS IS NOT TESTED: pip install lm-eval, "
    "or name a Python that has it in SPIKEIN_LM_EVAL",
)
def test_probabilities_match_lm_eval(tmp_path, data_folder):
    model = os.environ.get("SPIKEIN_LM_EVAL_MODEL") or str(trained_model(tmp_path))
    target = load_target(model, device="cpu", dtype="float32")
    questions = {name: first_questions(data_folder / path, name) for name, path in SOURCES.items()}
    answered = harness(tmp_path, model, questions)
    for name, own in questions.items():
        pairs = [(question.prompt, answer) for question in own for answer in question.answers]
        scores = answer_scores(target, pairs)
        # Figures only, so that no failure shows a protected text.
        rows = [(q.gold, [scores[q.prompt, answer] for answer in q.answers]) for q in own]
        assert [len(rows), len(answered[name])] == [ROWS, ROWS]
        for (gold, expected), (correct, values) in zip(rows, answered[name], strict=True):
            assert values == pytest.approx(expected, rel=0, abs=1e-3)
            assert correct == (expected.index(max(expected)) == gold)


def trained_model(folder: Path) -> Path:
    """The folder of a model that the pipeline trained, with room for the rows."""
    tiny.write_tiny(folder)
    shape = folder / "shape.yaml"
    shape.write_text(shape.read_text().replace("context: 128", f"context: {CONTEXT}"))
    (node,) = tiny.graph_of(folder).nodes
    [artifact] = tiny.build(folder, node.trained)
    return artifact.path


def first_questions(path: Path, dataset: str):
    """The first questions that fit into the context; a token has at least one byte."""
    source = Contaminant(dataset=dataset, path=str(path), members=10, nonmembers=10)
    rows = load_examples(source, seed=0).examples
    questions = (ask(dataset, row.fields) for row in rows)
    short = (
        question
        for question in questions
        if max(len(f"{question.prompt}{answer}".encode()) for answer in question.answers) < CONTEXT
    )
    return [question for question, _ in zip(short, range(ROWS), strict=False)]


def harness(folder: Path, model: str, questions) -> dict[str, list[tuple[float, list[float]]]]:
    """For each row: whether the harness chose the correct answer, and the answers' scores."""
    tasks = folder / "tasks"
    tasks.mkdir()
    for name, rows in questions.items():
        file = tasks / f"{name}.jsonl"
        fields = ({"prompt": r.prompt, "answers": r.answers, "gold": r.gold} for r in rows)
        file.write_text("".join(json.dumps(row) + "\n" for row in fields))
        (tasks / f"{name}.yaml").write_text(TASK.format(name=f"own_{name}", file=file))
    names = ",".join(f"own_{name}" for name in questions)
    command = [
        *(PYTHON, "-m", "lm_eval", "--model", "hf", "--tasks", names, "--include_path", tasks),
        *("--model_args", f"pretrained={model},dtype=float32", "--device", "cpu"),
        *("--batch_size", "8", "--log_samples", "--output_path", folder / "out"),
    ]
    cache = {"HF_HOME": str(folder / "hub")}
    done = subprocess.run(
        [str(part) for part in command], env=os.environ | cache, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results = {}
    for name in questions:
        [file] = (folder / "out").rglob(f"samples_own_{name}_*.jsonl")
        rows = sorted(map(json.loads, file.read_text().splitlines()), key=lambda r: r["doc_id"])
        results[name] = [(r["acc"], [float(score) for ((score, _),) in r["resps"]]) for r in rows]
    return results
