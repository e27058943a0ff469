"""What counts as the code of a number: asked of small packages made for it."""

import sys
import textwrap
from pathlib import Path

import pytest

from inject import keyed
from inject.examples.datasets.fiction.data import DATA_FILES
from inject.examples.datasets.registry import built_in_names, find_dataset
from inject.source_digest import Sources, read_data_file, read_source, source_digest

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

        def score(text: str, kind: "Kind") -> float:
            '''Docstring.'''
            from inject.late import later

            if not text:
                raise ValueError(f"no text: {text}")
            return later(inject.words.count(text)) * SCALE * twice(HALF)

        def unrelated() -> float:
            return other()

        def other() -> float:
            return math.pi

        def step(settings):
            factor = pick(settings)
            unused = other()

            def build(out):
                return score(out, None) * factor

            return build, unused

        def pick(settings):
            return settings
    """,
    "inject": "",
    "inject.numbers": "from inject.sums import twice\nHALF = 0.5\nTHIRD = 1 / 3\n",
    "inject.sums": "def twice(x):\n    return 2 * x\n",
    "inject.words": "def count(text):\n    return len(text)\ndef spell(text):\n    return text\n",
    "inject.late": "def later(x):\n    return x\nregister(later)\n",
    "train": "",
    "train.kinds": "class Kind:\n    weight = 1\n",
}
ROOT = ("detect.engine:score",)


def digest(roots=ROOT, **changes: tuple[str, str]) -> str:
    modules = {name: textwrap.dedent(text) for name, text in MODULES.items()}
    for name, (old, new) in changes.items():
        name = name.replace("__", ".")
        assert old in modules[name]
        modules[name] = modules[name].replace(old, new)
    found = Sources(read=lambda name: modules[name].encode() if name in modules else None)
    return found.digest(roots)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("detect__engine", "SCALE = 3", "SCALE = 4"),
        ("detect__engine", ") * SCALE", ") + SCALE"),
        ("inject__numbers", "HALF = 0.5", "HALF = 0.25"),
        ("inject__sums", "2 * x", "3 * x"),
        ("inject__words", "len(text)", "len(text) + 1"),
        ("inject__late", "return x", "return -x"),
        ("inject__late", "register(later)", "register(later, 2)"),
        ("train__kinds", "weight = 1", "weight = 2"),
    ],
)
def test_a_changed_formula_changes_the_digest_of_what_reaches_it(module, old, new):
    assert digest(**{module: (old, new)}) != digest()


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("detect__engine", "'''Docstring.'''", "'''Another.'''\n"),
        ("detect__engine", "SCALE = 3", "SCALE = (  # as the paper has it\n    3\n)"),
        ("detect__engine", "no text:", "there is no text:"),
        ("detect__engine", "return other()", "return other() + 1"),
        ("detect__engine", "math.pi", "math.e"),
        ("inject__numbers", "1 / 3", "1 / 4"),
        ("inject__words", "return text", "return text[::-1]"),
    ],
)
def test_comments_wording_and_what_is_not_reached_change_nothing(module, old, new):
    assert digest(**{module: (old, new)}) == digest()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("factor = pick(settings)", "factor = 2 * pick(settings)", False),
        ("return settings", "return settings + 1", False),
        ("score(out, None) * factor", "score(out, None) + factor", False),
        ("unused = other()", "unused = 1", True),
        ("return build, unused", "return build, unused, 1", True),
    ],
)
def test_an_inner_function_counts_with_what_it_reads_of_the_outer_one(old, new, same):
    roots = ("detect.engine:step.build",)
    assert (digest(roots, detect__engine=(old, new)) == digest(roots)) is same


@pytest.mark.parametrize("one", ["detect.engine:missing", "detect.none:score"])
def test_a_root_that_does_not_exist_is_an_error(one):
    with pytest.raises(LookupError, match=one.partition(":")[2] if "missing" in one else "none"):
        digest((one,))


def test_an_import_of_ours_that_does_not_exist_is_an_error():
    with pytest.raises(LookupError, match="thrice"):
        digest(inject__numbers=("import twice", "import thrice as twice"))


def test_the_order_of_roots_is_of_no_account_and_our_own_sources_are_found():
    roots = ("inject.keyed:words", "inject.digest:digest")
    assert Sources(read=read_source).digest(roots) == source_digest(roots[::-1])


def test_a_module_edited_before_it_is_imported_is_noticed():
    modules = {name: textwrap.dedent(text).encode() for name, text in MODULES.items()}
    found = Sources(read=modules.get)
    found.digest(ROOT)
    assert found.edited(ROOT) == []
    modules["inject.late"] += b"# edited"
    assert found.edited(ROOT) == ["inject.late"]
    assert found.edited(("inject.sums:twice",)) == []


def test_what_python_has_imported_may_be_edited():
    sources = {"inject.keyed": b"def words():\n    return 1\n"}
    found = Sources(read=sources.get)
    assert keyed.__name__ in sys.modules
    found.digest(("inject.keyed:words",))
    sources["inject.keyed"] = b"def words():\n    return 2\n"
    assert found.edited(("inject.keyed:words",)) == []


@pytest.mark.parametrize("changed", DATA_FILES)
def test_a_changed_data_file_changes_the_digest_of_the_dataset_that_reads_it(changed):
    def edited(module, name):
        return read_data_file(module, name) + (b"x" if name == changed else b"")

    sources = Sources(read=read_source, read_data=edited)
    for name in built_in_names():
        code = find_dataset(name).code
        assert (sources.digest(code) != source_digest(code)) == (name == "fictional"), name


def test_all_data_files_are_listed_and_are_there():
    folder = "inject.examples.datasets.fiction.data"
    found = Path(sys.modules[folder].__file__).parent.glob("*.txt")
    assert sorted(path.name for path in found) == sorted(DATA_FILES)


@pytest.mark.parametrize(
    ("listed", "words"), [("('none.txt',)", "no such file"), ("['a.txt']", "not a tuple of texts")]
)
def test_a_list_of_data_files_that_cannot_be_read_is_an_error(listed, words):
    source = f"DATA_FILES = {listed}\n\ndef read():\n    return DATA_FILES\n".encode()
    sources = Sources(read=lambda name: source if name == "detect.engine" else None)
    with pytest.raises((LookupError, ValueError), match=words):
        sources.digest(("detect.engine:read",))
