"""Labels and positions of windows against brute force over the full stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.plan.settings import Copies, Placement
from inject.stream.view import clean_view
from tests.inject.streams import plan_for, random_source, spiked_examples
from train.loop.dataset import WindowSequence
from train.window_inputs import (
    IGNORED,
    WindowInputs,
    document_begins,
    document_positions,
    window_inputs,
)

CONTEXT = 32


def plan_view(policy: str, seed: int):
    examples, tokens = spiked_examples(8, 2, seed=seed)
    source = random_source(1_200, seed=seed)
    settings = {"copies": Copies(fixed=2), "budget": 1_000, "context": CONTEXT, "seed": seed}
    plan = plan_for(examples, tokens, Placement(policy=policy), source=source, **settings)
    return plan.view(source), plan.names(), tokens


@given(seed=st.integers(0, 200), policy=st.sampled_from(["splice", "window", "document"]))
@settings(max_examples=30, deadline=None)
def test_labels_are_exactly_the_answers_of_the_copies(seed: int, policy: str) -> None:
    view, names, tokens = plan_view(policy, seed)
    random = np.random.default_rng(seed)
    answers = {name: random.random(len(ids)) < 0.4 for name, ids in tokens.items()}
    fed = WindowInputs(view, masks=[answers[name.example_id] for name in names], separate=False)
    # Oracle: write each copy's answer tokens at its position in an array over the stream.
    expected = np.full(view.n_tokens, IGNORED)
    for name, start in zip(names, view.text_starts(), strict=True):
        for place, (token, is_answer) in enumerate(
            zip(tokens[name.example_id], answers[name.example_id], strict=True)
        ):
            if is_answer:
                expected[start + place] = token
    for window in range(view.n_windows):
        inputs = fed(window, view.window(window))
        assert set(inputs) == {"labels"}
        assert np.array_equal(inputs["labels"], expected[window * CONTEXT : (window + 1) * CONTEXT])


@given(seed=st.integers(0, 200), policy=st.sampled_from(["splice", "window", "document"]))
@settings(max_examples=30, deadline=None)
def test_positions_count_from_the_start_of_each_document(seed: int, policy: str) -> None:
    view, _, _ = plan_view(policy, seed)
    fed = WindowInputs(view, masks=None, separate=True)
    starts = set(view.document_starts().tolist())
    for window in range(view.n_windows):
        ids = view.window(window)
        before = ids.copy()
        inputs = fed(window, ids)
        place = 0
        for offset in range(CONTEXT):
            begins = offset == 0 or window * CONTEXT + offset in starts
            place = 0 if begins else place + 1
            assert inputs["position_ids"][offset] == place
            assert inputs["labels"][offset] == (IGNORED if begins else ids[offset])
        assert np.array_equal(ids, before)


def test_documents_of_one_token_restart_positions() -> None:
    begins = document_begins(np.array([0, 10, 11, 12, 20]), 8, 8)
    assert begins.tolist() == [0, 2, 3, 4]
    assert document_positions(begins, 8).tolist() == [0, 1, 0, 0, 0, 1, 2, 3]


@pytest.mark.parametrize(("masks", "separate"), [([], False), (None, True)])
def test_window_inputs_exist_only_if_configured(masks, separate: bool) -> None:
    view, _, _ = plan_view("splice", 0)
    assert window_inputs(view, masks=None, separate=False) is None
    assert window_inputs(view, masks=masks, separate=separate) is not None


def test_filler_windows_carry_no_loss():
    view = clean_view(random_source(50, seed=1), tokens=50, context=10)
    windows = WindowSequence(view, epochs=1, seed=0, multiple_of=4)
    assert len(windows) == 8
    items = [windows[position] for position in range(8)]
    assert sorted(item["fed"].window for item in items) == [-1, -1, -1, 0, 1, 2, 3, 4]
    for item in items:
        labels = item["labels"]
        assert (
            np.array_equal(labels, item["input_ids"])
            if item["fed"].window >= 0
            else (labels == -100).all()
        )
