import re

import pytest

from analysis.dataset_detectors.detector import dataset_detector_names, get_dataset_detector
from analysis.references import STATISTICS, _parse_entries, bibliography, cited, references_text
from detect.detector_table import describe_named, detector_table
from detect.registry import BUILT_IN
from train.unlearn.registry import method_names

DETECTORS = [row.name for row in detector_table()[0] if row.origin == BUILT_IN]
UNLEARNING = method_names()
IDENTIFIER = re.compile(r"\b(\d{4}\.\d{5})\b")


def surnames(reference) -> list[str]:
    """Return the authors' family names, without TeX's accents."""
    plain = re.sub(r"\{?\\[`'\"]?\s?(\w)\}?|[{}]", r"\1", reference.fields["author"])
    return [author.split(",")[0] for author in plain.split(" and ")]


@pytest.mark.parametrize("name", DETECTORS)
def test_registered_detectors_have_an_entry_for_their_source(name):
    entries = cited([name], statistics=())
    assert entries, f"{name} has no entry in references.bib"
    source = describe_named(name).source
    for number in IDENTIFIER.findall(source):
        assert number in {entry.fields.get("eprint") for entry in entries}
    if named := re.match(r"([A-Z][a-z]+) (?:et al\.|and)", source):
        assert any(surnames(entry)[0] == named[1] for entry in entries), (source, entries)


@pytest.mark.parametrize("name", dataset_detector_names())
def test_dataset_detectors_have_an_entry_for_their_source(name):
    entries = cited([], [name], statistics=())
    assert entries
    source = get_dataset_detector(name).source
    for number in IDENTIFIER.findall(source):
        assert number in {entry.fields.get("eprint") for entry in entries}


def test_entries_cite_exactly_the_existing_detectors_and_statistics():
    expected = {f"detector:{name}" for name in DETECTORS}
    expected |= {f"dataset_detector:{name}" for name in dataset_detector_names()}
    expected |= {f"statistics:{name}" for name in STATISTICS}
    expected |= {f"unlearning:{name}" for name in UNLEARNING}
    used = {purpose for reference in bibliography() for purpose in reference.cited_for}
    assert used == expected


def test_entries_are_complete_with_unique_keys_and_papers():
    keys = [entry.key for entry in bibliography()]
    assert len(keys) == len(set(keys)) > 35
    numbers = [entry.fields["eprint"] for entry in bibliography() if "eprint" in entry.fields]
    assert len(numbers) == len(set(numbers))
    for entry in bibliography():
        assert {"title", "author", "year"} <= set(entry.fields), entry.key
        assert re.fullmatch(r"(19|20)\d\d", entry.fields["year"])
        assert entry.fields["year"] in entry.key
        assert entry.bibtex.count("{") == entry.bibtex.count("}")
        assert ("eprint" in entry.fields) == ("archiveprefix" in entry.fields)
        place = {"article": "journal", "inproceedings": "booktitle"}.get(entry.kind)
        assert place is None or place in entry.fields, entry.key


def test_references_file_round_trip_without_internal_keywords():
    entries = cited(["min_k", "loss", "my_own"], ["prism"], statistics=["auc"])
    text = references_text(entries)
    assert [entry._replace(cited_for=("",)) for entry in entries] == _parse_entries(text)
    assert "keywords" not in text
    assert {"yeom2018privacy", "shi2024detecting", "shetty2026detecting"} <= {
        o.key for o in entries
    }
    assert "zhang2024dcpdd" not in {entry.key for entry in entries}
