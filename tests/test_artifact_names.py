"""Each file of an artifact has its name in one place: in the module that writes and reads it."""

import ast
import re
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("inject", "train", "detect", "analysis", "spikein")
FILE_NAME = re.compile(r"[\w-]+\.(parquet|arrow|json|npy|bin)")

OF_OTHERS = {
    "config.json": "of Hugging Face models",
    "adapter_config.json": "of peft",
    "state.json": "of the library datasets",
    "validation-00000-of-00001.parquet": "of datasets on the hub",
}
"""Names set by other libraries that several of our modules look for."""
TWICE = {
    "manifest.json": "the store's; `inject` may not import it, and excludes it from models",
    "scores.parquet": "also the default of --out of `spikein detect`, read without any import",
}


FORMER_NAMES = REPOSITORY / "inject" / "reading" / "former_names.py"
"""Lists the files whose columns had other names in the previous version."""


def names_in(path: Path) -> list[str]:
    return [
        node.value.rpartition("/")[2]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and FILE_NAME.fullmatch(node.value.rpartition("/")[2])
    ]


def test_each_file_of_an_artifact_is_named_once():
    places_by_name = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            if path == FORMER_NAMES:
                continue
            for name in names_in(path):
                places_by_name[name].append(str(path.relative_to(REPOSITORY)))
    expected = {"examples.parquet", "exposures.parquet", "log.parquet", "findings.parquet"}
    assert expected <= set(places_by_name)
    twice = {
        name: places
        for name, places in places_by_name.items()
        if name not in OF_OTHERS and len(places) > 1 + (name in TWICE)
    }
    assert not twice
