from dataclasses import replace

import numpy as np
import pytest

from inject import keyed
from inject.errors import InputError
from inject.examples.example import Example
from inject.plan.settings import Copies, Placement
from tests.inject import streams
from tests.inject.streams import chisquare, random_source, spiked_examples

SPLICE = Placement(policy="splice")


def plan_for(examples, tokens, *, placement=SPLICE, source=None, **more):
    source = source or random_source(20_000, seed=9, documents=300)
    return streams.plan_for(examples, tokens, placement, source=source, **more)


def test_splice_anchors_are_uniform_over_the_background():
    examples, tokens = spiked_examples(3000, 0)
    tokens = {name: ids[:2] for name, ids in tokens.items()}
    plan = plan_for(examples, tokens, copies=Copies(fixed=1))
    anchors = plan.copies["anchor"].to_numpy()
    counts, _ = np.histogram(anchors, bins=20, range=(0, plan.facts.background))
    assert chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("policy", ["splice", "document"])
def test_copy_is_placed_at_its_first_draw_inside_the_background(policy):
    # So many documents that draws often hit the start of one.
    source = random_source(2000, seed=9, documents=1500)
    examples, tokens = spiked_examples(40, 0)
    # With this seed one draw is the first position after the background.
    plan = plan_for(examples, tokens, placement=Placement(policy=policy), source=source, seed=3)
    starts = source.doc_starts.tolist()
    redrawn = next_to_it = 0
    for row in plan.copies.to_pylist():
        item = keyed.item_key(row["example_id"])
        for number in range(row["redraws"] + 1):
            word = keyed.words(3, keyed.Stream.ANCHOR, item, row["copy"], number)
            first_draw = int(keyed.below(2000, word))
            assert (first_draw < plan.facts.background) == (number == row["redraws"])
            next_to_it += first_draw == plan.facts.background
        redrawn += row["redraws"] > 0
        expected = first_draw
        if policy == "document":
            expected = max(start for start in starts if start <= first_draw)
        assert (row["drawn"], row["anchor"]) == (first_draw, expected)
    assert redrawn > 10
    assert next_to_it == (policy == "splice")


@pytest.mark.parametrize(
    "placement",
    [Placement(policy="splice", straddle="forbid"), Placement(policy="window")],
    ids=str,
)
def test_row_order_does_not_change_crowded_windows(placement):
    source = random_source(1600, seed=9)
    examples, tokens = spiked_examples(40, 0)
    plans = [
        plan_for(rows, tokens, placement=placement, source=source, copies=Copies(fixed=2))
        for rows in (examples, examples[::-1])
    ]
    columns = ["example_id", "copy", "anchor", "drawn", "redraws", "tiebreak"]
    first, other = (
        plan.copies.select(columns).sort_by([("example_id", "ascending"), ("copy", "ascending")])
        for plan in plans
    )
    assert first.equals(other)
    assert sum(first["redraws"].to_pylist()) > 10


@pytest.mark.parametrize(
    ("budget", "copies", "message"),
    [
        (990 + 5, 10, "less than 1 %"),
        (63, 1, "63 tokens is shorter than one window of 64"),
        (30_000, 1, "has 20,000 tokens, but the budget requires 30,000"),
    ],
)
def test_budget_without_room_is_rejected(budget, copies, message):
    examples, _ = spiked_examples(1, 0)
    tokens = {"toy-0": np.arange(100, 199)}
    with pytest.raises(InputError, match=message):
        plan_for(examples, tokens, copies=Copies(fixed=copies), budget=budget)


def test_same_text_may_occur_in_two_datasets():
    examples, tokens = spiked_examples(2, 0)
    twin = Example(
        example_id="toy-0", dataset="other", source_id="7", group="g", text="toy-0", side="member"
    )
    with pytest.raises(InputError, match="toy 0 and other 7"):
        plan_for([*examples, twin], tokens)


@pytest.mark.parametrize(
    ("policy", "copies"),
    [
        ("splice", Copies(levels=(1, 2, 5))),
        ("document", Copies(poisson=2)),
        ("window", Copies(levels=(1, 2, 5))),
    ],
)
def test_dropping_members_does_not_change_other_doses_and_places(policy, copies):
    """As for a model trained without a forget set, or on a half of all candidates."""
    placement = Placement(policy=policy)
    examples, tokens = spiked_examples(40, 20)
    whole = plan_for(examples, tokens, placement=placement, copies=copies)
    gone = {f"toy-{index}" for index in range(0, 40, 3)}
    left = [
        replace(example, side="nonmember") if example.example_id in gone else example
        for example in examples
    ]
    part = plan_for(left, tokens, placement=placement, copies=copies, candidates=examples[:40])
    assert part.realised() == {
        name: 0 if name in gone else count for name, count in whole.realised().items()
    }
    before = {(row["example_id"], row["copy"]): row for row in whole.copies.to_pylist()}
    shared = part.copies.to_pylist()
    assert shared
    for row in shared:
        other = before[row["example_id"], row["copy"]]
        if row["redraws"] == other["redraws"]:
            assert row["drawn"] == other["drawn"]
        else:
            # Fewer copies leave more room, so no copy is drawn more often.
            assert row["redraws"] < other["redraws"] or policy == "window"


def test_windows_with_equal_copies_are_identical_across_plans():
    placement = Placement(policy="window")
    source = random_source(20_000, seed=9, documents=300)
    examples, tokens = spiked_examples(40, 20)
    plans = [
        plan_for(side, tokens, placement=placement, source=source, candidates=examples)
        for side in (
            examples,
            [
                replace(example, side="nonmember") if i % 2 else example
                for i, example in enumerate(examples)
            ],
            [replace(example, side="nonmember") for example in examples],
        )
    ]
    windows_by_plan = []
    for plan in plans:
        windows: dict[int, set] = {}
        for row in plan.copies.to_pylist():
            windows.setdefault(row["anchor"] // 64, set()).add((row["example_id"], row["copy"]))
        windows_by_plan.append(windows)
    views = [plan.view(source) for plan in plans]
    same = differing = 0
    for window in range(20_000 // 64):
        for other in (1, 2):
            equal = windows_by_plan[0].get(window) == windows_by_plan[other].get(window)
            tokens_equal = np.array_equal(views[0].window(window), views[other].window(window))
            assert tokens_equal == equal
            same += equal
            differing += not equal
    assert same > 300
    assert differing > 20
    # The last plan has no members: its stream is the clean corpus.
    assert np.array_equal(views[2].read(0, 20_000), source.read(0, 20_000))


@pytest.mark.parametrize("copies", [Copies(levels=(1, 3)), Copies(poisson=2)], ids=str)
def test_another_draw_has_independent_doses_and_the_same_places(copies):
    examples, tokens = spiked_examples(60, 0)
    window = Placement(policy="window")
    plans = [
        plan_for(examples, tokens, copies=copies, placement=window, draw_number=number)
        for number in (0, 1, 2)
    ]
    counts = np.array([list(plan.realised().values()) for plan in plans])
    # Independent, so far from equal, and of the same rule.
    assert abs(np.corrcoef(counts)[np.triu_indices(3, 1)]).max() < 0.4
    assert abs(counts.mean(axis=1) - 2).max() < 0.6
    first, *others = (
        {
            (row["example_id"], row["copy"]): row["drawn"]
            for row in plan.copies.to_pylist()
            if row["redraws"] == 0
        }
        for plan in plans
    )
    for other in others:
        shared = first.keys() & other.keys()
        assert len(shared) > 30
        assert all(first[key] == other[key] for key in shared)
