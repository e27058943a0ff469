"""Generated facts: pure, distinct, exchangeable, answerable only from memory, paraphrased."""

import hashlib
import json
import re
from collections import Counter
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.examples.datasets.fictional import DATASET, fictional_row, fictional_rows
from inject.examples.datasets.source import DatasetSource
from inject.examples.example import Row
from inject.examples.template import parse_template

FORMS = ("biography", "passage", "choice", "question")
TEMPLATES = [parse_template(text) for text in (DATASET.template, *DATASET.alternatives)]


def text_of(fields):
    return next(item for item in TEMPLATES if item.fits(fields)).render(fields).text


@cache
def all_rows() -> tuple[Row, ...]:
    return tuple(fictional_rows(DatasetSource(seed=0, limit=2_000)))


def rows(count: int) -> tuple[Row, ...]:
    return all_rows()[:count]


def words(text: str) -> list[str]:
    return re.findall(r"[\w,]*\w", text)


def says(text: str, value: str) -> bool:
    """Whether the text contains the value as separate words; 53,975 does not contain 53."""
    return re.search(rf"(?<![\w,]){re.escape(value)}(?!\w|,\d)", text) is not None


def facts(fields) -> list[str]:
    return [value for name, value in fields.items() if name.startswith("fact_")]


def plain_grams(fields, size: int) -> set[tuple[str, ...]]:
    """Runs of words of the text, none of which is a name, a number or part of a value."""
    values = {word for value in facts(fields) for word in words(value)}
    own = [w if w not in values and w[0].islower() else "" for w in words(text_of(fields))]
    grams = (tuple(own[start : start + size]) for start in range(len(own) - size + 1))
    return {gram for gram in grams if all(gram)}


@given(seed=st.integers(0, 2**64 - 1), index=st.integers(0, 2**61 - 2))
@settings(max_examples=20, deadline=None)
def test_row_depends_only_on_seed_and_index(seed, index):
    row = fictional_row(seed, index)
    assert row == fictional_row(seed, index)
    assert row.fields != fictional_row(seed, index + 1).fields
    assert row.fields != fictional_row(seed ^ 1, index).fields


def test_more_rows_do_not_move_others_and_first_skips_rows():
    whole = rows(60)
    assert tuple(fictional_rows(DatasetSource(seed=0, limit=20))) == whole[:20]
    behind = DatasetSource(seed=0, limit=20, options={"first": 40})
    assert tuple(fictional_rows(behind)) == whole[40:]


def test_forms_are_equally_likely_and_form_the_strata():
    counted = Counter(row.stratum for row in rows(2000))
    assert set(counted) == set(FORMS)
    assert all(abs(count - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75) for count in counted.values())
    assert all(row.stratum == row.fields["form"] for row in rows(50))
    only = DatasetSource(seed=0, limit=30, options={"forms": ["choice"]})
    assert {row.stratum for row in fictional_rows(only)} == {"choice"}


def test_masked_words_occur_exactly_once():
    for row in rows(300):
        for fields in (row.fields, *row.paraphrases):
            text = text_of(fields)
            assert fields["masked"]
            fact_words = {word for value in facts(fields) for word in value.split()}
            for word in fields["masked"]:
                assert words(text).count(word) == 1
                assert text.count(word) == 1
                assert word in fact_words


def test_values_are_independent():
    """Mutual information of parts of different values, by a permutation test."""
    generator = np.random.default_rng(0)
    people_told = [row.fields for row in rows(2000) if row.fields["kind"] == "person"]
    pairs = [
        ([fields["fact_name"][0] for fields in people_told], lambda f: f["fact_place"][0]),
        ([fields["fact_place"][-2:] for fields in people_told], lambda f: f["fact_year"][:2]),
        ([fields["fact_name"][-2:] for fields in people_told], lambda f: f["fact_trade"][0]),
    ]
    for first, second_of in pairs:
        second = [second_of(fields) for fields in people_told]
        seen = _information(first, second)
        shuffled = [_information(first, list(generator.permutation(second))) for _ in range(40)]
        assert seen < np.mean(shuffled) + 4 * np.std(shuffled)


def _information(first, second) -> float:
    joint, left, right = Counter(zip(first, second, strict=True)), Counter(first), Counter(second)
    total = len(first)
    return sum(
        count / total * np.log(count * total / (left[a] * right[b]))
        for (a, b), count in joint.items()
    )


def test_yes_and_no_are_balanced_and_true():
    questions = [row for row in rows(2000) if row.stratum == "passage"]
    yes = sum(row.fields["answer"] == "yes" for row in questions)
    assert abs(yes - len(questions) / 2) < 4 * np.sqrt(len(questions) / 4)
    for row in questions:
        for fields in (row.fields, *row.paraphrases):
            truth = fields[f"fact_{fields['asked']}"]
            assert says(fields["question"], truth) == (fields["answer"] == "yes")


def test_options_contain_the_truth_once_at_a_uniform_position():
    chosen = [row for row in rows(2000) if row.stratum == "choice"]
    places = Counter(row.fields["answer"] for row in chosen)
    assert set(places) == set("ABCD")
    assert all(
        abs(count - len(chosen) / 4) < 4 * np.sqrt(len(chosen) * 3 / 16)
        for count in places.values()
    )
    for row in chosen:
        for fields in (row.fields, *row.paraphrases):
            truth = fields[f"fact_{fields['asked']}"]
            assert len(set(fields["options"])) == 4
            assert fields["options"]["ABCD".index(fields["answer"])] == truth
            assert not says(fields["question"], truth)
        answers = {fields["answer"] for fields in (row.fields, *row.paraphrases)}
        assert answers == set("ABCD")


def test_paraphrases_contain_all_facts_in_other_words():
    shared_eight = shared_plain = pairs = 0
    for row in rows(300):
        assert len(row.paraphrases) == 3
        assert len({text_of(fields) for fields in (row.fields, *row.paraphrases)}) == 4
        own = plain_grams(row.fields, 5)
        text = words(text_of(row.fields))
        eights = {tuple(text[start : start + 8]) for start in range(len(text) - 7)}
        for fields in row.paraphrases:
            assert facts(fields) == facts(row.fields)
            prose = text_of(fields).lower()
            assert all(value.lower() in prose for value in facts(fields))
            other = words(text_of(fields))
            common = eights & {tuple(other[start : start + 8]) for start in range(len(other) - 7)}
            pairs += 1
            shared_eight += bool(common)
            shared_plain += bool(own & plain_grams(fields, 5))
    assert shared_eight / pairs < 0.05
    assert shared_plain / pairs < 0.05


def test_rows_are_byte_identical_to_the_recorded_ones():
    """The digest was made at commit 06c2785, when the code contained the words."""
    state = hashlib.sha256()
    for seed in (0, 7):
        for index in range(200):
            row = fictional_row(seed, index)
            values = [row.fields, row.source_id, row.stratum, row.paraphrases]
            state.update(json.dumps(values, sort_keys=True).encode())
    assert state.hexdigest() == "122ce90731f3d706fa0be22872092ba646870e16551b719301a72105194dc5e3"
