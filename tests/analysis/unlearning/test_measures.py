"""Every measure against slow loops over the files on disk."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import ks_2samp

from analysis.unlearning.evidence import ModelEvidence
from analysis.unlearning.settings import MeasureSettings
from analysis.unlearning.unlearning_step import measure_unlearning
from inject.errors import InputError
from tests.analysis.unlearning.slow import Disk, changed, one, slow_mean, slow_memory
from tests.analysis.unlearning.studies import Study, write_study

STUDY = Study(
    seeds=(0, 1, 2),
    groups=12,
    methods={"npo": 0.3, "dead": 0.0},
    unscored=1,
    diverged=(("dead", 1),),
)
QUICK = MeasureSettings(permutations=199)


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("study") / "arms", STUDY)


@pytest.fixture(scope="module")
def rows(arms):
    return measure_unlearning(arms, QUICK)["unlearning"].to_pylist()


def slow_auc(disk: Disk, detector: str, copies=None, dataset=None, among=None) -> float:
    """Return the AUC of one seed: each dataset's pairs, weighted by its texts."""
    score = disk.score(detector)
    ids = set(score) if among is None else among
    total, count = 0.0, 0
    for name in STUDY.datasets if dataset is None else (dataset,):
        inside = [r["example_id"] for r in disk.forget(name, copies, test=True)]
        outside = [r["example_id"] for r in disk.holdout(name)]
        inside, outside = (
            [score[i] for i in side if i in ids and math.isfinite(score[i])]
            for side in (inside, outside)
        )
        wins = sum((a > b) + (a == b) / 2 for a in inside for b in outside)
        total += wins / len(outside)
        count += len(inside)
    return total / count


@pytest.mark.parametrize("detector", ["loss", "min_k"])
@pytest.mark.parametrize(("copies", "dataset"), [(None, None), (None, "news"), (2, None)])
def test_aucs_and_their_differences_are_those_of_all_pairs(arms, rows, detector, copies, dataset):
    place = {"copies": "all" if copies is None else str(copies), "dataset": dataset or "all"}
    setting = arms[0].models[0].defaults[detector]
    for model, method in (("original", "-"), ("unlearned", "npo")):
        mine = [slow_auc(Disk(arm, model, method), detector, copies, dataset) for arm in arms]
        theirs = [slow_auc(Disk(arm, "retrained"), detector, copies, dataset) for arm in arms]
        named = {"model": model, "method": method, "detector": detector, "setting": setting}
        found = one(rows, measure="auc", **named, **place)
        assert found["value"] == pytest.approx(np.mean(mine), abs=1e-12)
        found = one(rows, measure="auc_difference", **named, **place)
        assert found["value"] == pytest.approx(np.mean(mine) - np.mean(theirs), abs=1e-12)
        found = one(rows, measure="privleak", **named, **place)
        below = 1 - np.mean(theirs)
        wanted = 100 * ((1 - np.mean(mine)) - below) / below
        assert found["value"] == pytest.approx(wanted, abs=1e-9)


def test_the_rows_behind_an_auc_are_counted(arms, rows):
    found = one(
        rows, measure="auc", model="original", detector="loss", setting="default", dataset="news"
    )
    scored = [
        row["example_id"]
        for arm in arms
        for row in Disk(arm, "original").forget("news", test=True)
        if math.isfinite(Disk(arm, "original").score("loss")[row["example_id"]])
    ]
    assert found["forget"] == len(scored)

    assert found["holdout"] == sum(len(Disk(arm, "original").holdout("news")) for arm in arms)
    groups = {r["group"] for arm in arms for r in Disk(arm, "original").forget("news", test=True)
              if r["example_id"] in scored}  # fmt: skip
    assert (found["groups"], found["seeds"]) == (len(groups), 3)
    assert "blind" not in {row["detector"] for row in rows}


