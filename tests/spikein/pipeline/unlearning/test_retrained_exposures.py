"""Done-when 2: the retrained model saw nothing of the forget set, and all else in the same order.

The oracle reads the artifacts on the disk: the corpus, both plans, both lists of exposures.
"""

import numpy as np
import pyarrow.parquet as pq
import pytest

from inject.corpus.corpus import Corpus
from inject.errors import InputError
from inject.plan.plan import read_plan
from inject.stream.exposures import NEVER, read_exposures, require_unexposed, write_exposures

pytestmark = pytest.mark.slow


def sides(folder):
    rows = pq.read_table(folder / "examples.parquet", columns=["example_id", "side"]).to_pylist()
    return {row["example_id"] for row in rows if row["side"] == "member"}


def seen(folder):
    return [row for row in read_exposures(folder).to_pylist() if row["status"] != NEVER]


def test_nothing_of_the_forget_set_was_fed_and_all_else_came_in_the_same_order(finished):
    node = finished.node
    twin = node.twins.retrained
    original, retrained = (finished.stored(step) for step in (node.trained, twin.trained))
    members, left = (finished.stored(step) for step in (node.examples, twin.membership))
    forget = sides(members) - sides(left)
    assert len(forget) == 12
    assert sides(left) < sides(members)
    theirs, ours = seen(original), seen(retrained)
    assert {row["example_id"] for row in theirs} >= forget
    assert not {row["example_id"] for row in read_exposures(retrained).to_pylist()} & forget
    require_unexposed(retrained, forget)
    with pytest.raises(InputError, match=r"fed copies of 12 forgotten"):
        require_unexposed(original, forget)

    corpus = Corpus.open(finished.stored(node.corpus))
    plans = [read_plan(finished.stored(step)) for step in (node.plan, twin.plan)]
    # A copy that a full window turned away may lie elsewhere once the window has room.
    drawn = {
        (row["example_id"], row["copy"])
        for plan in plans
        for row in plan.copies.to_pylist()
        if row["redraws"]
    }
    names = ("epoch", "step", "window", "status")
    place = [
        {
            (row["example_id"], row["copy"]): tuple(row[name] for name in names)
            for row in rows
            if row["example_id"] not in forget and (row["example_id"], row["copy"]) not in drawn
        }
        for rows in (theirs, ours)
    ]
    assert place[0] == place[1]
    assert len(place[0]) > 15
    # The moment at which each window was fed.
    moment: dict[int, set[int]] = {}
    for row in (*theirs, *ours):
        moment.setdefault(row["window"], set()).add((row["tokens_before"] - row["start"]) // 128)
    assert all(len(times) == 1 for times in moment.values())

    views = [plan.view(corpus) for plan in plans]
    assert views[0].n_windows == views[1].n_windows
    touched = {
        row["window"]
        for row in (*theirs, *ours)
        if row["example_id"] in forget or (row["example_id"], row["copy"]) in drawn
    }
    differing = {
        window
        for window in range(views[0].n_windows)
        if not np.array_equal(*(view.read(128 * window, 128 * (window + 1)) for view in views))
    }
    assert differing
    assert differing <= touched
    logs = [pq.read_table(folder / "log.parquet") for folder in (original, retrained)]
    for column in ("step", "tokens", "lr"):
        assert logs[0][column].to_pylist() == logs[1][column].to_pylist()


def test_a_retrained_model_whose_exposures_hold_a_forgotten_copy_is_refused(finished, tmp_path):
    node = finished.node
    twin = node.twins.retrained
    forget = sides(finished.stored(node.examples)) - sides(finished.stored(twin.membership))
    exposures = read_exposures(finished.stored(twin.trained))
    theirs = read_exposures(finished.stored(node.trained)).to_pylist()
    one = next(row for row in theirs if row["example_id"] in forget)
    edited = [*exposures.to_pylist(), one]
    write_exposures(tmp_path, exposures.from_pylist(edited, schema=exposures.schema))
    with pytest.raises(InputError, match=one["example_id"]):
        require_unexposed(tmp_path, forget)
