"""Submissions are ranked rightly and with intervals; impossible scores are rejected."""

import json
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.intervals.rows import Rows, auc_numbers
from analysis.leaderboard.page import sections, sentences, write_page
from analysis.leaderboard.standings import (
    ALL,
    HELD_OUT,
    PUBLIC,
    labelled_models,
    mean_auc,
    rank_intervals,
    standings,
)
from analysis.leaderboard.submission import SUBMISSION, read_submissions
from detect.ground_truth.ground_truth import GroundTruth
from detect.scores.table import SCORES_FILE
from inject.errors import InputError, InputErrors
from spikein.api.leaderboard import leaderboard, submit
from tests.analysis.leaderboard.conftest import change, with_scores
from tests.detect.ground_truths import make_examples, make_model, make_truth

NAMES = ("right", "turned", "length")


@pytest.fixture(scope="module")
def submitted(benchmark_folders, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("submissions")
    benchmark_folders.submit(folder, *NAMES)
    return folder


@pytest.fixture
def copied(submitted, tmp_path) -> Path:
    return Path(shutil.copytree(submitted, tmp_path / "copied"))


@pytest.mark.parametrize("labelled", [True, False])
def test_a_good_detector_length_and_a_reversed_one_are_ranked_in_this_order(
    benchmark_folders, submitted, labelled
):
    labels = benchmark_folders.labels if labelled else None
    findings, _ = leaderboard(submitted, benchmark_folders.bundle, labels=labels)
    ranked = findings.where(kind="rank").rows
    assert [row["detector"] for row in ranked] == ["wrong.right", "wrong.length", "wrong.turned"]
    assert [(row["best_rank"], row["worst_rank"]) for row in ranked] == [(1, 1), (2, 2), (3, 3)]
    assert {row["models"] for row in ranked} == {HELD_OUT if labelled else PUBLIC}
    assert findings.where(kind="rejected").rows == ()
    assert "orientation" in ranked[2]["wrong"]


def test_aucs_are_those_of_the_stored_sides(benchmark_folders, submitted):
    truth, labels = benchmark_folders.truths
    findings, _ = leaderboard(submitted, benchmark_folders.bundle, labels=benchmark_folders.labels)
    for group, models in ((PUBLIC, truth.models), (HELD_OUT, labels.models)):
        aucs = []
        for model in models:
            if model.model != "contaminated":
                continue
            used = [
                at for at, row in enumerate(model.rows) if group == HELD_OUT or row.split == "test"
            ]
            scores = np.array(
                [float(np.mean(tokens.log_probability - tokens.mean_log_prob))
                 for tokens in model.evidence.statistics["text"]]
            )  # fmt: skip
            inside = [at for at in used if model.rows[at].side == "member"]
            outside = [at for at in used if model.rows[at].side == "nonmember"]
            aucs.append((scores[inside][:, None] > scores[outside][None]).mean())
            place = {"detector": "wrong.right", "models": group}
            (row,) = findings.where(**place, part=f"copies {model.axes['copies']}").rows
            assert row["value"] == pytest.approx(aucs[-1])
        (row,) = findings.where(**place, part=ALL).rows
        assert row["value"] == pytest.approx(np.mean(aucs))
        assert row["n_models"] == len(aucs) == 2


def test_models_with_the_same_rows_and_scores_make_no_interval_narrower(benchmark_folders):
    truth, labels = benchmark_folders.truths
    first, second = [model for model in labelled_models(truth, labels) if model.group == HELD_OUT]
    scores = np.random.default_rng(3).normal(size=len(first.rows.member))
    alone = mean_auc([first], {first.number: scores}).estimates(confidence=0.95)[0]
    twice = mean_auc([first, second], dict.fromkeys((first.number, second.number), scores))
    assert twice.estimates(confidence=0.95)[0][:3] == pytest.approx(alone[:3])


def make_irregular_benchmark() -> GroundTruth:
    """Arms of two seeds with other rows, datasets and groups; groups share names across seeds."""
    small, two = make_examples(25), make_examples(20, datasets=("news", "wiki"))
    coarse = [replace(row, group=f"g{at // 3}") for at, row in enumerate(make_examples(33))]
    arms = [(0, make_examples(40)), (0, small), (0, two), (1, tuple(coarse)), (1, small)]
    models = [
        make_model(rows, axes={"pool.members": str(at)}, seed=seed, dose=1 + at, key=50 + at)
        for at, (seed, rows) in enumerate(arms)
    ]
    return replace(make_truth(20), models=tuple(models))


def influence_by_pairs(rows: Rows, at: np.ndarray, scores: np.ndarray) -> tuple[float, dict]:
    """Return an AUC and the influence of each group on it, from all pairs of rows."""
    inside, outside = at[rows.member[at]], at[rows.nonmember[at]]
    above = np.sign(scores[inside][:, None] - scores[outside][None]) / 2 + 0.5
    moved = defaultdict(float)
    for side, placed in ((inside, above.mean(axis=1)), (outside, above.mean(axis=0))):
        groups = len(set(rows.group[side].tolist()))
        for group, own in zip(rows.group[side].tolist(), placed - above.mean(), strict=True):
            moved[group] += own / len(side) * np.sqrt(groups / (groups - 1))
    return above.mean(), moved


def test_models_of_other_rows_groups_and_datasets_are_averaged_as_by_brute_force():
    truth = make_irregular_benchmark()
    random, models = np.random.default_rng(5), labelled_models(truth, None)
    scores = {m.number: random.normal(m.rows.member, 1.0).round(1) for m in models}
    named = {
        (m.model.seed, row.dataset, row.group, int(number))
        for m in models
        for row, number in zip(m.model.rows, m.rows.group, strict=True)
    }
    assert len(named) == len({place[:3] for place in named}) == len({(*p[:2], p[3]) for p in named})
    means, moved = defaultdict(list), defaultdict(float)
    for model in models:
        rows, seed = model.rows, model.model.seed
        arms = sum(other.model.seed == seed for other in models)
        auc = 0.0
        for name in dict.fromkeys(rows.dataset.tolist()):
            at = np.flatnonzero(rows.dataset == name)
            share = rows.member[at].sum() / rows.member.sum()
            value, by_group = influence_by_pairs(rows, at, scores[model.number])
            auc += share * value
            for group, own in by_group.items():
                moved[seed, name, group] += share * own / arms / 2
        means[seed].append(auc)
    mean = mean_auc(models, scores).clustered()
    assert mean.value == pytest.approx(np.mean([np.mean(aucs) for aucs in means.values()]))
    assert mean.variance == pytest.approx(sum(own**2 for own in moved.values()))
    (alone,) = mean_auc(models[2:3], scores).estimates(confidence=0.95)
    assert alone[:3] == pytest.approx(
        auc_numbers(models[2].rows, scores[2]).estimates(confidence=0.95)[0][:3]
    )


def test_a_model_without_rows_on_both_sides_is_refused():
    truth = make_irregular_benchmark()
    unseen = replace(truth.models[1], copies={})
    with pytest.raises(InputError, match="members 1, seed 0: no dataset has members"):
        labelled_models(replace(truth, models=(truth.models[0], unseen)), None)


def test_rank_intervals_hold_all_true_ranks_in_95_percent_of_leaderboards():
    """Two of four detectors are equal: each of their ranks is 2 to 3."""
    random = np.random.default_rng(11)
    member = np.arange(150) < 60
    shifts, true = np.array([1.2, 0.7, 0.7, 0.2]), [(1, 1), (2, 3), (2, 3), (4, 4)]
    covered = narrow = 0
    for _ in range(150):
        shared = random.normal(size=150)
        numbers = [
            auc_numbers(
                Rows.of(np.arange(150), member=member),
                0.7 * shared + 0.7 * random.normal(size=150) + shift * member,
            )
            for shift in shifts
        ]
        ranks = rank_intervals(numbers, confidence=0.95)
        covered += all(
            low <= best and worst <= high
            for (low, high), (best, worst) in zip(ranks, true, strict=True)
        )
        narrow += ranks[0][1] < 4
    assert covered >= 0.95 * 150 - 3 * (0.05 * 0.95 * 150) ** 0.5
    assert narrow > 100


def rejected(folder: Path, benchmark) -> dict[str, str]:
    findings, _ = leaderboard(folder, benchmark.bundle, labels=benchmark.labels)
    return {row["detector"]: row["reason"] for row in findings.where(kind="rejected").rows}


def sides(table, truth, models) -> np.ndarray:
    inside = {
        row.example_id for model in truth.models for row in model.rows if row.side == "member"
    }
    names, numbers = table["example_id"].to_pylist(), table["model"].to_pylist()
    return np.array(
        [name in inside and number in models for name, number in zip(names, numbers, strict=True)]
    )


def test_scores_that_depend_on_labels_are_rejected(benchmark_folders, copied):
    truth, _ = benchmark_folders.truths
    numbers = range(len(truth.models))
    change(
        copied / "submission-wrong.right",
        lambda table: with_scores(
            table, table["score"].to_numpy() + 100.0 * sides(table, truth, numbers)
        ),
    )
    reasons = rejected(copied, benchmark_folders)
    assert list(reasons) == ["wrong.right"]
    assert "AUC 1.00 on a clean twin" in reasons["wrong.right"]


def test_scores_missing_on_one_side_are_rejected_and_on_both_are_not(benchmark_folders, copied):
    truth, _ = benchmark_folders.truths

    def without(table, rows):
        return with_scores(table, np.where(rows, np.nan, table["score"].to_numpy()))

    change(copied / "submission-wrong.right", lambda t: without(t, sides(t, truth, [0])))
    change(copied / "submission-wrong.length", lambda t: without(t, np.arange(len(t)) % 9 == 0))
    reasons = rejected(copied, benchmark_folders)
    assert list(reasons) == ["wrong.right"]
    assert "a missing score reveals the side" in reasons["wrong.right"]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda table: table.slice(1), "rows (allowed"),
        (lambda table: table.take([0, *range(len(table) - 1)]), "other rows"),
        (lambda table: with_scores(table, np.full(len(table), np.inf)), "infinite"),
    ],
)
def test_scores_of_other_rows_than_the_benchmark_has_are_rejected(
    benchmark_folders, copied, spoil, problem
):
    change(copied / "submission-wrong.turned", spoil)
    reasons = rejected(copied, benchmark_folders)
    assert list(reasons) == ["wrong.turned"]
    assert problem in reasons["wrong.turned"]


