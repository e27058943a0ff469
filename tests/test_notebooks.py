"""The notebooks of the documentation run from first to last cell on a run made here."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.spikein.tiny import run, write_tiny

REPOSITORY = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebooks")
    write_tiny(folder)
    return run(folder, "sweep={copies: [{fixed: 2}, {levels: [1, 4]}]}").folder


def texts(outputs: list) -> str:
    return "\n".join(
        str(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for output in outputs
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_the_first_cell_to_the_last(path, tiny_run, tmp_path, monkeypatch):
    monkeypatch.setenv("SPIKEIN_NOTEBOOK_RUN", str(tiny_run))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    # Raises where a cell does.
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    shown = "\n".join(texts(cell.outputs) for cell in code)
    assert "Run 'tiny'" in shown or "log_rank" in shown
    assert "Traceback" not in shown


@pytest.mark.slow
def test_the_number_by_hand_is_the_number_of_the_report(tiny_run, tmp_path, monkeypatch):
    """The last two numbers of the first notebook: the same AUC, and ends that are near."""
    monkeypatch.setenv("SPIKEIN_NOTEBOOK_RUN", str(tiny_run))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    notebook = nbformat.read(REPOSITORY / "docs/notebooks/look-at-a-run.ipynb", as_version=4)
    check = "print(found.value - best.value, abs(found.low - best.low) < 0.1)"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    [by_hand] = [cell for cell in code if "spikein.auc_interval(" in cell.source]
    by_hand.source = by_hand.source.replace(
        "spikein.auc_interval(", "found = spikein.auc_interval("
    )
    by_hand.source += f"\n{check}"
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    difference, near = texts(by_hand.outputs).split()
    assert abs(float(difference)) < 1e-12
    assert near == "True"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_is_clean(path):
    """Whole outputs, in order, of one run; and nothing of the machine that they were made on."""
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
