"""The notebooks of the documentation run from first to last cell.

The one that judges a detector makes a small run that takes seconds; the other reads that run.
"""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from spikein.api.experiment import read
from tests.spikein.tiny import write_tiny

REPOSITORY = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))
RUN = '"quickstart", overrides=small'
"""The experiment of the first notebook."""
TINY = {
    "sweep": {"copies": [{"fixed": 2}, {"levels": [1, 4]}]},
    "corpus.tokens": 20_000,
    "analysis.task_accuracy": False,
}
"""Two arms of one dataset, whose pooled AUC can be computed by hand."""


def read_notebook(name: str) -> Any:
    """Return a notebook without its outputs."""
    import nbformat

    notebook = nbformat.read(REPOSITORY / "docs" / "notebooks" / f"{name}.ipynb", as_version=4)
    for cell in code(notebook):
        cell.outputs = []
    return notebook


def code(notebook: Any) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def replace(notebook: Any, old: str, new: str, *, after: str = "") -> Any:
    """Replace text that occurs in a single cell, add lines after it, and return the cell."""
    (cell,) = [cell for cell in code(notebook) if old in cell.source]
    cell.source = cell.source.replace(old, new) + after
    return cell


def execute(notebook: Any, folder: Path) -> str:
    """Run all cells in a folder and return their output. A cell's error is raised."""
    from nbclient import NotebookClient

    place = {"metadata": {"path": folder}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
    assert all(cell.execution_count for cell in code(notebook))
    output = "\n".join(texts(cell.outputs) for cell in code(notebook))
    assert "Traceback" not in output
    return output


def texts(outputs: list) -> str:
    return "\n".join(
        str(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for output in outputs
    )


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The output of the notebook that judges a detector, and the folder of its run."""
    folder = tmp_path_factory.mktemp("notebooks")
    notebook = read_notebook("judge-a-detector")
    replace(notebook, RUN, f"{str(write_tiny(folder))!r}, overrides={TINY!r}")
    return execute(notebook, folder), folder / "runs" / "tiny"


@pytest.mark.slow
def test_a_detector_is_judged_from_the_first_cell_to_the_last(judged):
    output, run = judged
    assert "my_detector.log_rank" in output
    assert "<IPython.core.display.Image object>" in output
    assert (run / "latest" / "report.html").is_file()


@pytest.mark.slow
def test_number_computed_by_hand_matches_the_report(judged, tmp_path, monkeypatch):
    """The same AUC, and similar interval bounds."""
    monkeypatch.setenv("SPIKEIN_NOTEBOOK_RUN", str(judged[1]))
    notebook = read_notebook("look-at-a-run")
    call = "spikein.auc_interval("
    check = "\nprint(found.value - best.value, abs(found.low - best.low) < 0.1)"
    by_hand = replace(notebook, call, f"found = {call}", after=check)
    assert "Run 'tiny'" in execute(notebook, tmp_path)
    difference, near = texts(by_hand.outputs).split()
    assert abs(float(difference)) < 1e-12
    assert near == "True"


def test_notebook_runs_a_smaller_quickstart():
    source = next(
        cell.source for cell in code(read_notebook("judge-a-detector")) if RUN in cell.source
    )
    small = ast.literal_eval(re.search(r"small = (\{.*?\n    \})", source, re.DOTALL)[1])
    whole, reduced = read("quickstart"), read("quickstart", small)
    assert len(reduced.arms) < len(whole.arms)
    assert reduced.experiment.base.tokens < whole.experiment.base.tokens


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_notebooks_have_no_output(path):
    """Complete, ordered outputs of one run, without traces of the machine that made them."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        assert not any(output.output_type == "error" for output in cell.outputs)
        assert not any("stderr" in str(output.get("name")) for output in cell.outputs)
        for place in ("/tmp", "/work", "/home", "/root", "/Users"):
            assert place not in texts(cell.outputs)
            assert place not in str(
                [
                    output.get("data", {})
                    for output in cell.outputs
                    if "image/png" not in output.get("data", {})
                ]
            )
