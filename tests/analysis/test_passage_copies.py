"""Copy counts of passages next to those of members."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.copy_bins import passage_sentences
from analysis.results import analyse
from tests.analysis.synthetic import FAST, make_arm, make_examples


def test_metrics_report_mean_passage_copies_per_cell(tmp_path):
    examples = make_examples(0, n=60)
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, examples=examples)
    analysis = analyse([arm], FAST)
    rows = [row for row in analysis.metrics.to_pylist() if row["metric"] == "auc"]
    assert rows
    for row in rows:
        # Oracle: from the examples and the counts on disk, group by group.
        means = []
        for example in examples:
            inside = example.side == "member" and example.split == "test"
            if not inside or row["dataset"] not in ("all", example.dataset):
                continue
            own = arm.copies.get(example.example_id, 0)
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
                        if (other.dataset, other.group) == (example.dataset, example.group)
                    )
                )
        assert row["passage_copies"] == pytest.approx(np.mean(means))
    assert len(passage_sentences(analysis.metrics)) == 2


def test_passage_sentences_are_empty_without_shared_passages(tmp_path):
    examples = [replace(example, group=example.example_id) for example in make_examples(0, n=60)]
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, examples=examples)
    metrics = analyse([arm], FAST).metrics
    assert passage_sentences(metrics) == []
