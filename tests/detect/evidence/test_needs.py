from dataclasses import replace

from detect.choices.answers import ChoiceEvidence
from detect.evidence import HeldOutRows, PrefixedStatistics
from detect.evidence.needs import (
    NEEDS,
    Continuations,
    Guesses,
    HeldOut,
    InverseTemperature,
    Prefixed,
    Tuned,
    View,
)
from detect.evidence.providers import PROVIDERS
from detect.score_file.evidence import providers as of_files
from detect.token_statistics import unscored
from tests.detect.evidence_samples import evidence_of, random_statistics, small_frequency


def test_each_kind_of_need_is_met_in_both_places():
    assert set(of_files.PROVIDERS) == set(NEEDS)
    assert set(PROVIDERS) == set(NEEDS)


def test_evidence_meets_what_it_holds():
    rows = [random_statistics(4)]

    def met(**more):
        evidence = evidence_of(*rows, **more)
        return {
            need
            for kind in NEEDS
            if kind not in (View, InverseTemperature) and (need := kind()).met_by(evidence)
        }

    assert View("lowercase").met_by(evidence_of(*rows))
    assert not View("upper").met_by(evidence_of(*rows))
    assert not InverseTemperature(2.0).met_by(evidence_of(*rows))
    tempered = replace(rows[0], tempered={2.0: rows[0]})
    assert InverseTemperature(2.0).met_by(evidence_of(tempered, unscored("empty text")))
    assert not InverseTemperature(0.5).met_by(evidence_of(tempered))
    assert met() == set()
    shots = PrefixedStatistics(statistics=rows)
    held_out = HeldOutRows(datasets=["one"], texts=["a text"], statistics=rows)
    choices = ChoiceEvidence(answers=[])
    found = met(
        reference=rows,
        frequency=small_frequency(),
        members=[True],
        shadows=[],
        held_out=held_out,
        prefixed={Prefixed().name: shots},
        tuned={Tuned().name: rows},
        continuations={Continuations().request: []},
        guesses={Guesses().request: []},
        choices=choices,
        gradients=[],
        neighbours=[],
        entities=[],
    )
    assert {type(need) for need in found} == set(NEEDS) - {View, InverseTemperature}


def test_held_out_rows_hold_what_is_asked_of_them():
    rows = [random_statistics(4)]

    def met(need, **more):
        held_out = HeldOutRows(datasets=["one"], texts=["a text"], statistics=rows, **more)
        return need.met_by(evidence_of(*rows, held_out=held_out))

    assert met(HeldOut())
    assert not met(HeldOut(shadows=True))
    assert met(HeldOut(shadows=True), shadows=[rows])
    assert not met(HeldOut(reference=True))
    assert met(HeldOut(reference=True), reference=rows)
    assert not Prefixed(shots=2).met_by(
        evidence_of(*rows, prefixed={Prefixed(shots=1).name: PrefixedStatistics(statistics=rows)})
    )
