"""Taggers: their entities, their identity, and invalid ones that are rejected in advance."""

import json
import shutil
import sys

import pytest

from detect.evidence.entities import (
    NamedEntity,
    find_entities,
    find_tagger,
    read_entities,
    tagger_identity,
    tagger_record,
    write_entities,
)
from inject.errors import InputError
from tests.detect.taggers import write_tagger

TEXTS = ["Ada went to New York.", "", "he went", "東京 Ada 🦉 Ada", "Ada " + "x" * 1_000_000]


@pytest.fixture
def tagger(tmp_path):
    return write_tagger(tmp_path / "tagger", PERSON="Ada", GPE="New York")


def test_entities_have_their_text_positions_and_are_stored(tagger, tmp_path):
    done = []
    entities = find_entities(str(tagger), TEXTS, progress=lambda *now: done.append(now))
    assert entities[0] == [NamedEntity(0, 3, "PERSON"), NamedEntity(12, 20, "GPE")]
    assert entities[1:3] == [[], []]
    assert [TEXTS[3][entity.start : entity.stop] for entity in entities[3]] == ["Ada", "Ada"]
    # A text longer than spaCy's default limit of a million characters.
    assert entities[4] == [NamedEntity(0, 3, "PERSON")]
    assert done == [(number, 5) for number in range(1, 6)]
    write_entities(tmp_path, list("abcd"), entities[:4])
    assert read_entities(tmp_path) == dict(zip("abcd", entities[:4], strict=True))


def test_tagger_identity_is_its_content(tagger, tmp_path):
    identity = tagger_identity(str(tagger))
    assert (identity["name"], identity["version"]) == ("en_patterns", "1.2.0")
    assert "entity_ruler/patterns.jsonl" in identity["files"]
    shutil.copytree(tagger, tmp_path / "other")
    assert tagger_identity(str(tmp_path / "other")) == identity
    record = tagger_record(str(tagger))
    with (tmp_path / "other" / "entity_ruler" / "patterns.jsonl").open("a") as file:
        file.write('{"label": "ORG", "pattern": "ACME"}\n')
    assert tagger_identity(str(tmp_path / "other")) != identity
    assert tagger_record(str(tmp_path / "other")) != record
    assert tagger_record(None) is None


def test_installed_pipeline_is_located_by_name_without_running_its_code(
    tagger, tmp_path, monkeypatch
):
    package = tmp_path / "packages" / "en_patterns"
    shutil.copytree(tagger, package / "en_patterns-1.2.0")
    shutil.copy(tagger / "meta.json", package / "meta.json")
    (package / "__init__.py").write_text("raise SystemExit('this code was run')\n")
    monkeypatch.syspath_prepend(str(package.parent))
    assert find_tagger("en_patterns") == package / "en_patterns-1.2.0"
    assert tagger_identity("en_patterns") == tagger_identity(str(tagger))
    assert len(find_entities("en_patterns", TEXTS[:1])[0]) == 2
    assert "en_patterns" not in sys.modules


def test_missing_spacy_error_names_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr("detect.evidence.entities.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'spikein\[tagger\]'"):
        tagger_identity(str(tmp_path))


def test_folder_that_is_not_a_pipeline_is_rejected(tagger, tmp_path):
    for name in ("no_such_pipeline", str(tmp_path / "nowhere"), "this"):
        with pytest.raises(InputError, match=r"no such spaCy pipeline.*en_core_web_sm"):
            find_tagger(name)
    for name in ("numpy", str(tmp_path)):
        with pytest.raises(InputError, match=r"it lacks config\.cfg"):
            find_tagger(name)
    (tagger / "entity_ruler" / "patterns.jsonl").write_text("[")
    with pytest.raises(InputError, match="not loadable as a spaCy pipeline"):
        find_entities(str(tagger), ["a"])
    pytest.importorskip("spacy").blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match="no parts that could find entities"):
        find_entities(str(tmp_path / "blank"), ["a"])


def test_files_outside_the_pipeline_folder_are_rejected(tagger, tmp_path):
    """This folder's digest would not cover another pipeline's parts or a parent folder."""
    with (tagger / "config.cfg").open("a") as file:
        file.write('\n[components.ner]\nsource = "en_core_web_sm"\n')
    with pytest.raises(InputError, match=r"part 'ner' comes from the pipeline \"en_core_web"):
        find_tagger(str(tagger))
    (tmp_path / "up").mkdir()
    meta = {"lang": "x", "name": "y", "version": "1/../../../tagger"}
    (tmp_path / "up" / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(InputError, match="is outside its folder"):
        find_tagger(str(tmp_path / "up"))