def test_changed_scores_and_unrepeatable_ones_are_rejected(benchmark_folders, copied):
    change(copied / "submission-wrong.turned", wrong=["batch"])
    with (copied / "submission-wrong.right" / SCORES_FILE).open("ab") as file:
        file.write(b"x")
    reasons = rejected(copied, benchmark_folders)
    assert "was changed" in reasons["wrong.right"]
    assert "change when they are computed again: batch" in reasons["wrong.turned"]


def test_a_submission_for_another_version_ends_the_command_before_the_bundle_is_read(
    benchmark_folders, copied, tmp_path
):
    (tmp_path / "empty").mkdir()
    shutil.copy(benchmark_folders.bundle / "bundle.json", tmp_path / "empty")
    change(copied / "submission-wrong.right", benchmark="0" * 64)
    with pytest.raises(InputErrors) as refused:
        leaderboard(copied, tmp_path / "empty")
    message = str(refused.value)
    assert "1 of 3 submissions" in message
    assert "is for another version of the benchmark (content 000000000000)" in message
    assert "spikein validate FILE.py:NAME BUNDLE --bench" in message
    with pytest.raises(InputError, match="contains no submission"):
        read_submissions(tmp_path / "empty", benchmark="")


def test_unreadable_and_repeated_submissions_are_rejected_and_the_others_ranked(
    benchmark_folders, copied
):
    for name, text in (("no-json", "no json"), ("no-keys", "{}"), ("list", "[]")):
        (copied / name).mkdir()
        (copied / name / SUBMISSION).write_text(text)
    shutil.copytree(copied / "submission-wrong.right", copied / "with-key")
    change(copied / "with-key", more=1)
    change(copied / "submission-wrong.turned", detector="wrong.length")
    findings, truth = leaderboard(copied, benchmark_folders.bundle, labels=benchmark_folders.labels)
    ranked = findings.where(kind="rank").rows
    assert [row["detector"] for row in ranked] == ["wrong.right", "wrong.length"]
    reasons = {
        Path(row["detector"]).name: row["reason"] for row in findings.where(kind="rejected").rows
    }
    assert reasons["no-json"].startswith("Invalid JSON")
    assert reasons["no-keys"] == "detector: Field required"
    assert reasons["list"].startswith("Input should be an object")
    assert reasons["with-key"] == "more: Extra inputs are not permitted"
    repeated = reasons.pop("submission-wrong.turned")
    first = copied / "submission-wrong.length"
    assert repeated.startswith(f"'wrong.length' is already the name of {first}: change")
    assert len(reasons) == 4
    assert "Rejected" in [section.title for section in sections(findings)]
    assert "Invalid JSON" in write_page(copied / "page.html", findings, truth).read_text()


