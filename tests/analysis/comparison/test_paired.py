"""Paired differences between runs against those of the report, and when they are undefined."""

import numpy as np
import pytest

from analysis.comparison.metrics import (
    RunTables,
    ScoredRow,
    compare_metrics,
    paired_differences,
    scored_rows,
)
from analysis.findings import split_by_cohort
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from inject.examples.example import examples_table, read_examples
from tests.analysis.synthetic import make_arm

SETTINGS = AnalysisSettings(dataset_detectors=())


def tables(name: str, arms, axes) -> RunTables:
    """Return the content of a run's folder as `spikein.runs.publish` writes it."""
    import pyarrow as pa

    analysis = analyse(arms, SETTINGS)
    examples, exposures = [], []
    for arm in {arm.seed: arm for arm in arms}.values():
        table = examples_table(list(read_examples(arm.examples)))
        examples.append(table.append_column("seed", pa.array([arm.seed] * len(table))))
    for arm in arms:
        if arm.copies is None:
            continue
        exposures.append(pa.Table.from_pylist([
            {**arm.axes, "seed": arm.seed, "example_id": name, "dataset": "d", "copy": copy,
             "variant": "whole", "status": "whole", "text_start": 0, "text_stop": 9,
             "text_length": 9}
            for name, count in arm.copies.items() for copy in range(count)
        ]))  # fmt: skip
    return RunTables(
        name=name,
        axes=axes,
        metrics=analysis.metrics,
        scores=analysis.scores,
        examples=pa.concat_tables(examples),
        exposures=pa.concat_tables(exposures),
    ), analysis


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    arms = [
        make_arm(folder / f"{lr}-{seed}", axes={"train.lr": lr}, seed=seed, effect=effect, n=60)
        for lr, effect in (("0.001", 0.5), ("0.01", 1.2))
        for seed in (0, 1, 2)
    ]
    return tables("first", arms, ["train.lr"])


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The same rows under other models, and an arm that the first run lacks."""
    folder = tmp_path_factory.mktemp("second")
    arms = [
        make_arm(folder / f"{lr}-{seed}", axes={"train.lr": lr}, seed=seed, effect=effect, n=60)
        for lr, effect, seeds in (("0.001", 1.4, (0, 1, 2)), ("0.1", 1.2, (0,)))
        for seed in seeds
    ]
    return tables("second", arms, ["train.lr"])


def test_differences_equal_those_of_the_report(run):
    """Two detectors of one run are two models of the same rows."""
    first, analysis = run
    expected_rows = [
        row
        for row in analysis.differences.to_pylist()
        if row["reference"] == "loss" and row["copies"] == "all" and row["selection"] == "tuned"
    ]
    assert {row["dataset"] for row in expected_rows} == {"all", "fictional", "news"}
    for table in split_by_cohort(analysis.metrics, ["train.lr"]):
        rows = scored_rows(first, table.cohort)
        lr = dict(table.cohort.axes)["train.lr"]
        for expected in expected_rows:
            if expected["train.lr"] != lr:
                continue
            made = paired_differences(
                rows["loss", "tuned"], rows[expected["detector"], "tuned"], confidence=0.95
            )[expected["dataset"]][2]
            assert made.value == pytest.approx(expected["value"], abs=1e-12)
            assert (made.low, made.high) == pytest.approx(
                (expected["low"], expected["high"]), abs=1e-12
            )
            assert (made.members, made.nonmembers, made.seeds) == (
                expected["n_members"], expected["n_nonmembers"], expected["n_seeds"],
            )  # fmt: skip


def test_values_are_rank_aucs_of_only_the_shared_rows(run, other):
    comparison = compare_metrics(run[0], other[0], SETTINGS)
    difference = comparison.numbers.row(
        run="difference", arm="lr 0.001", dataset="news", detector="zlib"
    )
    sides = [
        scored_rows(side, split_by_cohort(side.metrics, ["train.lr"])[0].cohort)["zlib", "default"]
        for side, _ in (run, other)
    ]
    second = {(row.seed, row.example_id): row.score for row in sides[1] if row.dataset == "news"}
    shared = [row for row in sides[0] if (row.seed, row.example_id) in second]
    assert len(shared) > 100
    for values, reported in (
        ([row.score for row in shared], difference["first"]),
        ([second[row.seed, row.example_id] for row in shared], difference["second"]),
    ):
        aucs = []
        for seed in (0, 1, 2):
            pairs = [
                (a > b) + (a == b) / 2
                for a, x in zip(values, shared, strict=True)
                for b, y in zip(values, shared, strict=True)
                if x.seed == y.seed == seed and x.member and not y.member
            ]
            aucs.append(np.mean(pairs))
        assert reported == pytest.approx(np.mean(aucs), abs=1e-12)
    assert difference["value"] == pytest.approx(difference["second"] - difference["first"])
    assert difference["low"] > 0, "the second run's models learned the copies better"


def test_arms_of_only_one_run_are_listed(run, other):
    comparison = compare_metrics(run[0], other[0], SETTINGS)
    assert comparison.numbers.values("arm") == ["lr 0.001"]
    assert comparison.unmatched == (
        "first: contaminated · lr 0.01 (second has no such arm)",
        "second: contaminated · lr 0.1 (first has no such arm)",
    )
    names = [place["detector"] for place in comparison.pooled_aucs()]
    assert len(names) == len(set(names)), "one row per detector"


def rows(seed, scores, *, member, dataset="d", group=None):
    return [
        ScoredRow(seed, f"{member}{at}", dataset, group or f"{member}{at}", member, float(score))
        for at, score in enumerate(scores)
    ]


def test_rows_that_change_sides_or_occur_in_one_run_are_not_shared():
    first = [*rows(0, range(5), member=True), *rows(0, range(5), member=False)]
    moved = [row._replace(member=not row.member) if row.example_id.endswith("0") else row
             for row in first]  # fmt: skip
    difference = paired_differences(first, moved[:-1], confidence=0.95)["all"][2]
    assert (difference.members, difference.nonmembers) == (4, 3)
    assert paired_differences(first, [], confidence=0.95) == {}


def test_one_group_or_row_per_side_gives_no_comparison():
    nonmembers = rows(0, range(9), member=False)
    grouped = rows(0, range(9), member=True, group="g")
    assert (
        paired_differences([*nonmembers, *grouped], [*nonmembers, *grouped], confidence=0.9) == {}
    )
    single = [*nonmembers, *rows(0, [1], member=True)]
    assert paired_differences(single, single, confidence=0.9) == {}
    two = [*nonmembers, *rows(0, [1, 5], member=True)]
    differences = paired_differences(
        two, [row._replace(score=-row.score) for row in two], confidence=0.9
    )
    assert differences["all"][2].reason == "2 groups on one side"
    assert np.isnan(differences["all"][2].low)
