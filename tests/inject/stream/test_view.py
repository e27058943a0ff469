import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.plan.settings import Copies, Placement
from inject.stream.view import Insertions, SourceSlice, StreamView, clean_view
from tests.inject.streams import (
    naive_stream,
    plan_for,
    random_source,
    spiked_examples,
)


@st.composite
def placements(draw):
    policy = draw(st.sampled_from(["splice", "window", "document"]))
    contained = draw(st.booleans())
    separators = ["end", "start_end", None]
    if policy != "document":
        separators += ["none", "blank_line"]
    return Placement(
        policy=policy,
        between=draw(st.sampled_from([(0, 1), (0, 0.5), (0.3, 0.9)])) if contained else (0, 1),
        straddle="forbid" if contained else None,
        separator=draw(st.sampled_from(separators)),
    )


@st.composite
def plans(draw):
    """A small plan of any policy, separator and dose that has room, with its source."""
    seed = draw(st.integers(0, 2**32))
    placement = draw(placements())
    budget = draw(st.integers(1500, 4000))
    # Documents must be short if a copy must fit between two of them in one window.
    documents = 600 if placement.policy == "document" and placement.contained else 20
    source = random_source(budget + draw(st.integers(0, 200)), seed=seed, documents=documents)
    examples, tokens = spiked_examples(draw(st.integers(1, 8)), 3, seed=seed)
    doses = [Copies(fixed=1), Copies(poisson=1.5), Copies(levels=(1, 3))]
    try:
        plan = plan_for(
            examples,
            tokens,
            placement,
            source=source,
            copies=draw(st.sampled_from(doses)),
            budget=budget,
            context=draw(st.integers(40 if placement.contained else 5, 100)),
            seed=seed,
        )
    except InputError:
        # A draw without room for its copies does not give a plan.
        reject()
    return source, examples, tokens, plan


def composed(source, plan):
    """The stream of a plan by brute force."""
    window = plan.facts.context if plan.facts.policy == "window" else None
    return naive_stream(source, plan.insertions(), plan.facts.budget, window=window)


@given(plans(), st.data())
@settings(max_examples=50, deadline=None)
def test_view_matches_brute_force_composition(made, data):
    source, _, _, plan = made
    view = plan.view(source)
    whole = composed(source, plan)
    assert np.array_equal(view.read(0, view.n_tokens), whole)
    start = data.draw(st.integers(0, view.n_tokens))
    stop = data.draw(st.integers(start, view.n_tokens))
    assert np.array_equal(view.read(start, stop), whole[start:stop])
    assert view.n_windows == len(whole) // view.context
    for window in range(view.n_windows):
        low = window * view.context
        assert np.array_equal(view.window(window), whole[low : low + view.context])


def test_slice_positions_start_at_0():
    source = random_source(300, seed=3)
    # From the start of one document to the start of another.
    start, stop = source.doc_starts[[5, 15]].tolist()
    stretch = SourceSlice(source, start, stop)
    assert np.array_equal(stretch.read(3, 20), source.tokens[start + 3 : start + 20])
    assert stretch.doc_starts.tolist() == (source.doc_starts[5:15] - start).tolist()
    assert stretch.n_tokens == stop - start


@pytest.mark.parametrize(
    ("layout", "anchor", "length", "message"),
    [
        ("flow", 96, 5, "anchor is past the end of the background"),
        ("window", 95, 6, "more payload than it has tokens"),
        ("window", 100, 2, "after the last whole window"),
    ],
)
def test_copies_without_room_are_rejected(layout, anchor, length, message):
    def view(anchor):
        place, size = np.array([anchor]), np.array([length])
        copies = Insertions(
            anchor=place, tiebreak=place.astype(np.uint64), offset=0 * size, length=size,
            lead=0 * size, text_length=size, payload=np.arange(length),
        )  # fmt: skip
        source = random_source(104, seed=1)
        return StreamView(
            source, copies, budget=104 if layout == "window" else 100, context=10, layout=layout
        )

    assert view(anchor - 1 if layout == "flow" else 90).n_windows == 10
    with pytest.raises(ValueError, match=message):
        view(anchor)


def test_budget_beyond_the_corpus_is_rejected():
    with pytest.raises(ValueError, match="contains 100"):
        clean_view(random_source(100, seed=1), tokens=101, context=10)