@pytest.mark.parametrize("seconds", [-5.0, float("nan"), float("inf")])
def test_seconds_below_zero_or_infinite_are_rejected(benchmark_folders, copied, seconds):
    folder = change(copied / "submission-wrong.right", seconds=seconds)
    submission = read_submissions(copied, benchmark=benchmark_folders.truths[0].content)[folder]
    assert isinstance(submission, InputError)
    assert submission.problem.startswith("seconds: Input should be")


def test_two_settings_of_a_detector_are_two_submissions(benchmark_folders, tmp_path):
    written = submit(["min_k:k=0.2", "min_k:k=0.9"], benchmark_folders.bundle, folder=tmp_path)[1]
    assert [folder.name for folder in written] == [
        "submission-min_k-k-0.2", "submission-min_k-k-0.9",
    ]  # fmt: skip
    findings, truth = leaderboard(tmp_path, benchmark_folders.bundle)
    ranked = findings.where(kind="rank").rows
    assert {(row["detector"], row["setting"]) for row in ranked} == {
        ("min_k", "k=0.2"), ("min_k", "k=0.9"),
    }  # fmt: skip
    page = write_page(tmp_path / "page.html", findings, truth).read_text()
    assert all(f"min_k k={share}" in page for share in (0.2, 0.9))
    for row in ranked:
        assert f"{row['value']:.2f}" in page


