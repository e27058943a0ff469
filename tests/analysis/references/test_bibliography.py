import re

import pytest

from analysis.dataset_detectors.detector import dataset_detector_names, get_dataset_detector
from analysis.references import STATISTICS, _parse_entries, bibliography, cited, references_text
from detect.detector_table import describe_named, detector_table
from detect.registry import BUILT_IN
from train.unlearn.registry import method_names

DETECTORS = [one.name for one in detector_table()[0] if one.origin == BUILT_IN]
UNLEARNING = method_names()
IDENTIFIER = re.compile(r"\b(\d{4}\.\d{5})\b")


def surnames(reference) -> list[str]:
    """Return the authors' family names, without TeX's accents."""
    plain = re.sub(r"\{?\\[`'\"]?\s?(\w)\}?|[{}]", r"\1", reference.fields["author"])
    return [one.split(",")[0] for one in plain.split(" and ")]


@pytest.mark.parametrize("name", DETECTORS)
def test_every_registered_detector_has_an_entry_that_is_its_source(name):
    found = cited([name], statistics=())
    assert found, f"{name} has no entry in references.bib"
    source = describe_named(name).source
    for number in IDENTIFIER.findall(source):
        assert number in {one.fields.get("eprint") for one in found}
    if named := re.match(r"([A-Z][a-z]+) (?:et al\.|and)", source):
        assert any(surnames(one)[0] == named[1] for one in found), (source, found)


@pytest.mark.parametrize("name", dataset_detector_names())
def test_every_dataset_detector_has_an_entry_that_is_its_source(name):
    found = cited([], [name], statistics=())
    assert found
    source = get_dataset_detector(name).source
    for number in IDENTIFIER.findall(source):
        assert number in {one.fields.get("eprint") for one in found}


def test_every_statistic_has_a_source_and_every_entry_is_cited_for_something_that_is_there():
    known = {f"detector:{name}" for name in DETECTORS}
    known |= {f"dataset_detector:{name}" for name in dataset_detector_names()}
    known |= {f"statistics:{name}" for name in STATISTICS}
    known |= {f"unlearning:{name}" for name in UNLEARNING}
    used = {one for reference in bibliography() for one in reference.cited_for}
    assert used == known


def test_entries_are_whole_and_their_keys_and_papers_differ():
    keys = [one.key for one in bibliography()]
    assert len(keys) == len(set(keys)) > 35
    numbers = [one.fields["eprint"] for one in bibliography() if "eprint" in one.fields]
    assert len(numbers) == len(set(numbers))
    for one in bibliography():
        assert {"title", "author", "year"} <= set(one.fields), one.key
        assert re.fullmatch(r"(19|20)\d\d", one.fields["year"])
        assert one.fields["year"] in one.key
        assert one.bibtex.count("{") == one.bibtex.count("}")
        assert ("eprint" in one.fields) == ("archiveprefix" in one.fields)
        place = {"article": "journal", "inproceedings": "booktitle"}.get(one.kind)
        assert place is None or place in one.fields, one.key


def test_a_file_of_references_reads_as_it_was_written_without_our_keywords():
    found = cited(["min_k", "loss", "my_own"], ["prism"], statistics=["auc"])
    text = references_text(found)
    assert [one._replace(cited_for=("",)) for one in found] == _parse_entries(text)
    assert "keywords" not in text
    assert {"yeom2018privacy", "shi2024detecting", "shetty2026detecting"} <= {o.key for o in found}
    assert "zhang2024dcpdd" not in {one.key for one in found}
