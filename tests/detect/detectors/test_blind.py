import numpy as np
import pytest

from detect.detectors.blind import half_circle_folds, out_of_fold
from detect.evidence import Evidence
from detect.registry import get_detector
from tests.conftest import make_texts

FEATURES = ("words", "tfidf", "length")


def auc(members: np.ndarray, scores: np.ndarray) -> float:
    above = scores[members][:, None] - scores[~members][None, :]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def random_sides(count: int, random: np.random.Generator) -> np.ndarray:
    members = np.zeros(count, bool)
    members[random.permutation(count)[: count // 2]] = True
    return members


def test_similar_sides_are_indistinguishable():
    random = np.random.Generator(np.random.Philox(key=5))
    areas = []
    for split in range(24):
        texts = make_texts(100, seed=split, words=12)
        members = random_sides(100, random)
        areas.append(auc(members, out_of_fold(texts, members, texts, "words")))
    # An AUC of 50 against 50 has a standard error of sqrt(101 / 30000) = 0.058, the mean of 24
    # one of 0.0118: within three and a half of it.
    assert np.mean(areas) == pytest.approx(0.5, abs=0.041)


@pytest.mark.parametrize("features", FEATURES)
def test_different_sides_are_distinguished(features):
    random = np.random.Generator(np.random.Philox(key=6))
    members = random_sides(120, random)
    texts = [
        text + " in the year of the harvest, they say, and long after" * int(member)
        for text, member in zip(make_texts(120, words=12), members, strict=True)
    ]
    assert auc(members, out_of_fold(texts, members, texts, features)) > 0.95


def test_row_order_does_not_change_scores():
    random = np.random.Generator(np.random.Philox(key=7))
    texts, members = make_texts(60), random_sides(60, random)
    groups = [f"g{row % 20}" for row in range(60)]
    first = out_of_fold(texts, members, groups, "words")
    order = random.permutation(60)
    again = out_of_fold(
        [texts[row] for row in order], members[order], [groups[row] for row in order], "words"
    )
    np.testing.assert_array_equal(first[order], again)


def test_groups_stay_in_one_fold_and_rows_never_score_each_other():
    random = np.random.Generator(np.random.Philox(key=8))
    members = random_sides(90, random)
    groups = [f"{member}{row % 15}" for row, member in enumerate(members)]
    folds = half_circle_folds(members, groups)
    trains_for = np.zeros((90, 90), bool)
    for train, test in folds:
        assert not {groups[row] for row in train} & {groups[row] for row in test}
        trains_for[np.ix_(train, test)] = True
    assert not (trains_for & trains_for.T).any()
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(90))


def score(texts, members, **parameters):
    detector = get_detector("blind").detector
    evidence = Evidence(texts=texts, statistics={}, members=members)
    (column,) = detector.score(evidence, [detector.parameters.model_validate(parameters)])
    return column.scores


def test_small_sides_use_fewer_folds_or_report_a_reason():
    texts = make_texts(8)
    scores = score(texts, [True] * 4 + [False] * 4)
    assert all(result.reason is None and 0 <= result.value <= 1 for result in scores)
    for members in ([True] * 2 + [False] * 6, [True] * 8):
        assert {result.reason for result in score(texts, members)} == {
            "fewer than 3 groups of members or of non-members"
        }


def test_empty_texts_and_texts_without_words_have_a_reason():
    scores = score(["", *make_texts(8)], [True] * 4 + [False] * 5)
    assert scores[0].reason == "empty text"
    assert all(result.reason is None for result in scores[1:])
    signs = ["!", "?", "…", "-", ".", ",", ";", ":", "+", "="]
    assert {result.reason for result in score(signs, [True, False] * 5)} == {
        "no words in the texts"
    }
