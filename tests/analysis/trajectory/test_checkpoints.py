"""Detection during training: known answers, an oracle over pairs, and missing values."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from analysis.page.parts import Fold, pictures_in
from analysis.page.sections.trajectory import best_detectors, trajectory_section
from analysis.page.table import Table
from analysis.settings import AnalysisSettings
from analysis.trajectory.checkpoints import Checkpoint, trajectory_tables
from detect.scores.table import SCHEMA, read_scores, write_scores
from inject.errors import InputError
from inject.examples.example import write_examples
from inject.stream.exposures import ExposureSoFar
from tests.analysis.oracles import auc
from tests.analysis.synthetic import make_examples

SETTINGS = AnalysisSettings(replicates=200, min_members=5)
STEPS = (0, 2, 8, 32)
BATCH = 100


def make_checkpoints(
    folder: Path, *, seed=0, fading=0.5, axes=None, n=80, rate=lambda step: 1.0
) -> list[Checkpoint]:
    """Members are seen once or twice at random steps; scores fall with the steps since then.

    The effect of a copy is proportional to the learning rate of its step.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pool = make_examples(seed, n=n)
    write_examples(folder, pool)
    random = np.random.default_rng([seed, 7])
    seen_at = {
        example.example_id: sorted(random.integers(1, 33, size=1 + index % 2).tolist())
        for index, example in enumerate(pool)
        if example.side == "member"
    }
    checkpoints = []
    for step in STEPS:
        seen = {
            name: ExposureSoFar(
                sum(at <= step for at in steps), max(at for at in steps if at <= step)
            )
            for name, steps in seen_at.items()
            if steps[0] <= step
        }
        # Part of a copy that spans two windows: neither seen nor unseen.
        parts = [name for name, steps in seen_at.items() if step < steps[0] < step + 4]
        seen |= {name: ExposureSoFar(0, step) for name in parts if step}
        rows = []
        for detector, setting in (("loss", "-"), ("min_k", "k=0.2"), ("min_k", "k=0.5")):
            for index, example in enumerate(pool):
                score = random.normal() + 3 * (example.dataset == "news")
                if example.example_id in seen:
                    last = seen[example.example_id].last_step
                    score += 3.0 * rate(last) - 0.8 * (detector == "loss")
                    score -= fading * np.log2(step - last + 1)
                rows.append(
                    {"row": index, "example_id": example.example_id, "detector": detector,
                     "setting": setting, "score": score, "reason": None}
                )  # fmt: skip
        path = folder / f"scores-{step}"
        path.mkdir()
        write_scores(path, pa.Table.from_pylist(rows, schema=SCHEMA), record={})
        checkpoints.append(
            Checkpoint(
                axes=axes or {},
                seed=seed,
                step=step,
                tokens=step * BATCH,
                batch_tokens=BATCH,
                scores=path,
                examples=folder,
                defaults={"loss": "-", "min_k": "k=0.2"},
                seen=seen,
                constant_rate=rate(1) == rate(32),
            )
        )
    return checkpoints


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory) -> list[Checkpoint]:
    return make_checkpoints(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(scope="module")
def tables(checkpoints):
    return trajectory_tables(checkpoints, SETTINGS)


def scores_of(checkpoint: Checkpoint, detector: str, setting: str) -> dict[str, float]:
    return {
        row["example_id"]: row["score"]
        for row in read_scores(checkpoint.scores).to_pylist()
        if (row["detector"], row["setting"]) == (detector, setting)
    }


def test_trajectory_is_the_auc_of_members_seen_so_far(checkpoints, tables):
    pool = make_examples(0, n=80)
    all_rows = tables["trajectory"].to_pylist()
    checked = 0
    for checkpoint in checkpoints:
        scores = scores_of(checkpoint, "min_k", "k=0.2")
        for dataset in ("fictional", "news"):
            test = [e for e in pool if e.split == "test" and e.dataset == dataset]
            outside = [scores[e.example_id] for e in test if e.side == "nonmember"]
            for copies in (0, 1, 2):
                inside = [
                    scores[e.example_id]
                    for e in test
                    if e.side == "member"
                    and (e.example_id in checkpoint.seen) == (copies > 0)
                    and (not copies or checkpoint.seen[e.example_id].copies == copies)
                ]
                rows = [
                    row
                    for row in all_rows
                    if (row["step"], row["dataset"], row["copies"]) ==
                    (checkpoint.step, dataset, str(copies))
                    and (row["detector"], row["selection"]) == ("min_k", "default")
                ]  # fmt: skip
                if len(inside) < SETTINGS.min_members:
                    assert not rows
                    continue
                [row] = rows
                assert row["value"] == pytest.approx(auc(inside, outside))
                assert row["n_members"] == len(inside)
                if row["interval"].startswith("none: "):
                    assert np.isnan([row["low"], row["high"]]).all()
                else:
                    assert row["low"] <= row["value"] <= row["high"]
                assert row["tokens"] == checkpoint.step * BATCH
                checked += 1
    assert checked >= 12


def test_fading_is_the_mean_placement_of_pairs(checkpoints, tables):
    pool = make_examples(0, n=80)
    rows = tables["fading"].to_pylist()
    chosen = [
        row for row in rows
        if (row["detector"], row["selection"], row["metric"]) == ("loss", "default", "auc")
    ]  # fmt: skip
    checked = 0
    for row in chosen:
        if row["copies"] not in ("1", "2"):
            continue
        places = []
        for checkpoint in checkpoints:
            scores = scores_of(checkpoint, "loss", "-")
            for example in pool:
                seen = checkpoint.seen.get(example.example_id)
                if example.split != "test" or seen is None or seen.copies != int(row["copies"]):
                    continue
                if (
                    row["steps_since_copy_low"]
                    <= checkpoint.step - seen.last_step
                    <= row["steps_since_copy_high"]
                ):
                    outside = [
                        scores[other.example_id]
                        for other in pool
                        if other.split == "test"
                        and other.side == "nonmember"
                        and other.dataset == example.dataset
                    ]
                    places.append(auc([scores[example.example_id]], outside))
        assert row["value"] == pytest.approx(np.mean(places))
        assert row["pairs"] == len(places)
        checked += 1
    assert checked >= 5


def test_trajectories_pool_seeds_and_separate_arms(tmp_path):
    checkpoints = [
        checkpoint
        for lr in ("0.1", "0.2")
        for seed in (0, 1)
        for checkpoint in make_checkpoints(
            tmp_path / f"{lr}-{seed}", seed=seed, axes={"train.lr": lr}
        )
    ]
    tables = trajectory_tables(checkpoints, SETTINGS)
    rows = tables["trajectory"].to_pylist()
    assert {row["train.lr"] for row in rows} == {"0.1", "0.2"}
    assert max(row["n_seeds"] for row in rows) == 2
    parts = trajectory_section(tables, lambda row: f"lr {row['train.lr']}").parts
    pictures = {picture.name: picture for picture in pictures_in(parts)}
    assert list(pictures) == ["trajectory", "trajectory-copies", "fading"]
    assert all("2 training seeds" in picture.caption for picture in pictures.values())
    measured = {
        (row["tokens"], row["value"], row["low"], row["high"])
        for row in rows
        if (row["dataset"], row["copies"], row["selection"]) == ("all", "all", "tuned")
    }
    along = [row for row in pictures["trajectory"].rows if row["line"] == "min_k, lr 0.1"]
    assert len(along) > 1
    for row in along:
        assert (float(row["tokens"]), row["value"], row["low"], row["high"]) in measured
    # An arm's tables are split into blocks that fit a page; both arms are present.
    progress = [part.parts[0] for part in parts if isinstance(part, Fold)]
    fading = [part for part in parts if isinstance(part, Table)]
    for grids in (progress, fading):
        for lr in ("0.1", "0.2"):
            assert any(f"lr {lr}" in grid.title for grid in grids)
        assert all(len(grid.columns) <= 6 for grid in grids)
    sentences = [part for part in parts if isinstance(part, str)]
    assert any("lr 0.1: under" in sentence and "fade" in sentence for sentence in sentences)
    assert progress[0].heads[-1] == "step 32"


def test_a_duplicate_checkpoint_is_rejected(checkpoints):
    with pytest.raises(InputError, match="share their axes and their seed"):
        trajectory_tables([*checkpoints, checkpoints[0]], SETTINGS)


def test_checkpoints_before_any_copy_have_no_pictures(checkpoints):
    tables = trajectory_tables(checkpoints[:1], SETTINGS)
    assert tables["fading"].num_rows == 0
    assert {row["copies"] for row in tables["trajectory"].to_pylist()} == {"0"}
    assert best_detectors(tables["trajectory"].to_pylist()) == []
    assert trajectory_section(tables, lambda _: "") is None
