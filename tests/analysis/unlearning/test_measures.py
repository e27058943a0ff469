"""All measures against slow loops over the stored files."""

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.settings import MeasureSettings
from analysis.unlearning.evidence import ArmEvidence, text_memory
from analysis.unlearning.unlearning_step import measure_unlearning
from tests.analysis.unlearning.studies import Study, statistics_of, write_study

STUDY = Study(
    seeds=(0, 1, 2),
    groups=12,
    methods={"npo": 0.3, "dead": 0.0},
    unscored=1,
    diverged=(("dead", 1),),
)
QUICK = MeasureSettings(permutations=199)
NPO = {"model": "unlearned", "method": "npo"}


def row_of(rows, **conditions):
    conditions = {"dataset": "all", "copies": "all", "method": "-", "setting": "", **conditions}
    matches = [row for row in rows if all(row[key] == value for key, value in conditions.items())]
    assert len(matches) == 1, (conditions, len(matches))
    return matches[0]


class Disk:
    """One arm read from disk without the code under test."""

    def __init__(self, arm: ArmEvidence, model: str, method: str = "-"):
        (self.model,) = [m for m in arm.models if (m.model, m.method) == (model, method)]
        self.arm = arm
        self.examples = pq.read_table(arm.examples / "examples.parquet").to_pylist()
        with pa.ipc.open_file(str(self.model.folders["statistics"] / "statistics.arrow")) as reader:
            table = reader.read_all().to_pylist()
        self.tokens = {row["example_id"]: row for row in table}

    def score(self, detector: str) -> dict[str, float]:
        return {
            row["example_id"]: row["score"]
            for row in pq.read_table(self.model.folders["scores"] / "scores.parquet").to_pylist()
            if (row["detector"], row["setting"]) == (detector, self.model.defaults[detector])
        }

    def forget(self, dataset=None, copies=None, *, test=False):
        return [
            row
            for row in self.examples
            if row["example_id"] in self.arm.forget
            and dataset in (None, row["dataset"])
            and (copies is None or self.arm.copies[row["example_id"]] == copies)
            and (not test or row["split"] == "test")
        ]

    def holdout(self, dataset):
        return [
            row
            for row in self.examples
            if (row["side"], row["split"], row["dataset"]) == ("nonmember", "test", dataset)
        ]


def slow_memory(row: dict) -> dict[str, float]:
    """Return a text's memorisation measures by definition."""
    ranks, n = row["rank"], len(row["rank"])
    if not n or any(math.isnan(x) for x in row["log_probability"]):
        return dict.fromkeys(
            ("log_probability", "exact_memorisation", "extraction_strength"), math.nan
        )
    prefix = next(k for k in range(n + 1) if all(rank == 1 for rank in ranks[k:]))
    return {
        "log_probability": sum(map(float, row["log_probability"])) / n,
        "exact_memorisation": sum(rank == 1 for rank in ranks) / n,
        "extraction_strength": 1 - prefix / n,
    }


def slow_mean(arms, model, method, name, ids_of, also=None) -> float:
    """Return the mean over seeds of the mean over texts that `also` has as well."""
    of_seed = []
    for arm in arms:
        memory = {i: slow_memory(r)[name] for i, r in Disk(arm, model, method).tokens.items()}
        shared = memory
        if also is not None:
            shared = {i: slow_memory(r)[name] for i, r in Disk(arm, *also).tokens.items()}
        values = [
            memory[i] for i in ids_of(arm) if math.isfinite(memory[i]) and math.isfinite(shared[i])
        ]
        if values:
            of_seed.append(sum(values) / len(values))
    return sum(of_seed) / len(of_seed)


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("study") / "arms", STUDY)


def measured(arms) -> list[dict]:
    return measure_unlearning(arms, QUICK)["unlearning"].to_pylist()


@pytest.fixture(scope="module")
def rows(arms):
    return measured(arms)


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


