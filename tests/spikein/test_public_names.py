"""`import spikein`: light, and the same names for Python, for type checkers and for readers."""

import ast
import inspect
import json
import textwrap
from pathlib import Path

import pytest

import spikein
from tests.processes import printed

HEAVY = ("torch", "pydantic", "pyarrow", "numpy", "transformers", "rich", "typer", "yaml")
FUNCTIONS = (
    "run",
    "plan",
    "load_run",
    "score_texts",
    "auc_interval",
    "correct",
    "bundle",
    "load_bundle",
    "validate",
)
PACKAGES = ("spikein", "inject", "train", "detect", "analysis")


def names_for_type_checkers() -> dict[str, str]:
    """Return the module of each name that the block `if TYPE_CHECKING` imports."""
    tree = ast.parse(Path(spikein.__file__).read_text())
    [block] = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_import_loads_no_heavy_module():
    code = "import json, sys, spikein; dir(spikein); print(json.dumps(sorted(sys.modules)))"
    modules = {name.split(".")[0] for name in json.loads(printed(code))}
    assert not modules & set(HEAVY)
    own_modules = {name for name in json.loads(printed(code)) if name.split(".")[0] in PACKAGES}
    assert own_modules == {"spikein"}


def test_type_checkers_see_the_names_that_python_gives():
    seen = names_for_type_checkers()
    assert {*seen, "__version__"} == set(spikein.__all__)
    assert spikein.__all__ == sorted(spikein.__all__)
    assert seen == spikein._HOMES


def test_public_names_exist_and_are_documented():
    for name in set(spikein.__all__) - {"__version__"}:
        value = getattr(spikein, name)
        assert value is getattr(spikein, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name
        assert name in dir(spikein)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_are_typed_and_documented_with_an_example(name):
    function = getattr(spikein, name)
    text = inspect.getdoc(function)
    for part in ("Args:", "Raises:", "Example:", "```python"):
        assert part in text, part
    code = text.split("```python")[1].split("```")[0]
    ast.parse(textwrap.dedent(code))
    assert f"spikein.{name}(" in code
    parameters = inspect.signature(function).parameters
    assert len(parameters) <= 8
    assert all(parameter.annotation is not parameter.empty for parameter in parameters.values())
    assert inspect.signature(function).return_annotation is not inspect.Signature.empty


def test_no_name_is_a_module_of_the_package():
    """Importing a module `spikein.run` would put it in the place of the function."""
    folder = Path(spikein.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(spikein.__all__)


def test_an_unknown_name_suggests_the_closest_one():
    with pytest.raises(AttributeError, match="Did you mean 'load_run'"):
        spikein.load_runs  # noqa: B018
    with pytest.raises(ImportError):
        from spikein import nothing_like_it  # noqa: F401
