"""Which variant each copy carries."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from inject.variants.choice import choose_renditions
from inject.variants.rendition import Rendition
from inject.variants.settings import Variants
from tests.inject.streams import spiked_examples


def variants(*kinds, assign_by="examples") -> Variants:
    return Variants.model_validate({"of": kinds, "assign_by": assign_by})


def renditions(members, chosen: Variants, versions=(1, 1, 3)) -> list[Rendition]:
    """Each member's variants, the last kinds with several versions; tokens identify them."""
    return [
        Rendition(member.example_id, kind, f"{kind}-{version}", np.array([kind, version]))
        for kind in range(len(chosen.of))
        for version in range(versions[kind])
        for member in members
    ]


def chosen_for(members, chosen, *, copies=4, seed=0):
    member = np.repeat(np.arange(len(members)), copies)
    copy = np.tile(np.arange(copies), len(members))
    versions = renditions(members, chosen)
    index = choose_renditions(versions, chosen, members, member, copy, seed=seed)
    return [
        (members[place].example_id, int(number), versions[at])
        for place, number, at in zip(member, copy, index, strict=True)
    ]


WEIGHTED = (
    {"kind": "whole", "weight": 2},
    {"kind": "lower_case"},
    {"kind": "replaced", "share": 0.1, "versions": 3},
)


@given(st.integers(1, 80), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_variants_are_assigned_evenly_to_the_examples_of_each_dataset(count, seed):
    members, _ = spiked_examples(count, 0)
    others, _ = spiked_examples(17, 0, dataset="other")
    choices = chosen_for([*members, *others], variants(*WEIGHTED), seed=seed)
    kinds = {}
    for name, _, rendition in choices:
        assert rendition.example_id == name
        assert kinds.setdefault(name, rendition.kind) == rendition.kind
    for group in (members, others):
        counts = Counter(kinds[item.example_id] for item in group)
        for kind, share in enumerate((0.5, 0.25, 0.25)):
            assert abs(counts[kind] - share * len(group)) < 1
    resplit = [replace(item, split="test") for item in [*members, *others]]
    assert kinds == {
        name: item.kind for name, _, item in chosen_for(resplit, variants(*WEIGHTED), seed=seed)
    }


@pytest.mark.parametrize("count", [1, 3])
def test_examples_of_a_small_dataset_have_variants_with_their_weights_as_chances(count):
    members, _ = spiked_examples(count, 0)
    runs = 500
    counts = Counter()
    for seed in range(runs):
        for name, _, item in chosen_for(members, variants(*WEIGHTED), copies=1, seed=seed):
            counts[name, item.kind] += 1
    for item in members:
        for kind, weight in enumerate((0.5, 0.25, 0.25)):
            error = np.sqrt(weight * (1 - weight) / runs)
            assert abs(counts[item.example_id, kind] / runs - weight) < 4.5 * error


@pytest.mark.parametrize("assign_by", ["examples", "copies"])
def test_other_datasets_do_not_change_variants(assign_by):
    members, _ = spiked_examples(40, 0)
    others, _ = spiked_examples(30, 0, dataset="other")
    rule = variants(*WEIGHTED, assign_by=assign_by)
    alone = {(name, copy): rendition.variant for name, copy, rendition in chosen_for(members, rule)}
    joined = {
        (name, copy): rendition.variant
        for name, copy, rendition in chosen_for([*others, *members], rule)
    }
    assert {key: joined[key] for key in alone} == alone


def test_variants_are_assigned_to_copies_independently_by_weight():
    from scipy.stats import chisquare

    members, _ = spiked_examples(400, 0)
    rule = variants(*WEIGHTED, assign_by="copies")
    choices = chosen_for(members, rule, copies=5)
    counts = Counter(rendition.kind for _, _, rendition in choices)
    assert chisquare([counts[0], counts[1], counts[2]], [1_000, 500, 500]).pvalue > 1e-4
    fewer = {
        (name, copy): rendition.variant
        for name, copy, rendition in chosen_for(members, rule, copies=2)
    }
    assert all(
        fewer[name, copy] == rendition.variant
        for name, copy, rendition in choices
        if (name, copy) in fewer
    )


def test_copies_alternate_between_versions():
    members, _ = spiked_examples(50, 0)
    rule = variants(WEIGHTED[2])
    member = np.repeat(np.arange(50), 6)
    copy = np.tile(np.arange(6), 50)
    choices = renditions(members, rule, versions=(3,))
    index = choose_renditions(choices, rule, members, member, copy, seed=0)
    versions = np.array([choices[at].tokens[1] for at in index]).reshape(50, 6)
    for row in versions:
        assert Counter(row.tolist()) == {0: 2, 1: 2, 2: 2}
        assert all((later - sooner) % 3 == 1 for sooner, later in pairwise(row))
    # The first version differs from example to example.
    assert set(versions[:, 0].tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([{"kind": "replaced", "share": 1.0}], "less than 1"),
        ([{"kind": "whole"}, {"kind": "whole", "weight": 2}], "given twice"),
        ([{"kind": "paraphrase", "by": "model"}], "needs the model"),
        (
            [{"kind": "paraphrase", "by": "model", "model": "x", "api_key_variable": "K"}],
            "give base_url",
        ),
    ],
)
def test_invalid_variants_are_rejected(wrong, message):
    with pytest.raises(ValidationError, match=message):
        Variants.model_validate({"of": wrong})
