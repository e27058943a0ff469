"""The notebooks of the documentation run from first to last cell on a run made here."""

from pathlib import Path

import pytest

from tests.spikein.tiny import run, write_tiny

REPOSITORY = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms of one data set, whose pooled AUC is a number by hand."""
    folder = tmp_path_factory.mktemp("notebooks")
    write_tiny(folder)
    sweep = "sweep={copies: [{fixed: 2}, {levels: [1, 4]}]}"
    return run(folder, sweep, "corpus.tokens=20_000", "analysis.task_accuracy=false").folder


def texts(outputs: list) -> str:
    return "\n".join(
        str(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for output in outputs
    )


CHECKED = {
    "look-at-a-run": (
        "spikein.auc_interval(",
        "print(found.value - best.value, abs(found.low - best.low) < 0.1)",
    )
}
"""Of a notebook: the call whose result is kept as `found`, and what is printed of it in the end."""


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_the_first_cell_to_the_last(path, tiny_run, tmp_path, monkeypatch):
    """In one of them a number by hand is that of the report: the same AUC, and ends that are near.

    Raises where a cell does.
    """
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("SPIKEIN_NOTEBOOK_RUN", str(tiny_run))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in code:
        cell.outputs = []
    call, check = CHECKED.get(path.stem, ("", ""))
    if call:
        [by_hand] = [cell for cell in code if call in cell.source]
        by_hand.source = by_hand.source.replace(call, f"found = {call}") + f"\n{check}"
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    assert all(cell.execution_count for cell in code)
    shown = "\n".join(texts(cell.outputs) for cell in code)
    assert "Run 'tiny'" in shown or "log_rank" in shown
    assert "Traceback" not in shown
    if call:
        difference, near = texts(by_hand.outputs).split()
        assert abs(float(difference)) < 1e-12
        assert near == "True"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_is_clean(path):
    """Whole outputs, in order, of one run; and nothing of the machine that they were made on."""
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
