"""The insertion contrast: its formula by brute force, known truth, a finished run."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import t

from analysis.findings import read_table, table_schema
from analysis.intervals.rows import Rows
from analysis.page.parts import Note
from analysis.page.sections.training_order import order_section
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from analysis.trajectory.checkpoints import trajectory_tables
from analysis.trajectory.insertion import (
    NO_CHECKPOINTS,
    CheckpointPair,
    exposed_between,
    missing_insertion,
    pair_rows,
)
from detect.scores.table import read_scores
from inject.examples.example import read_examples
from inject.stream.exposures import NEVER, read_exposures
from tests.analysis.oracles import auc
from tests.analysis.synthetic import FAST, make_arm
from tests.analysis.trajectory.test_checkpoints import make_checkpoints

SETTINGS = AnalysisSettings(min_members=5)
STEPS = (0, 13, 20, 40)


def simulated(random, *, effect: float, drift=0.3, sizes=(30, 20, 60), per_group=2):
    """Inserted members, members not exposed and non-members; all losses drift alike."""
    kind = np.repeat([0, 1, 2], sizes)
    group = np.arange(len(kind)) // per_group
    shared = random.normal(size=group.max() + 1)[group]
    fall = drift + effect * (kind == 0) + 0.3 * shared + 0.3 * random.normal(size=len(kind))
    rows = Rows(
        seed=np.zeros(len(kind), dtype=np.int64),
        dataset=np.full(len(kind), "news", dtype=object),
        group=group,
        member=kind == 0,
        nonmember=kind == 2,
    )
    return CheckpointPair(rows, kind == 1, fall)


def named(rows):
    return {(row["metric"], row["versus"]): row for row in rows if row["dataset"] == "all"}


def variance(values, groups) -> float:
    """The variance of a mean over whole groups."""
    names = np.unique(groups)
    sums = [np.sum(values[groups == name] - values.mean()) for name in names]
    return float(len(names) / (len(names) - 1) * np.square(sums).sum() / len(values) ** 2)


def test_contrast_is_the_difference_of_mean_falls_and_its_interval_counts_whole_groups():
    pair = simulated(np.random.default_rng(0), effect=0.4)
    rows = named(pair_rows(pair, SETTINGS))
    for versus, reference in (
        ("non-members", pair.rows.nonmember),
        ("members not exposed", pair.unexposed),
    ):
        row = rows["contrast", versus]
        falls = [pair.fall[mask] for mask in (pair.rows.member, reference)]
        assert row["value"] == pytest.approx(falls[0].mean() - falls[1].mean())
        groups = [pair.rows.group[mask] for mask in (pair.rows.member, reference)]
        both = [variance(*each) for each in zip(falls, groups, strict=True)]
        freedom = min(len(set(each.tolist())) for each in groups) - 1
        half = t.ppf(0.975, freedom) * np.sqrt(sum(both))
        assert row["high"] - row["value"] == pytest.approx(half)
        assert (row["n_members"], row["n_nonmembers"]) == (30, len(falls[1]))
    row = rows["auc", "non-members"]
    inside, outside = (
        pair.row_contrasts()[mask] for mask in (pair.rows.member, pair.rows.nonmember)
    )
    assert row["value"] == pytest.approx(auc(inside, outside))
    assert outside.mean() == pytest.approx(0, abs=1e-12)


def test_contrast_covers_a_planted_effect_and_none():
    random = np.random.default_rng(1)
    for effect in (0.0, 0.7):
        rows = [named(pair_rows(simulated(random, effect=effect), SETTINGS)) for _ in range(300)]
        for versus in ("non-members", "members not exposed"):
            contrasts = [row["contrast", versus] for row in rows]
            covered = np.mean([row["low"] <= effect <= row["high"] for row in contrasts])
            assert 0.915 <= covered <= 0.985, (effect, versus)
            power = np.mean([row["low"] > 0 for row in contrasts])
            assert power > 0.9 if effect else power < 0.05
        aucs = np.mean([row["auc", "non-members"]["value"] for row in rows])
        assert aucs > 0.75 if effect else abs(aucs - 0.5) < 0.02


def test_exposed_between_separates_first_exposures_from_later_ones():
    #        not yet, first at 15, at 5, at 5 and 15
    early = np.array([-1, -1, 5, 5])
    late = np.array([-1, 5, 15, 5])
    inserted, unexposed = exposed_between(10, early, 20, late)
    assert inserted.tolist() == [False, True, False, False]
    assert unexposed.tolist() == [True, False, True, False]


def test_rows_without_a_loss_are_left_out():
    pair = simulated(np.random.default_rng(2), effect=0.4)
    fall = pair.fall.copy()
    fall[[0, 60]] = np.nan
    row = named(pair_rows(pair._replace(fall=fall), SETTINGS))["contrast", "non-members"]
    assert (row["n_members"], row["n_nonmembers"]) == (29, 59)
    assert np.isfinite(row["low"])


def test_each_pair_of_checkpoints_has_its_rows(tmp_path):
    checkpoints = make_checkpoints(tmp_path, fading=0.0)
    rows = trajectory_tables(checkpoints, SETTINGS)["insertion"].to_pylist()
    assert {(row["from_step"], row["to_step"]) for row in rows} == {(0, 2), (2, 8), (8, 32)}
    assert [row["dataset"] for row in rows[:9:3]] == ["all", "fictional", "news"]
    last = named([row for row in rows if row["to_step"] == 32])
    # Members gain 3 - 0.8 under `loss`.
    contrast = last["contrast", "non-members"]
    assert contrast["low"] <= 2.2 <= contrast["high"]
    few = AnalysisSettings(min_members=1000)
    rows = trajectory_tables(checkpoints, few)["insertion"].to_pylist()
    assert all("fewer than min_members" in row["interval"] for row in rows)


def test_without_checkpoints_finding_and_page_explain_how_to_get_them(tmp_path):
    (row,) = missing_insertion(["train.lr"]).to_pylist()
    assert row["interval"] == f"none: {NO_CHECKPOINTS}"
    assert set(row) == set(table_schema("insertion", ["train.lr"]).names)
    arm = make_arm(tmp_path, axes={}, seed=0, effect=0.8, n=40)
    section = order_section(analyse([arm], FAST).tables, None, lambda _: "")
    assert [part.text for part in section.parts if isinstance(part, Note)][-1] == (
        f"Insertion contrast: {NO_CHECKPOINTS}."
    )


@pytest.mark.slow
def test_findings_of_a_finished_run_are_those_of_its_files(shared_run):
    node = shared_run.node
    seen: dict[str, set[int]] = {}
    for row in read_exposures(shared_run.stored(node.trained)).to_pylist():
        if row["status"] != NEVER:
            seen.setdefault(row["example_id"], set()).add(row["step"])
    losses = {
        model.checkpoint: {
            row["example_id"]: -row["score"]
            for row in read_scores(shared_run.stored(model.own_scores)).to_pylist()
            if row["detector"] == "loss"
        }
        for model in node.checkpoints
    }
    pool = read_examples(shared_run.stored(node.examples))
    findings = {
        (row["from_step"], row["to_step"], row["metric"], row["versus"]): row
        for row in read_table(shared_run.folder, "insertion").to_pylist()
        if row["dataset"] == "fictional"
    }
    assert len(findings) == 9
    for start, stop in pairwise(STEPS):
        falls: dict[str, list[float]] = {
            "inserted": [],
            "members not exposed": [],
            "non-members": [],
        }
        for example in (example for example in pool if example.dataset == "fictional"):
            steps = seen.get(example.example_id, set())
            between = {step for step in steps if start < step <= stop}
            kind = "non-members"
            if example.side == "member":
                kind = "inserted" if between and min(steps) > start else "members not exposed"
                if between and kind != "inserted":
                    continue
            falls[kind].append(losses[start][example.example_id] - losses[stop][example.example_id])
        inserted = falls.pop("inserted")
        for versus, others in falls.items():
            row = findings[start, stop, "contrast", versus]
            if not inserted or not others:
                assert row["interval"].startswith("none")
                continue
            assert row["value"] == pytest.approx(np.mean(inserted) - np.mean(others), abs=1e-9)
            assert (row["n_members"], row["n_nonmembers"]) == (len(inserted), len(others))
        if inserted:
            row = findings[start, stop, "auc", "non-members"]
            assert row["value"] == pytest.approx(auc(inserted, falls["non-members"]))
