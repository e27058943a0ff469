"""A planted set of 200 documents, half with known overlaps. Figures in docs/contamination-audit.md.

`python -m tests.inject.overlap.test_planted` prints them.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from inject.corpus.background.docstrings import DocstringsSource
from inject.corpus.background.document import Document
from inject.examples.contaminant import Contaminant
from inject.examples.load import load_examples
from inject.overlap.filter import (
    OverlapFilter,
    overlaps_between_sides,
    read_overlaps,
    write_overlaps,
)
from inject.overlap.settings import OverlapSettings
from scripts.bench.injection.curve import ROWS, curve
from tests.inject.overlap.oracles import lightly_edited, make_example, reordered

KINDS = ("exact copy", "light edits", "reordered sentences", "edited, in a longer document")


def docstrings() -> list[str]:
    source = DocstringsSource(kind="docstrings", packages=("stdlib",), minimum=400)
    return [document.text for document in source.documents()]


def plant_copies() -> tuple[list, list[tuple[str, Document, str | None]]]:
    """Examples, and 200 documents, each with its kind of change and the example it contains."""
    contaminant = Contaminant(dataset="fictional", members=400, nonmembers=400)
    examples = list(load_examples(contaminant, seed=0).examples)
    random = np.random.default_rng(0)
    background = docstrings()
    documents = []
    for index in range(100):
        kind, example = KINDS[index % 4], examples[index * 4]
        text = example.text
        if "edit" in kind:
            text = lightly_edited(text, random)
        if "reordered" in kind:
            text = reordered(text, random)
        if "longer" in kind:
            before, after = background[2 * index], background[2 * index + 1]
            text = f"{before}\n{text}\n{after}"
        documents.append((kind, Document(text, f"planted:{index}"), example.example_id))
    clean = [
        ("clean", Document(text, f"clean:{index}"), None)
        for index, text in enumerate(background[200:300])
    ]
    return examples, [*documents, *clean]


def audited(settings: OverlapSettings) -> tuple[OverlapFilter, Counter]:
    """The audit of all documents, and how many of each kind were found or flagged."""
    examples, documents = plant_copies()
    audit = OverlapFilter(examples, settings)
    counts: Counter = Counter()
    for kind, document, example in documents:
        audit(document)
        matched = {match.example_id for match in audit.found if match.place == document.place}
        counts[kind, "found"] += example in matched
        counts[kind, "clean but flagged"] += example is None and bool(matched)
    return audit, counts


def test_planted_overlaps_are_found_and_recorded_and_clean_texts_are_not_flagged(tmp_path):
    audit, counts = audited(OverlapSettings(drop=False))
    assert [counts[kind, "found"] for kind in KINDS] == [25] * 4
    assert counts["clean", "clean but flagged"] == 0
    write_overlaps(tmp_path, audit.found, audit.facts())
    overlaps, facts = read_overlaps(tmp_path)
    assert (overlaps, facts) == (audit.found, audit.facts())
    assert (facts.offending, facts.dropped, facts.documents) == (100, 0, 200)


def test_operating_curve_is_reproduced():
    """Four in five copies of 50 words are found with one word in five replaced."""
    detected, flagged, clean = curve(OverlapSettings(), lengths=(50,), shares=(0.1, 0.2), clean=300)
    assert detected[50, 0.1] == ROWS
    assert detected[50, 0.2] >= 0.8 * ROWS
    assert flagged <= 0.01 * clean == 3


def test_phrase_common_to_all_rows_does_not_pair_all_members_with_nonmembers():
    phrase = "read the text with care and then choose the best answer to the question that follows"
    passage = "the long wall of the garden was painted green by the teacher and her two brothers"
    rows = [
        replace(make_example(f"{phrase} {number}"), side="member" if number % 2 else "nonmember")
        for number in range(100)
    ]
    shared = [replace(make_example(f"{number} {passage}"), side="member") for number in range(5)]
    other = replace(make_example(f"Then {passage}"), side="nonmember")
    pairs = overlaps_between_sides([*rows, *shared, other], OverlapSettings())
    assert len(pairs) == 50 * 8 + 5
    assert {item["nonmember"] for item in pairs} == {
        item.example_id for item in [*rows, other] if item.side == "nonmember"
    }
    assert [item["member"] for item in pairs if item["nonmember"] == other.example_id] == sorted(
        item.example_id for item in shared
    )


def main() -> None:
    """Print the table of docs/contamination-audit.md."""
    for settings in (
        OverlapSettings(),
        OverlapSettings(near_duplicate=None),
        OverlapSettings(ngram=8, share=0.7, near_duplicate=None),
        OverlapSettings(ngram=7, near_duplicate=None),
        OverlapSettings(ngram=None),
    ):
        _, counts = audited(settings)
        shares = [f"{counts[kind, 'found']}/25" for kind in KINDS]
        print(" | ".join([settings.label(), *shares, str(counts["clean", "clean but flagged"])]))


if __name__ == "__main__":
    main()