@pytest.mark.parametrize(
    ("detector", "copies", "dataset"),
    [("loss", None, None), ("min_k", None, "news"), ("min_k", 2, None)],
)
def test_aucs_and_differences_match_all_pairs(arms, rows, detector, copies, dataset):
    place = {"copies": "all" if copies is None else str(copies), "dataset": dataset or "all"}
    setting = arms[0].models[0].defaults[detector]
    for model, method in (("original", "-"), ("unlearned", "npo")):
        own_aucs = [slow_auc(Disk(arm, model, method), detector, copies, dataset) for arm in arms]
        retrained = [slow_auc(Disk(arm, "retrained"), detector, copies, dataset) for arm in arms]
        named = {"model": model, "method": method, "detector": detector, "setting": setting}
        row = row_of(rows, measure="auc", **named, **place)
        assert row["value"] == pytest.approx(np.mean(own_aucs), abs=1e-12)
        row = row_of(rows, measure="auc_difference", **named, **place)
        assert row["value"] == pytest.approx(np.mean(own_aucs) - np.mean(retrained), abs=1e-12)
        row = row_of(rows, measure="privleak", **named, **place)
        below = 1 - np.mean(retrained)
        expected = 100 * ((1 - np.mean(own_aucs)) - below) / below
        assert row["value"] == pytest.approx(expected, abs=1e-9)


def test_sample_sizes_of_an_auc_match_the_rows(arms, rows):
    row = row_of(
        rows, measure="auc", model="original", detector="loss", setting="default", dataset="news"
    )
    scored = [
        row["example_id"]
        for arm in arms
        for row in Disk(arm, "original").forget("news", test=True)
        if math.isfinite(Disk(arm, "original").score("loss")[row["example_id"]])
    ]
    assert row["forget"] == len(scored)
    assert row["holdout"] == sum(len(Disk(arm, "original").holdout("news")) for arm in arms)
    groups = {r["group"] for arm in arms for r in Disk(arm, "original").forget("news", test=True)
              if r["example_id"] in scored}  # fmt: skip
    assert (row["groups"], row["seeds"]) == (len(groups), 3)
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
def test_text_means_match_the_stored_tokens(arms, rows, measure, name, ids):
    def ids_of(arm):
        return sorted(getattr(arm, ids))

    for model, method in (("original", "-"), ("retrained", "-"), ("unlearned", "npo")):
        row = row_of(rows, measure=measure, model=model, method=method)
        mean = slow_mean(arms, model, method, name, ids_of)
        assert row["value"] == pytest.approx(mean, abs=1e-6)
        assert row["low"] < row["value"] < row["high"]
    for reference in ("retrained", "original"):
        row = row_of(rows, measure=f"{measure}_difference", setting=f"versus={reference}", **NPO)
        reference_mean = slow_mean(arms, reference, "-", name, ids_of, ("unlearned", "npo"))
        gap = slow_mean(arms, "unlearned", "npo", name, ids_of) - reference_mean
        assert row["value"] == pytest.approx(gap, abs=1e-6)
    if ids == "forget":
        dose = row_of(rows, measure=measure, model="original", copies="2")
        expected = slow_mean(
            arms, "original", "-", name, lambda arm: [i for i in arm.forget if arm.copies[i] == 2]
        )
        assert dose["value"] == pytest.approx(expected, abs=1e-6)


