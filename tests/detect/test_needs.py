from detect.needs import NEEDS, Continuations, Guesses, View
from detect.score_file.evidence import providers as of_files
from spikein.pipeline.steps.evidence import providers as of_the_graph
from tests.detect.evidence_samples import evidence_of, random_statistics, small_frequency


def test_each_kind_of_need_is_met_in_both_places():
    assert set(of_files.PROVIDERS) == set(NEEDS)
    assert set(of_the_graph.PROVIDERS) == set(NEEDS)
    assert set(of_the_graph.READERS) == set(NEEDS)


def test_evidence_meets_what_it_holds():
    rows = [random_statistics(4)]

    def met(**more):
        evidence = evidence_of(*rows, **more)
        return {need for kind in NEEDS if kind is not View and (need := kind()).met_by(evidence)}

    assert View("lowercase").met_by(evidence_of(*rows))
    assert not View("upper").met_by(evidence_of(*rows))
    assert met() == set()
    found = met(
        reference=rows,
        frequency=small_frequency(),
        members=[True],
        shadows=[],
        continuations={Continuations().request: []},
        guesses={Guesses().request: []},
    )
    assert {type(need) for need in found} == set(NEEDS) - {View}
