"""info_probe and ts_slot: what is counted, and a model that learned by heart."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from detect.detector_settings import needs_of, parse_detectors
from detect.evidence import Evidence
from detect.generation.guesses import (
    GuessedText,
    TextToMask,
    guess,
    known_parts,
    mask_text,
)
from detect.generation.word_statistics import causal_words
from detect.registry import get_detector
from detect.scoring import score_rows
from detect.targets.local import LocalTextModel
from scripts.exact_match_gpqa import decision_rates


def given_guesses(name, *rows, texts=None, **parameters):
    """Score made-up guesses; return the column."""
    detector = get_detector(name).detector
    setting = detector.parameters.model_validate(parameters)
    (need,) = detector.needs_with(setting)
    evidence = Evidence(
        texts=texts or ["A text."] * len(rows), statistics={}, guesses={need.request: rows}
    )
    (column,) = detector.score(evidence, [setting])
    return column


ROWS = (
    GuessedText(("Arthur", "Ford", "Zaphod"), ("Arthur", "Output: ford", "Trillian"), 0, 30, 6),
    GuessedText(("Arthur",), ("<word>Arthur</word>",), 2, 10, 2),
    GuessedText(("Arthur",), ("Ford",), 0, 10, 2),
    GuessedText((), reason="no word surprises the reference model enough"),
    GuessedText((), filtered=3),
)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("number", [2, 1, 0, 0, 0]),
        ("share", [2 / 3, 1, 0, None, None]),
        # Two or more: one may be a spurious match (appendix A).
        ("decision", [1, 0, 0, 0, 0]),
    ],
)
def test_reconstructions_are_counted(measure, expected):
    column = given_guesses("info_probe", *ROWS, measure=measure)
    for score, value in zip(column.scores, expected, strict=True):
        if value is None:
            assert math.isnan(score.value)
            assert score.reason
        else:
            assert score.value == pytest.approx(value)
    assert column.notes == (
        "3 of 5 masked parts were put back exactly (60.0%); 5 more were left to the knowledge "
        "filter; 50 tokens in, 10 out.",
    )


def test_an_empty_text_has_no_score():
    column = given_guesses("info_probe", GuessedText((), reason="empty text"), texts=[" "])
    assert column.scores[0].reason == "empty text"


def test_info_probe_asks_as_the_paper_does():
    (setting,) = parse_detectors("info_probe")
    (need,) = setting.needs
    request = need.request
    assert (request.method, request.prompt, request.limit) == ("prob", "passage", 10)
    assert (request.threshold, request.candidates) == (-12, "nouns")
    (ours,) = parse_detectors("info_probe:candidates=words")[0].needs
    assert ours.request == replace(request, candidates="words")
    # Names are found by a rule, whatever else would be masked.
    persons = parse_detectors("info_probe:select=person,info_probe:select=person:candidates=words")
    assert len(needs_of(persons)) == 1
    (ranked,) = parse_detectors("info_probe:select=rank:filtered=true")[0].needs
    assert (ranked.request.threshold, ranked.request.filtered) == (2000, True)
    one_pass = parse_detectors("info_probe,info_probe:measure=share,info_probe:measure=decision")
    assert len(needs_of(one_pass)) == 1


def test_slots_are_compared_exactly_or_by_rouge_l():
    rows = (
        GuessedText(("the red planet",), ("The red planet.",)),
        GuessedText(("the red planet",), ("the big red moon",)),
        GuessedText((), reason="it has no question"),
    )
    exact = given_guesses("ts_slot", *rows, slot="option").scores
    assert [score.value for score in exact[:2]] == [1.0, 0.0]
    assert exact[2].reason == "it has no question"
    rouge = given_guesses("ts_slot", *rows, slot="option", measure="rouge_l").scores
    # "the red" of three words and of four: 2 · 2 / (3 + 4).
    assert [score.value for score in rouge[:2]] == pytest.approx([1.0, 4 / 7])


PROBES = (
    "info_probe:prompt=plain:candidates=words:log_probability=-3.5",
    "info_probe:prompt=plain:candidates=words:select=rank:rank=12",
    "info_probe:prompt=plain:candidates=words:log_probability=-3.5:measure=share",
    "info_probe:prompt=plain:candidates=words:log_probability=-3.5:measure=decision",
    "ts_slot:prompt=plain",
    "ts_slot:prompt=plain:slot=option",
)


@pytest.fixture(scope="module")
def scored(memorised):
    """Scores by (model, text of the setting); the model before training is the reference."""
    settings = parse_detectors(",".join(PROBES))
    words = causal_words(memorised.before, memorised.texts)
    # The last word of each text is a wrong option that the text brings.
    texts = [
        TextToMask(
            text,
            {"question": text, "options": [text.split()[-1], "none", "all"], "answer": "none"},
            own,
        )
        for text, own in zip(memorised.texts, words, strict=True)
    ]
    found = {}
    for target in (memorised.before, memorised.after):
        evidence = Evidence(
            texts=memorised.texts,
            statistics={},
            guesses={
                need.request: guess(
                    LocalTextModel(target),
                    [mask_text(one, need.request) for one in texts],
                    need.request,
                )
                for need in needs_of(settings)
            },
        )
        ids = [str(row) for row in range(len(memorised.texts))]
        table = score_rows(ids, evidence, settings).table.to_pandas()
        for key, rows in table.groupby(["detector", "setting"], sort=False):
            found[target.name, *key] = rows["score"].to_numpy()
    return found


def test_a_model_that_learned_by_heart_puts_words_back(scored, memorised):
    labels = np.array(memorised.labels)
    for (model, detector, setting), scores in scored.items():
        if "option" in setting:
            # Half of the drawn options are no part of the text.
            continue
        auc = roc_auc_score(labels, scores)
        if model == "after":
            assert auc >= 0.9, (detector, setting, auc)
        else:
            assert 0.15 <= auc <= 0.85, (detector, setting, auc)


def test_decisions_find_members_and_nothing_before(scored, memorised):
    """Done when: precision, recall and F-beta (0.1) on ground truth."""
    labels = memorised.labels

    def rates(model):
        scores = next(
            scores for key, scores in scored.items() if key[0] == model and "decision" in key[2]
        )
        return decision_rates(labels, scores == 1)

    after, before = rates("after"), rates("before")
    assert after.recall >= 0.9
    assert after.precision >= 0.75
    assert after.f_beta >= 0.75
    assert before.recall <= 0.25


def test_a_filter_that_knows_the_text_leaves_nothing(memorised):
    """What the secondary model guesses is dropped: the model itself guesses its members."""
    (setting,) = parse_detectors("info_probe:prompt=plain:log_probability=-3.5:filtered=true")
    (need,) = setting.needs
    words = causal_words(memorised.before, memorised.texts)
    masked = [
        mask_text(TextToMask(text, words=own), need.request)
        for text, own in zip(memorised.texts, words, strict=True)
    ]
    model = LocalTextModel(memorised.after)
    plain = guess(model, masked, replace(need.request, filtered=False))
    # The filter's own prompts ask for instructions that this model cannot follow, so its answers
    # are put where they belong.
    single = [replace(row, written=tuple(row.guesses("plain")), wanted=row.wanted) for row in plain]
    lists = [replace(row, written=("",) * len(row.wanted)) for row in plain]
    found = guess(model, masked, need.request, known=known_parts(single, lists))
    assert sum(sum(row.exact("plain")) for row in found) == 0
    assert sum(row.filtered for row in found) == sum(sum(row.exact("plain")) for row in plain) > 0


def test_decision_rates():
    found = decision_rates([True, True, True, False], [True, True, False, True])
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(2 / 3)
    assert found.f_beta == pytest.approx(2 / 3)
    # (1 + 0.01) · 1 · 0.5 / (0.01 · 1 + 0.5), by hand.
    found = decision_rates([True, True, False], [True, False, False])
    assert found.f_beta == pytest.approx(1.01 * 0.5 / 0.51)
    nothing = decision_rates([True, False], [False, False])
    assert math.isnan(nothing.precision)
    assert (nothing.recall, nothing.f_beta) == (0.0, 0.0)
    assert math.isnan(decision_rates([False], [True]).recall)
