"""Detectors of token statistics on a model that learned texts by heart: members score higher."""

import numpy as np
import pytest

from detect.detector_settings import parse_detectors
from detect.engine.forward_pass import token_statistics
from detect.evidence import Evidence
from detect.evidence.entities import Entities
from detect.evidence.token_counts import count_texts
from detect.named_entities import NamedEntity
from detect.policy import ScoringPolicy
from detect.scoring import score_rows
from tests.conftest import make_texts
from tests.detect.memorised import Memorised

SETTINGS = (
    "wbc",
    "ez_mia",
    "ez_mia:skip_first=true",
    "gap_k",
    "min_k:window=3",
    "min_k_plus_plus:window=3",
    "acmia",
    "acmia:form=derivative",
    "acmia:form=contrast:beta=0.5",
    "acmia:form=contrast:beta=2",
    "acmia:beta=2",
    "tag_tab",
    "tag_tab:tokens=first",
    "tag_tab:k=1:entities=one_word",
)


@pytest.fixture(scope="module")
def evidence(memorised: Memorised, tiny_tokenizer) -> dict[str, Evidence]:
    """Of the model that learned the texts, and of the model before, each beside the latter."""
    policy = ScoringPolicy(inverse_temperatures=(0.5, 2.0))
    words = count_texts(tiny_tokenizer, make_texts(200, seed=5))
    before = token_statistics(memorised.before, memorised.texts, policy)
    after = token_statistics(memorised.after, memorised.texts, policy)
    return {
        name: Evidence(
            texts=memorised.texts,
            statistics={"text": rows},
            reference=before,
            frequency=words,
            further={Entities(): [second_words(text) for text in memorised.texts]},
        )
        for name, rows in (("after", after), ("before", before))
    }


def second_words(text: str) -> list[NamedEntity]:
    """Return the second word of a text, as a tagger would return a name."""
    start = text.index(" ") + 1
    return [NamedEntity(start, text.index(" ", start), "PERSON")]


def scores(given: Evidence, text: str) -> np.ndarray:
    ids = [str(row) for row in range(len(given.texts))]
    found: np.ndarray = (
        score_rows(ids, given, parse_detectors(text)).table.column("score").to_numpy()
    )
    return found


def area(values: np.ndarray, labels: list[bool]) -> float:
    inside = np.array(labels)
    above = values[inside][:, None] - values[~inside][None]
    return float((above > 0).mean() + 0.5 * (above == 0).mean())


@pytest.mark.parametrize("text", SETTINGS)
def test_members_score_higher_and_before_training_they_do_not(text, evidence, memorised):
    assert area(scores(evidence["after"], text), memorised.labels) > 0.95
    assert 0.15 < area(scores(evidence["before"], text), memorised.labels) < 0.85


def test_the_published_code_takes_texts_learned_without_an_error_for_strangers(evidence, memorised):
    """`empty=zero` is what the code does; the default follows the paper."""
    values = scores(evidence["after"], "ez_mia:empty=zero")
    assert (values[np.array(memorised.labels)] == 0).any()
    assert area(values, memorised.labels) < 0.3


@pytest.mark.parametrize("name", ["wbc", "ez_mia"])
def test_two_equal_models_say_nothing(name, evidence):
    assert len(set(scores(evidence["before"], name).tolist())) == 1
