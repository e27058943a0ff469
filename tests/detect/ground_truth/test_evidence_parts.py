"""Every kind of evidence goes into a bundle and comes out; what shows a protected text does not."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detect.choices.answers import ChoiceAnswers, ChoiceEvidence
from detect.choices.question import LABELS, ORDERS
from detect.detector import Column, Detector, Score
from detect.evidence import Evidence, ExampleEvidence, HeldOutRows, PrefixedStatistics
from detect.evidence.entities import Entities
from detect.evidence.held_out import HeldOut
from detect.evidence.views import View
from detect.generation.continuations import GREEDY, Beginning, ContinuationRequest, Continued
from detect.generation.guesses import PAPER, GuessedText, GuessRequest
from detect.gradients.norms import GradientNorms
from detect.ground_truth.archive import read_archive
from detect.ground_truth.bundle import read_bundle, write_bundle
from detect.ground_truth.ground_truth import GroundTruth, ScoredModel
from detect.ground_truth.row_tables import ROW_KINDS
from detect.ground_truth.withheld import REASON, TextWithheld, guarded
from detect.guarded_call import read_only
from detect.named_entities import NamedEntity
from detect.neighbours.neighbours import NeighbourMeans
from detect.token_frequency import WordFrequency
from detect.validate.candidate import load_candidate
from detect.validate.candidate_scores import CandidateRunner
from tests.detect.ground_truths import make_examples, make_statistics, make_truth

SAMPLED = ContinuationRequest(
    beginning=Beginning("words", Decimal("7")), samples=2, temperature=0.7, instruction="Go on:"
)
ASKED = GuessRequest(method="person", prompt="plain", filtered=True, threshold=0.25)


def with_all(model: ScoredModel, key: int) -> ScoredModel:
    """The model with something in every field of its evidence."""
    rows = model.rows
    apart = make_examples(6, datasets=("news", "secret"), protected="secret")

    def statistics(number: int):
        return make_statistics(rows, {}, key=key + number)

    def held_out(number: int):
        return make_statistics(apart, {}, key=key + 50 + number)

    def answers(count: int, letters: bool):
        random = np.random.Generator(np.random.Philox(key=key))
        shape = (len(ORDERS), len(LABELS))
        return [
            ChoiceAnswers(reason="no paraphrases")
            if at == 1
            else ChoiceAnswers(
                log_probability=None if letters else random.normal(size=shape).astype(np.float32),
                letters=random.integers(-1, 4, len(ORDERS)).astype(np.int8) if letters else None,
                document=f"document {at}",
            )
            for at in range(count)
        ]

    evidence = replace(
        model.evidence,
        frequency=replace(
            model.evidence.frequency, words=WordFrequency(counts={"was": 3, "é": 1}, total=9)
        ),
        datasets=[row.dataset for row in rows],
        held_out=HeldOutRows(
            datasets=[row.dataset for row in apart],
            texts=[row.text for row in apart],
            statistics=held_out(0),
            reference=held_out(1),
            shadows=[held_out(2), held_out(3)],
        ),
        prefixed={
            "nonmembers-0-1": PrefixedStatistics(statistics=statistics(1)),
            "members-0-2": PrefixedStatistics(statistics=statistics(2), notes=("fewer fit",)),
        },
        tuned={"text-all_linear": statistics(3)},
        continuations={
            asked: [
                Continued("", "", (), reason="too short")
                if at == 1
                else Continued(row.text[:5], row.text[5:], (row.text[5:], "other"), 3, 4)
                for at, row in enumerate(rows)
            ]
            for asked in (GREEDY, SAMPLED)
        },
        guesses={
            asked: [
                GuessedText(wanted=(row.text[:4],), written=(row.text[:4] + "!",), filtered=1)
                for row in rows
            ]
            for asked in (PAPER, ASKED)
        },
        choices=ChoiceEvidence(answers=answers(len(rows), False), clean=answers(4, True)),
        gradients=[
            GradientNorms(reason="empty text")
            if at == 1
            else GradientNorms(whole=at / 3, tensors=(1.0, 2.0), embeddings=(0.5, at))
            for at in range(len(rows))
        ],
        neighbours=[NeighbourMeans(means=(-1.5, at / 7)) for at in range(len(rows))],
        shadows=model.evidence.shadows,
        further={
            Entities(): [
                [NamedEntity(0, 4, "PERSON"), NamedEntity(6, 9, "ORG")][: at % 3]
                for at in range(len(rows))
            ]
        },
    )
    return replace(model, evidence=read_only(evidence))


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    made = make_truth(8, datasets=("news", "secret"), protected="secret", empty=True)
    models = (with_all(made.models[0], 400), *made.models[1:])
    return replace(made, models=models)


@pytest.fixture(scope="module")
def bundle(truth, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "all.bundle"
    write_bundle(path, truth)
    return path


@pytest.fixture(scope="module")
def opened(bundle) -> ScoredModel:
    return read_bundle(bundle).models[0]


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal throughout, to the type of every array."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if dataclasses.is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
        )
    if isinstance(one, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def test_every_field_of_the_evidence_comes_out(truth, opened):
    evidence = truth.models[0].evidence
    plain = [row for row, example in enumerate(opened.rows) if not example.protected]
    shown = [name == "news" for name in evidence.held_out.datasets]
    for field in fields(Evidence):
        given = getattr(evidence, field.name)
        # A field that is new is empty here: say how a bundle holds it, and fill it above.
        assert given, field.name
        if field.name == "held_out":
            found = opened.evidence.held_out
            assert same(given.datasets, found.datasets)
            for at in np.flatnonzero(shown):
                assert given.texts[at] == found.texts[at]
                assert same(given.statistics[at], found.statistics[at])
                assert same(given.reference[at], found.reference[at])
                assert all(
                    map(same, (m[at] for m in given.shadows), (m[at] for m in found.shadows))
                )
        else:
            first = getattr(evidence.take(plain), field.name)
            assert same(first, getattr(opened.evidence.take(plain), field.name)), field.name


def test_models_without_such_evidence_come_out_without(truth, bundle):
    for one, other in zip(truth.models[1:], read_bundle(bundle).models[1:], strict=True):
        for name in ("held_out", "prefixed", "tuned", "continuations", "choices", "datasets"):
            assert not getattr(other.evidence, name)
            assert getattr(one.evidence, name) == getattr(other.evidence, name), name


def test_row_kinds_name_every_field():
    for kind, how in ROW_KINDS.items():
        # What a pass cost stands in a file apart, and not in the evidence.
        costs = {"tokens_in"} - set(how.columns)
        assert [f.name for f in fields(how.make) if f.name not in costs] == list(how.columns), kind


def test_nothing_that_a_model_wrote_after_a_protected_text_is_inside(opened, bundle):
    parts = read_archive(bundle)
    kinds = {name.partition("/")[0] for name in parts.parts}
    assert kinds >= {"held_out", "continuations", "guesses", "choices", "gradients", "neighbours"}
    for name in parts.parts:
        whole = json.dumps(parts.table(name).to_pydict(), default=str)
        assert "secret <b>" not in whole, name
        # What is written in the samples: the text behind its fifth character.
        assert "t <b>" not in whole, name
    secret = [row for row, example in enumerate(opened.rows) if example.protected]
    for row in secret:
        for answers in opened.evidence.continuations.values():
            assert answers[row].texts == ()
            assert answers[row].tokens_out == 4
        assert opened.evidence.guesses[PAPER][row].wanted == ()
        assert opened.evidence.tuned["text-all_linear"][row].ids.max() == -1
        assert opened.evidence.prefixed["members-0-2"].statistics[row].ids.max() == -1
    held_out = opened.evidence.held_out
    for at, name in enumerate(held_out.datasets):
        if name == "secret":
            assert held_out.texts[at] == ""
            assert held_out.shadows[1][at].ids.max() == -1
    assert opened.held_out_withheld.tolist() == [name == "secret" for name in held_out.datasets]


def test_reading_what_a_model_wrote_after_a_withheld_text_is_refused(opened):
    evidence = guarded(opened.evidence, opened.withheld, opened.held_out_withheld)
    hidden = int(np.flatnonzero(opened.withheld)[0])
    held_out = int(np.flatnonzero(opened.held_out_withheld)[0])
    examples = list(evidence.examples())
    assert isinstance(examples[hidden], ExampleEvidence)
    for read in (
        lambda: evidence.continuations[SAMPLED][hidden].texts,
        lambda: evidence.continuations[GREEDY][hidden].rest,
        lambda: evidence.guesses[ASKED][hidden].written,
        lambda: evidence.guesses[PAPER][hidden].exact("passage"),
        lambda: evidence.tuned["text-all_linear"][hidden].ids,
        lambda: evidence.prefixed["nonmembers-0-1"].statistics[hidden].ids,
        lambda: evidence.held_out.texts[held_out],
        lambda: evidence.held_out.statistics[held_out].ids,
        lambda: examples[hidden].continuations[GREEDY].beginning,
    ):
        with pytest.raises(TextWithheld):
            read()
    assert evidence.continuations[GREEDY][hidden].tokens_out == 4
    assert evidence.gradients[hidden].whole is not None
    assert evidence.held_out.statistics[held_out].log_probability.sum() < 0


def calibrated(evidence: Evidence, settings: Sequence[Any]) -> list[Column]:
    """A score against the held-out texts of the row's dataset, which it reads."""
    lengths: dict[str, list[int]] = {}
    for dataset, text in zip(evidence.held_out.datasets, evidence.held_out.texts, strict=True):
        assert text
        lengths.setdefault(dataset, []).append(len(text))
    return [
        Column(
            [
                Score(float(len(one) - np.mean(lengths[dataset])))
                for one, dataset in zip(evidence.statistics["text"], evidence.datasets, strict=True)
            ]
        )
    ]


CALIBRATED = Detector(
    name="calibrated", summary="x", needs=(View("text"), HeldOut()), score=calibrated
)


def test_a_detector_that_reads_held_out_texts_is_run_where_they_are(truth, opened):
    """Rows of protected datasets get a reason; all others the score that they have on the run."""
    scores = []
    for model in (truth.models[0], opened):
        candidate = load_candidate(CALIBRATED, model.evidence, taken=())
        runner = CandidateRunner(candidate=candidate, seconds=5)
        runner.check_time(model)
        scores.append(runner.score(model))
        # Rows whose texts are here, alone: the held-out rows of others are withheld all the same.
        news = [row for row, example in enumerate(model.rows) if example.dataset == "news"]
        assert not np.isnan(runner.score(model, news[:5]).values).any()
    on_run, on_bundle = scores
    assert not np.isnan(on_run.values).any()
    assert np.array_equal(np.isnan(on_bundle.values[:, 0]), opened.withheld)
    assert set(on_bundle.reasons.values()) == {REASON}
    assert np.array_equal(on_bundle.values[~opened.withheld], on_run.values[~opened.withheld])