@pytest.mark.parametrize(
    ("measure", "name", "ids"),
    [
        ("forget_log_probability", "log_probability", "forget"),
        ("exact_memorisation", "exact_memorisation", "forget"),
        ("extraction_strength", "extraction_strength", "forget"),
        ("retain_log_probability", "log_probability", "retain"),
    ],
)
def test_means_of_texts_are_those_of_the_stored_tokens(arms, rows, measure, name, ids):
    def ids_of(arm):
        return sorted(getattr(arm, ids))

    for model, method in (("original", "-"), ("retrained", "-"), ("unlearned", "npo")):
        found = one(rows, measure=measure, model=model, method=method)
        assert found["value"] == pytest.approx(
            slow_mean(arms, model, method, name, ids_of), abs=1e-6
        )
        assert found["low"] < found["value"] < found["high"]
    for reference in ("retrained", "original"):
        found = one(
            rows,
            measure=f"{measure}_difference",
            model="unlearned",
            method="npo",
            setting=f"versus={reference}",
        )
        gap = slow_mean(arms, "unlearned", "npo", name, ids_of) - slow_mean(
            arms, reference, "-", name, ids_of, ("unlearned", "npo")
        )
        assert found["value"] == pytest.approx(gap, abs=1e-6)
    dose = one(rows, measure=measure, model="original", copies="2") if ids == "forget" else None
    if dose is not None:
        wanted = slow_mean(
            arms, "original", "-", name, lambda arm: [i for i in arm.forget if arm.copies[i] == 2]
        )
        assert dose["value"] == pytest.approx(wanted, abs=1e-6)


def test_task_accuracy_is_the_share_of_right_answers(arms, rows):
    for texts, chosen in (("forget", "forget"), ("retain", "retain")):
        shares = []
        for arm in arms:
            answers = pq.read_table(arm.models[0].accuracy / "accuracy.parquet").to_pylist()
            mine = [a["correct_plain"] for a in answers if a["example_id"] in getattr(arm, chosen)]
            shares.append(sum(mine) / len(mine))
        found = one(rows, measure="task_accuracy", model="original", setting=f"texts={texts}")
        assert found["value"] == pytest.approx(np.mean(shares), abs=1e-12)
        assert 0 <= found["low"] < found["value"] < found["high"] <= 1


def test_general_text_is_the_mean_over_documents(arms, rows):
    means = []
    for arm in arms:
        with pa.ipc.open_file(str(arm.models[1].general / "statistics.arrow")) as reader:
            table = reader.read_all().to_pylist()
        means.append(np.mean([slow_memory(row)["log_probability"] for row in table]))
    found = one(rows, measure="general_log_probability", model="retrained")
    assert found["value"] == pytest.approx(np.mean(means), abs=1e-6)
    assert (found["groups"], found["note"]) == (12, "not to be trusted: 12 groups of members")


def test_ks_distance_is_that_of_the_pooled_texts(arms, rows):
    pairs = []
    for arm in arms:
        one_, other = (
            {i: slow_memory(r)["log_probability"] for i, r in Disk(arm, *key).tokens.items()}
            for key in (("unlearned", "npo"), ("retrained", "-"))
        )
        pairs += [
            (one_[i], other[i])
            for i in sorted(arm.forget)
            if math.isfinite(one_[i]) and math.isfinite(other[i])
        ]
    ours, theirs = zip(*pairs, strict=True)
    places = [*ours, *theirs]
    slow = max(
        abs(sum(x <= t for x in ours) - sum(x <= t for x in theirs)) / len(ours) for t in places
    )
    found = one(rows, measure="ks_distance", model="unlearned", method="npo")
    assert found["value"] == pytest.approx(slow, abs=1e-12)
    assert found["value"] == pytest.approx(ks_2samp(ours, theirs).statistic, abs=1e-12)
    assert found["low"] <= slow <= found["high"]
    assert found["forget"] == len(ours)
    sure = one(rows, measure="ks_p", model="original", method="-")
    assert sure["value"] == 1 / 200  # no swap reaches it
    assert math.isnan(sure["low"])


