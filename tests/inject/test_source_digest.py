"""The code that belongs to a step, tested with small packages made for it."""

import textwrap

import pytest

from inject.errors import InputError
from inject.examples.datasets.registry import built_in_names, find_dataset
from inject.source_digest import (
    Sources,
    module_of,
    read_data_file,
    read_source,
    require_unedited,
    source_digest,
)

MODULES = {
    "detect": "",
    "detect.engine": """
        '''Docstring.'''
        import math
        from typing import TYPE_CHECKING
        from inject.numbers import HALF, twice
        import inject.words

        if TYPE_CHECKING:
            from train.kinds import Kind

        SCALE = 3

        class Engine:
            speed: float
            '''In tokens a second.'''

        def score(text: str, kind: "Kind") -> float:
            '''Docstring.'''
            if not text:
                raise ValueError(f"no text: {text}")
            if len(text) > 9:
                from inject.folder.late import later
                return later(inject.words.count(text)) * SCALE * twice(HALF)
            return 1.0

        def unrelated() -> float:
            return math.pi
    """,
    "detect.other": "import detect.engine\n",
    "inject": "",
    "inject.numbers": "from inject.sums import twice\nHALF = 0.5\nTHIRD = 1 / 3\n",
    "inject.sums": "def twice(x):\n    return 2 * x\n",
    "inject.words": "def count(text):\n    return len(text)\ndef spell(text):\n    return text\n",
    "inject.folder": "ORDER = 1\n",
    "inject.folder.late": "def later(x):\n    return x\nregister(later)\n",
    "inject.folder.alone": "",
    "train": "",
    "train.kinds": "class Kind:\n    weight = 1\n",
    "spikein": """
        import typing

        if typing.TYPE_CHECKING:
            from inject.sums import twice
        if not typing.TYPE_CHECKING:
            from inject.numbers import HALF

            def __getattr__(name):
                return find(name)
    """,
}
ROOT = ("detect.engine:score",)
EXPECTED = {
    *("detect", "detect.engine", "inject", "inject.numbers", "inject.sums", "inject.words"),
    *("inject.folder", "inject.folder.late"),
}


def sources(**changes: tuple[str, str]) -> Sources:
    modules = {name: textwrap.dedent(text) for name, text in MODULES.items()}
    for name, (old, new) in changes.items():
        name = name.replace("__", ".")
        assert old in modules[name]
        modules[name] = modules[name].replace(old, new)
    return Sources(read=lambda name: modules[name].encode() if name in modules else None)


def digest(**changes: tuple[str, str]) -> str:
    return sources(**changes).digest(ROOT)


def test_code_covers_direct_and_indirect_imports():
    assert sources().reached(ROOT) == EXPECTED
    assert sources().reached(["detect.other"]) == {*EXPECTED, "detect.other"}
    assert sources().reached(["inject.sums", "train.kinds:Kind"]) == {
        *("inject", "inject.sums", "train", "train.kinds")
    }


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("detect__engine", "SCALE = 3", "SCALE = 4"),
        # A whole module counts, whichever part of it is used.
        ("detect__engine", "math.pi", "math.e"),
        ("inject__numbers", "HALF = 0.5", "HALF = 0.25"),
        ("inject__sums", "2 * x", "3 * x"),
        ("inject__words", "return text", "return text[::-1]"),
        # Of an import inside a function, and of the package around it.
        ("inject__folder__late", "return x", "return -x"),
        ("inject__folder", "ORDER = 1", "ORDER = 2"),
    ],
)
def test_changed_module_changes_the_digest_of_its_importers(module, old, new):
    assert digest(**{module: (old, new)}) != digest()


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("detect__engine", "'''Docstring.'''", "'''Another.'''\n"),
        ("detect__engine", "In tokens a second.", "Tokens, by the second."),
        ("detect__engine", "SCALE = 3", "SCALE = (  # as the paper has it\n    3\n)"),
        ("detect__engine", "no text:", "there is no text:"),
        # Imported only for annotations, or not at all.
        ("train__kinds", "weight = 1", "weight = 2"),
        ("detect__other", "import detect.engine", "import math"),
    ],
)
def test_comments_wording_and_unimported_code_do_not_change_the_digest(module, old, new):
    assert digest(**{module: (old, new)}) == digest()


def test_only_imports_for_type_checkers_are_ignored():
    assert sources().reached(["spikein"]) == {
        *("spikein", "inject", "inject.numbers", "inject.sums")
    }


def test_reexported_name_resolves_to_its_defining_module():
    modules = sources()
    assert modules.module_of("spikein.twice") == "inject.sums"
    assert modules.module_of("spikein.other") == "spikein"
    assert (
        modules.module_of("inject.sums.twice") == modules.module_of("inject.sums") == "inject.sums"
    )
    assert modules.module_of("numpy.linalg.norm") is None
    assert module_of("spikein.each_example") == "detect.detector"


@pytest.mark.parametrize(
    ("new", "error", "message"),
    [
        ("from inject.totals import", LookupError, "no module inject.totals"),
        ("from inject.sums.parts import", LookupError, "no module inject.sums.parts"),
        ("from .sums import", ValueError, "inject.numbers, line 1: relative imports"),
    ],
)
def test_unresolvable_import_is_an_error(new, error, message):
    with pytest.raises(error, match=message):
        digest(inject__numbers=("from inject.sums import", new))


def test_module_edited_before_import_is_detected():
    modules = {name: textwrap.dedent(text).encode() for name, text in MODULES.items()}
    code = Sources(read=modules.get)
    code.digest(ROOT)
    assert code.edited(ROOT) == []
    modules["inject.folder.late"] += b"# edited"
    assert code.edited(ROOT) == ["inject.folder.late"]
    assert code.edited(("inject.sums:twice",)) == []


def test_step_with_edited_code_does_not_start(monkeypatch):
    modules = {name: textwrap.dedent(text).encode() for name, text in MODULES.items()}
    monkeypatch.setattr("inject.source_digest._sources", Sources(read=modules.get))
    require_unedited(("inject.folder.late:later",))
    modules["inject.folder.late"] += b"# edited"
    with pytest.raises(InputError, match=r"inject\.folder\.late: the source was edited"):
        require_unedited(("inject.folder.late:later",))


def test_a_changed_data_file_changes_the_digest_of_the_dataset_that_reads_it():
    def edited(module, name):
        return read_data_file(module, name) + b"x"

    after = Sources(read=read_source, read_data=edited)
    for name in built_in_names():
        code = find_dataset(name).code
        assert (after.digest(code) != source_digest(code)) == (name == "fictional"), name