def test_scoring_again_keeps_the_author_and_no_other_submission_is_replaced(
    benchmark_folders, tmp_path
):
    (folder,) = benchmark_folders.submit(tmp_path, "right")
    change(folder, author="Alice", seconds=7.0)
    assert benchmark_folders.submit(tmp_path, "right") == [folder]
    again = json.loads((folder / SUBMISSION).read_text())
    assert again["author"] == "Alice"
    assert again["seconds"] != 7.0
    for key, other in (("detector", "wrong.other"), ("setting", "k=1"), ("code", "0" * 64)):
        change(folder, **{key: other})
        before = (folder / SUBMISSION).read_bytes()
        with pytest.raises(InputError, match=r"contains another submission: wrong.* by Alice"):
            benchmark_folders.submit(tmp_path, "right")
        assert (folder / SUBMISSION).read_bytes() == before
        change(folder, **{key: again[key]})
    change(folder, author="", code="0" * 64)
    benchmark_folders.submit(tmp_path, "right")
    assert json.loads((folder / SUBMISSION).read_text())["code"] == again["code"]


def test_labels_of_another_benchmark_are_rejected(benchmark_folders, submitted):
    with pytest.raises(InputError, match="other models or rows"):
        leaderboard(submitted, benchmark_folders.bundle, labels=benchmark_folders.bundle)


def test_a_detector_that_needs_labels_cannot_be_submitted(benchmark_folders, tmp_path):
    with pytest.raises(InputError, match="needs the labels"):
        benchmark_folders.submit(tmp_path, "LEAK")


def test_page_shows_ranks_parts_and_rejections(benchmark_folders, copied, tmp_path):
    change(copied / "submission-wrong.turned", wrong=["batch"], author="<b>A</b>")
    findings, truth = leaderboard(copied, benchmark_folders.bundle, labels=benchmark_folders.labels)
    page = write_page(tmp_path / "page.html", findings, truth).read_text()
    assert "<svg" in page
    assert "<b>A</b>" not in page
    assert sentences(findings, truth)[0].startswith("wrong.right is best; the first has AUC 0.")
    assert [section.title for section in sections(findings)] == [
        "Ranks", "By size and dose", "Rejected",
    ]  # fmt: skip
    for text in ("Held-out AUC", "copies fixed=4", truth.content):
        assert text in page


def test_ranks_without_held_out_labels_are_called_self_reported(
    benchmark_folders, submitted, tmp_path
):
    for labels in (None, benchmark_folders.labels):
        findings, truth = leaderboard(submitted, benchmark_folders.bundle, labels=labels)
        page = write_page(tmp_path / "page.html", findings, truth).read_text()
        for text in (page, " ".join(sentences(findings, truth))):
            assert ("these ranks are self-reported" in text) == (labels is None)


def test_equal_submissions_are_tied(benchmark_folders, submitted):
    truth, labels = benchmark_folders.truths
    submissions = read_submissions(submitted, benchmark=truth.content)
    folder = next(path for path in submissions if path.name.endswith("right"))
    twin = submissions[folder].model_copy(update={"detector": "again"})

    findings = standings(
        {folder: submissions[folder], folder / ".." / folder.name: twin},
        truth,
        labels,
        confidence=0.95,
    )
    ranks = [(row["best_rank"], row["worst_rank"]) for row in findings.where(kind="rank").rows]
    assert ranks == [(1, 2), (1, 2)]
    assert "are tied for rank 1" in sentences(findings, truth)[0]
