"""User sources: by file, and messages about failing ones."""

import textwrap

import pytest
from pydantic import TypeAdapter, ValidationError

from inject.corpus.background.mixture import mixed_documents
from inject.corpus.background.registry import (
    AnySource,
    source_identity,
    source_kind,
)

CODE = '''
    from collections.abc import Iterator
    from typing import Any

    from inject.corpus.background.document import Document, Skipped, Source


    class Songs(Source):
        """Songs of one line."""

        verse: str = "la"
        count: int = 3

        def identity(self) -> dict[str, Any]:
            return {"verse": self.verse, "count": self.count}

        def documents(self, skipped: Skipped | None = None) -> Iterator[Document]:
            for number in range(self.count):
                yield Document(f"{self.verse} {number}", f"song {number}")


    OTHER = 3
'''
ADAPTER: TypeAdapter = TypeAdapter(AnySource)


def read(**values):
    return ADAPTER.validate_python({"kind": "mine.py:Songs", **values})


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(CODE))
    monkeypatch.chdir(tmp_path)
    return path


def test_source_of_a_file_gives_documents_and_round_trips(file):
    source = read(verse="lo", weight=2)
    texts = [document.text for document in mixed_documents([source], seed=0)]
    assert sorted(texts) == ["lo 0", "lo 1", "lo 2"]
    assert source_kind(source) == "Songs"
    assert ADAPTER.dump_python(source, mode="json") == {
        "kind": "mine.py:Songs", "weight": 2.0, "verse": "lo", "count": 3,
    }  # fmt: skip
    assert ADAPTER.validate_python(ADAPTER.dump_python(source)) == source


def test_source_identity_covers_settings_and_code_but_not_folder(file, tmp_path):
    before = source_identity(read())
    assert str(tmp_path) not in str(before)
    assert source_identity(read(weight=3)) == before
    assert source_identity(read(count=4)) != before
    file.write_text(file.read_text().replace('f"{self.verse}', 'f"oh {self.verse}'))
    assert source_identity(read()) != before


@pytest.mark.parametrize(
    ("values", "place", "words"),
    [
        ({"kind": "mine.py:OTHER"}, (), "not a source"),
        ({"kind": "songz"}, (), "expected tags: 'docstrings', 'files', 'hub'"),
        ({"versee": "x"}, ("versee",), "Extra inputs"),
    ],
)
def test_unusable_source_is_named_with_its_location(file, values, place, words):
    with pytest.raises(ValidationError, match=words) as caught:
        read(**values)
    assert caught.value.errors()[0]["loc"] == place
