"""All kinds of needs: the evidence that meets them, and that a new kind is one class."""

from dataclasses import fields, replace

from detect.choices import ChoiceEvidence
from detect.evidence import SHARED, Evidence, HeldOutRows, PrefixedStatistics, ShadowModel
from detect.evidence.held_out import HeldOut
from detect.evidence.prefixed import Prefixed
from detect.evidence.views import InverseTemperature, View
from detect.token_statistics import unscored
from tests.detect.evidence_samples import evidence_of, random_statistics

BY_ROW = {
    *("texts", "statistics", "reference", "members", "groups", "shadows", "datasets"),
    *("prefixed", "tuned", "continuations", "choices", "gradients", "neighbours", "guesses"),
    "further",
}


def test_evidence_fields_are_by_row_or_shared():
    """`Evidence.take` selects rows of row-wise fields: a new field is row-wise or shared."""
    assert {field.name for field in fields(Evidence)} == BY_ROW | SHARED


def test_take_selects_rows_of_exactly_the_fields_by_row():
    """If a detector fails on a row, the other rows are scored with their own evidence."""
    rows = [random_statistics(2 + row, seed=row) for row in range(3)]
    named = {"name": rows}
    shadow = ShadowModel(statistics=rows, inside=[True, False, False])
    prefixed = PrefixedStatistics(statistics=rows, notes=("said",))
    plain = {"members": [True, False, False], "groups": list("abc"), "datasets": list("xyz")}
    made = dict.fromkeys(("reference", "gradients", "neighbours"), rows)
    made |= dict.fromkeys(("tuned", "continuations", "guesses", "further"), named)
    evidence = evidence_of(
        *rows,
        **plain,
        **made,
        shadows=[shadow],
        prefixed={"name": prefixed},
        choices=ChoiceEvidence(answers=rows, clean=rows),
    )
    subset = evidence.take([2, 0])
    taken = (rows[2], rows[0])
    assert subset.texts == (evidence.texts[2], evidence.texts[0])
    assert subset.statistics["text"] == taken
    for name, values in plain.items():
        assert getattr(subset, name) == (values[2], values[0])
    for name, values in made.items():
        assert getattr(subset, name) == (taken if values is rows else {"name": taken}), name
    assert subset.shadows == (replace(shadow, statistics=taken, inside=(False, True)),)
    assert subset.prefixed == {"name": replace(prefixed, statistics=taken)}
    assert subset.choices == ChoiceEvidence(answers=taken, clean=rows)


def test_evidence_meets_only_the_choices_it_contains():
    rows = [random_statistics(4)]

    def met(need, **more):
        held_out = HeldOutRows(datasets=["one"], texts=["a text"], statistics=rows, **more)
        return need.met_by(evidence_of(*rows, held_out=held_out))

    assert met(HeldOut())
    assert not met(HeldOut(shadows=True))
    assert met(HeldOut(shadows=True), shadows=[rows])
    assert not met(HeldOut(reference=True))
    assert met(HeldOut(reference=True), reference=rows)
    tempered = replace(rows[0], tempered={2.0: rows[0]})
    assert InverseTemperature(2.0).met_by(evidence_of(tempered, unscored("empty text")))
    assert not InverseTemperature(0.5).met_by(evidence_of(tempered))
    assert not InverseTemperature(2.0).met_by(evidence_of(*rows))
    assert not View("upper").met_by(evidence_of(*rows))
    assert not Prefixed(shots=2).met_by(
        evidence_of(*rows, prefixed={Prefixed(shots=1).name: PrefixedStatistics(statistics=rows)})
    )