def test_accuracy_and_general_text_are_means_over_answers_and_documents(arms, rows):
    for texts in ("forget", "retain"):
        shares = []
        for arm in arms:
            answers = pq.read_table(
                arm.models[0].folders["accuracy"] / "accuracy.parquet"
            ).to_pylist()
            right = [a["correct_plain"] for a in answers if a["example_id"] in getattr(arm, texts)]
            shares.append(sum(right) / len(right))
        row = row_of(rows, measure="task_accuracy", model="original", setting=f"texts={texts}")
        assert row["value"] == pytest.approx(np.mean(shares), abs=1e-12)
        assert 0 <= row["low"] < row["value"] < row["high"] <= 1
    means = []
    for arm in arms:
        with pa.ipc.open_file(str(arm.models[1].folders["general"] / "statistics.arrow")) as reader:
            table = reader.read_all().to_pylist()
        means.append(np.mean([slow_memory(row)["log_probability"] for row in table]))
    row = row_of(rows, measure="general_log_probability", model="retrained")
    assert row["value"] == pytest.approx(np.mean(means), abs=1e-6)
    assert (row["groups"], row["note"]) == (12, "not to be trusted: 12 groups of members")


def test_ks_distance_matches_the_pooled_texts(arms, rows):
    pairs = []
    for arm in arms:
        first, second = (
            {i: slow_memory(r)["log_probability"] for i, r in Disk(arm, *key).tokens.items()}
            for key in (("unlearned", "npo"), ("retrained", "-"))
        )
        pairs += [
            (first[i], second[i])
            for i in sorted(arm.forget)
            if math.isfinite(first[i]) and math.isfinite(second[i])
        ]
    unlearned, retrained = zip(*pairs, strict=True)
    places = [*unlearned, *retrained]
    slow = max(
        abs(sum(x <= t for x in unlearned) - sum(x <= t for x in retrained)) / len(unlearned)
        for t in places
    )
    row = row_of(rows, measure="ks_distance", model="unlearned", method="npo")
    assert row["value"] == pytest.approx(slow, abs=1e-12)
    assert row["low"] <= slow <= row["high"]
    assert row["forget"] == len(unlearned)
    sure = row_of(rows, measure="ks_p", model="original", method="-")
    assert sure["value"] == 1 / 200  # no swap reaches the observed distance
    assert math.isnan(sure["low"])


def test_a_diverged_seed_is_reported_and_excluded(arms, rows):
    row = row_of(rows, measure="forget_log_probability", model="unlearned", method="dead")
    assert row["seeds"] == 2
    assert "1 of 3 seeds have no value" in row["note"]
    assert row["value"] == pytest.approx(
        slow_mean(arms, "unlearned", "dead", "log_probability", lambda arm: sorted(arm.forget)),
        abs=1e-6,
    )


def test_one_dose_has_no_trend_and_one_group_no_interval(tmp_path):
    study = Study(datasets=("people",), groups=3, group_size=4, doses=(3,))
    rows = measured(write_study(tmp_path / "s", study))
    assert not [row for row in rows if row["measure"].endswith("_trend")]
    row = row_of(rows, measure="forget_log_probability", model="unlearned", method="npo")
    assert row["groups"] == 1
    assert math.isfinite(row["value"])
    assert math.isnan(row["low"])
    assert "none" in row["note"]
    quality = row_of(rows, measure="ks_p", model="unlearned", method="npo")
    assert math.isnan(quality["value"])
    assert {row["copies"] for row in rows} == {"all"}


def test_worse_unlearning_with_more_copies_gives_a_trend(tmp_path):
    study = Study(seeds=(0, 1, 2), groups=36, group_size=1, by_dose=0.6)
    rows = measured(write_study(tmp_path / "s", study))
    trend = {"measure": "forget_log_probability_difference_trend", "setting": "versus=retrained"}
    assert row_of(rows, **trend, **NPO)["low"] > 0.3
    against = row_of(rows, **trend, model="original")
    assert against["low"] < 0 < against["high"]


def changed_models(arm: ArmEvidence, changes: dict[tuple[str, str], dict], **fields) -> ArmEvidence:
    """Return an arm in which some models have additional evidence."""
    models = tuple(
        dataclasses.replace(
            model, folders={**model.folders, **changes.get((model.model, model.method), {})}
        )
        for model in arm.models
    )
    return ArmEvidence(**{**vars(arm), "models": models, **fields})


