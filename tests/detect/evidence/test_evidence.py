"""Every field of the evidence is by row, or said to be shared."""

from dataclasses import fields

from detect.evidence import SHARED, Evidence

BY_ROW = {
    *("texts", "statistics", "reference", "members", "groups", "shadows", "datasets"),
    *("prefixed", "tuned", "continuations", "choices", "gradients", "neighbours", "guesses"),
    "entities",
}


def test_every_field_is_by_row_or_shared():
    """`Evidence.take` takes rows of what is by row: a new field is one or the other."""
    assert {one.name for one in fields(Evidence)} == BY_ROW | SHARED