def test_a_seed_that_diverged_is_named_and_counts_in_no_number(arms, rows):
    found = one(rows, measure="forget_log_probability", model="unlearned", method="dead")
    assert found["seeds"] == 2
    assert "1 of 3 seeds have no value" in found["note"]
    assert found["value"] == pytest.approx(
        slow_mean(arms, "unlearned", "dead", "log_probability", lambda arm: sorted(arm.forget)),
        abs=1e-6,
    )


def test_one_dose_has_no_trend_and_one_group_no_interval(tmp_path):
    study = Study(datasets=("people",), groups=3, group_size=4, doses=(3,))
    rows = measure_unlearning(write_study(tmp_path / "s", study), QUICK)["unlearning"].to_pylist()
    assert not [row for row in rows if row["measure"].endswith("_trend")]
    found = one(rows, measure="forget_log_probability", model="unlearned", method="npo")
    assert found["groups"] == 1
    assert math.isfinite(found["value"])
    assert math.isnan(found["low"])
    assert "none" in found["note"]
    quality = one(rows, measure="ks_p", model="unlearned", method="npo")
    assert math.isnan(quality["value"])
    assert {row["copies"] for row in rows} == {"all"}


def test_more_copies_that_unlearn_worse_show_as_a_trend(tmp_path):
    study = Study(seeds=(0, 1, 2), groups=36, group_size=1, by_dose=0.6)
    rows = measure_unlearning(write_study(tmp_path / "s", study), QUICK)["unlearning"].to_pylist()
    found = one(
        rows,
        measure="forget_log_probability_difference_trend",
        model="unlearned",
        method="npo",
        setting="versus=retrained",
    )
    assert found["low"] > 0.3
    against = one(
        rows,
        measure="forget_log_probability_difference_trend",
        model="original",
        setting="versus=retrained",
    )
    assert against["low"] < 0 < against["high"]


def test_a_forget_set_outside_of_the_members_is_refused(arms):
    arm = arms[0]
    outside = next(
        row["example_id"] for row in Disk(arm, "original").examples if row["side"] == "nonmember"
    )
    with pytest.raises(InputError, match=r"1 of .* forget set are not among the members"):
        measure_unlearning([changed(arm, forget=arm.forget | {outside})], QUICK)
    with pytest.raises(InputError, match="in the forget set and in the retain set"):
        measure_unlearning([changed(arm, retain=arm.retain | set(list(arm.forget)[:1]))], QUICK)


def test_a_condition_is_held_against_the_retrained_model_under_it_and_against_none(arms):
    arm = arms[0]
    noisy = {model.model: model for model in arm.models}
    with_condition = tuple(
        condition(model, noisy["original"] if model.method == "npo" else model)
        for model in arm.models
    )
    rows = measure_unlearning([changed(arm, models=with_condition)], QUICK)[
        "unlearning"
    ].to_pylist()
    named = {
        "model": "unlearned",
        "method": "npo",
        "detector": "loss",
        "setting": "condition=4bit",
    }
    original = slow_auc(Disk(arm, "original"), "loss")
    assert one(rows, measure="auc", **named)["value"] == pytest.approx(original, abs=1e-12)
    change = original - slow_auc(Disk(arm, "unlearned", "npo"), "loss")
    assert one(rows, measure="auc_change", **named)["value"] == pytest.approx(change, abs=1e-12)
    gap = original - slow_auc(Disk(arm, "retrained"), "loss")
    assert one(rows, measure="auc_difference", **named)["value"] == pytest.approx(gap, abs=1e-12)


def condition(model: ModelEvidence, scored: ModelEvidence) -> ModelEvidence:
    return ModelEvidence(**{**vars(model), "conditions": {"4bit": scored.scores}})