def test_conditions_compare_with_the_retrained_and_the_plain_model(arms):
    arm = arms[0]
    scores = {(model.model, model.method): model.folders["scores"] for model in arm.models}
    under = {**scores, ("unlearned", "npo"): scores["original", "-"]}
    rows = measured([changed_models(arm, {key: {"condition 4bit": under[key]} for key in scores})])
    named = {**NPO, "detector": "loss", "setting": "condition=4bit"}
    original = slow_auc(Disk(arm, "original"), "loss")
    assert row_of(rows, measure="auc", **named)["value"] == pytest.approx(original, abs=1e-12)
    change = original - slow_auc(Disk(arm, "unlearned", "npo"), "loss")
    assert row_of(rows, measure="auc_change", **named)["value"] == pytest.approx(change, abs=1e-12)
    gap = original - slow_auc(Disk(arm, "retrained"), "loss")
    assert row_of(rows, measure="auc_difference", **named)["value"] == pytest.approx(gap, abs=1e-12)


def test_relearning_is_measured_on_the_other_half(arms):
    arm = arms[0]
    half = frozenset(sorted(arm.forget)[::2])
    saved = {(model.model, model.method): model.folders["statistics"] for model in arm.models}
    after = {
        ("unlearned", "npo"): {"5": saved["base", "-"], "20": saved["original", "-"]},
        ("retrained", "-"): {"5": saved["base", "-"], "20": saved["base", "-"]},
    }
    changes = {
        key: {f"relearned {steps}": folder for steps, folder in folders.items()}
        for key, folders in after.items()
    }
    rows = measured([changed_models(arm, changes, relearnt=half)])
    means = {
        key: slow_mean([arm], *key, "log_probability", lambda arm: sorted(arm.forget - half))
        for key in saved
    }
    name = "relearned_log_probability"
    for model, step, equal_to in (
        (NPO, 0, ("unlearned", "npo")),
        (NPO, 20, ("original", "-")),
        ({"model": "retrained"}, 20, ("base", "-")),
    ):
        row = row_of(rows, measure=name, setting=f"steps={step}", **model)
        assert row["value"] == pytest.approx(means[equal_to])
    gap = row_of(rows, measure=f"{name}_difference", setting="steps=20:versus=retrained", **NPO)
    assert gap["value"] == pytest.approx(means["original", "-"] - means["base", "-"])
    assert gap["low"] < gap["value"] < gap["high"]
    # After 20 steps it equals the original; a choice of few steps has no valid interval.
    steps = row_of(rows, measure="relearn_steps", **NPO)
    assert steps["value"] == 20
    assert math.isnan(steps["low"])
    assert steps["note"].startswith("no interval")
    scored = [
        i
        for i, row in Disk(arm, "original").tokens.items()
        if i in arm.forget - half and row["rank"]
    ]
    assert steps["forget"] == len(scored)
    late = row_of(rows, measure="relearn_steps", model="retrained")
    assert math.isnan(late["value"])
    assert late["note"] == "not back after 20 steps"


@given(st.lists(st.integers(1, 3), min_size=1, max_size=30))
def test_extraction_strength_uses_the_shortest_sufficient_prefix(ranks):
    n = len(ranks)
    statistics = statistics_of(np.random.default_rng(n), -1.0, n)
    statistics = dataclasses.replace(statistics, rank=np.array(ranks, np.int32))
    memory = text_memory(statistics)
    prefix = round((1 - memory.extraction_strength) * n)
    assert all(rank == 1 for rank in ranks[prefix:])
    assert prefix == 0 or ranks[prefix - 1] != 1
    assert 0 <= memory.extraction_strength <= memory.exact_memorisation <= 1
    assert memory.exact_memorisation == ranks.count(1) / n
    diverged = dataclasses.replace(statistics, log_probability=np.full(n, -np.inf, np.float32))
    assert np.isnan(text_memory(diverged)).all()
