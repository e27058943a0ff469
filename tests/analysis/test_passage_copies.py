"""How often passages were seen, beside how often members were."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.copy_bins import passage_sentences
from analysis.results import analyse
from tests.analysis.synthetic import FAST, make_arm, make_examples


@pytest.mark.parametrize("model", ["contaminated", "base"])
def test_the_metrics_say_how_often_the_passages_of_a_cell_were_seen(tmp_path, model):
    examples = make_examples(0, n=60)
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, examples=examples, model=model)
    analysis = analyse([arm], FAST)
    rows = [row for row in analysis.metrics.to_pylist() if row["metric"] == "auc"]
    assert rows
    if arm.copies is None:
        assert all(np.isnan(row["passage_copies"]) for row in rows)
        return
    for row in rows:
        # Oracle: from the examples and the counts on disk, group by group.
        means = []
        for one in examples:
            inside = one.side == "member" and one.split == "test"
            if not inside or row["dataset"] not in ("all", one.dataset):
                continue
            own = arm.copies.get(one.example_id, 0)
            low, _, high = row["copies"].partition("-")
            if row["copies"] == "all":
                fits = own > 0
            elif low.endswith("+"):
                fits = own >= int(low[:-1])
            else:
                fits = int(low) <= own <= int(high or low)
            if fits:
                means.append(
                    sum(
                        arm.copies.get(other.example_id, 0)
                        for other in examples
                        if (other.dataset, other.group) == (one.dataset, one.group)
                    )
                )
        assert row["passage_copies"] == pytest.approx(np.mean(means))
    assert len(passage_sentences(analysis.metrics)) == 2


def test_nothing_is_said_where_no_rows_share_a_passage(tmp_path):
    examples = [replace(one, group=one.example_id) for one in make_examples(0, n=60)]
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, examples=examples)
    metrics = analyse([arm], FAST).metrics
    assert passage_sentences(metrics) == []
