"""Background sources: local files, docstrings of packages, the hub."""

import ast
import importlib
import json
import sys
from pathlib import Path

import pytest

from inject.corpus.background.docstrings import DocstringsSource
from inject.corpus.background.document import Skipped
from inject.corpus.background.files import FilesSource
from inject.corpus.background.hub import HubSource
from inject.digest import canonical
from inject.errors import InputError
from inject.files import cache_folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPIKEIN_CACHE", str(tmp_path / "cache"))


def write_lines(path: Path, rows: list) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def files(path: Path, **more) -> FilesSource:
    return FilesSource(kind="files", path=str(path), **more)


@pytest.mark.parametrize(
    ("row", "field", "text"),
    [
        ({"title": "t", "content": "c"}, None, "c"),
        ({"Text": "T", "id": "7"}, None, "T"),
        ({"text": "t", "note": "n"}, "note", "n"),
    ],
)
def test_text_field_is_detected_or_named(tmp_path, row, field, text):
    path = write_lines(tmp_path / "a.jsonl", [row])
    [document] = files(path, field=field).documents()
    assert document.text == text


@pytest.mark.parametrize(
    ("row", "field", "parts"),
    [
        ({"titel": "t", "url": "u"}, None, ["a.jsonl:2", "'titel', 'url'", "`field:`"]),
        ({"text": 7}, None, ["a.jsonl:2", "int, not a string"]),
        ({"text": "t"}, "txt", ["a.jsonl:2", "no field 'txt'", "Did you mean 'text'"]),
    ],
)
def test_rows_without_usable_text_name_file_and_line(tmp_path, row, field, parts):
    path = write_lines(tmp_path / "a.jsonl", [{"text": "fine", "txt": "fine"}, row])
    with pytest.raises(InputError) as caught:
        list(files(path, field=field).documents())
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_files_identity_covers_content_and_field_but_not_folder_or_weight(tmp_path):
    path = write_lines(tmp_path / "one" / "a.jsonl", [{"text": "x"}])
    two = write_lines(tmp_path / "two" / "a.jsonl", [{"text": "x"}])
    other = write_lines(tmp_path / "other" / "a.jsonl", [{"text": "z"}])
    identity = canonical(files(path).identity())
    assert identity == canonical(files(two, weight=3).identity())
    assert identity != canonical(files(other).identity())
    assert identity != canonical(files(path, field="text").identity())


# --- docstrings -----------------------------------------------------------------------------

LONG = "A sentence that is repeated until the docstring is long enough to be kept by the source. "

PACKAGE = {
    "__init__.py": f'"""Module. {LONG}"""\nraise RuntimeError("imported")\n',
    "b.py": f'''
def first():
    """First. {LONG}

        Indented.
    """

async def second(): "Second. {LONG}"

class Third:
    """Third. {LONG}"""

    def method(self):
        r"""Method. {LONG} \\d"""

        def inner():
            """Inner. {LONG}"""

    def short(self):
        """Too short."""

def same():
    """Third. {LONG}"""
''',
    "broken.py": "def (",
    "tests/c.py": f'"""Test. {LONG}"""',
    "sub/tests.py": f'"""A module named tests. {LONG}"""',
    ".hidden/d.py": f'"""Hidden. {LONG}"""',
    "surrogate.py": f'"""Half. \\ud800 {LONG}"""',
    "bad.py": b'"""\xff"""',
    "notes.txt": "x",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "site" / "docpkg"
    for name, content in PACKAGE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.syspath_prepend(str(root.parent))
    importlib.invalidate_caches()
    return root


def docstrings(*packages: str, **more) -> DocstringsSource:
    return DocstringsSource(kind="docstrings", packages=packages, **more)


def test_docstrings_of_modules_classes_and_functions(package):
    documents = list(docstrings("docpkg").documents())
    assert [(document.text.split(".")[0], document.place) for document in documents] == [
        ("Module", "docpkg/__init__.py"),
        ("First", "docpkg/b.py:first"),
        ("Second", "docpkg/b.py:second"),
        ("Third", "docpkg/b.py:Third"),
        ("Method", "docpkg/b.py:Third.method"),
        ("Inner", "docpkg/b.py:Third.method.inner"),
        ("A module named tests", "docpkg/sub/tests.py"),
    ]
    assert documents[1].text.endswith("\n\nIndented.")
    assert "docpkg" not in sys.modules


def test_docstrings_are_cached_and_a_broken_cache_is_rebuilt(package, monkeypatch):
    source = docstrings("docpkg")
    documents, identity = list(source.documents()), source.identity()
    [cached] = (cache_folder() / "docstrings").iterdir()
    whole = cached.read_bytes()

    def refuse(*_: object) -> None:
        raise AssertionError("parsed although cached")

    with monkeypatch.context() as patched:
        patched.setattr(ast, "parse", refuse)
        assert list(source.documents()) == documents
    for broken in (b"", whole[: len(whole) // 2], whole.replace(b"First", b"Other")):
        assert broken != whole
        cached.write_bytes(broken)
        assert list(source.documents()) == documents
        assert source.identity() == identity
        assert cached.read_bytes() == whole


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("nonumpy", "Did you mean 'numpy'"),
        ("sys", "no Python source"),
    ],
)
def test_unknown_packages_are_rejected(name, part):
    with pytest.raises(InputError) as caught:
        docstrings(name).identity()
    assert repr(name) in str(caught.value)
    assert part in str(caught.value)


# --- hub ------------------------------------------------------------------------------------


def test_hub_source_reads_a_local_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    folder = tmp_path / "set"
    write_lines(folder / "train.jsonl", [{"text": text} for text in ("a", "", " \n", None, "b")])
    source = HubSource(kind="hub", id=str(folder))
    skipped = Skipped()
    assert [document.text for document in source.documents(skipped)] == ["a", "b"]
    assert skipped.empty == 3
    before = source.identity()
    assert str(tmp_path) not in canonical(before)
    write_lines(folder / "train.jsonl", [{"text": "changed"}])
    assert source.identity() != before
    with pytest.raises(InputError, match="split 'nothing'"):
        list(HubSource(kind="hub", id=str(folder), split="nothing").documents())
