"""The command of the dose law: reading a run's arms, refusals, and the files it writes."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from scipy.special import ndtr, ndtri

from inject.errors import InputError
from inject.stream.exposures import SCHEMA as EXPOSURES
from scripts.studies import dose_law, doses, run_cells
from scripts.studies.dose_law import main, predict
from scripts.studies.laws import LAWS, Design
from scripts.studies.run_cells import arm_cells, first_scored, sized_arms
from spikein.api.finished_run import Run
from spikein.runs.record import RunRecord
from spikein.store.store import Store
from tests.analysis.oracles import auc as auc_by_pairs
from tests.spikein.samples import SAMPLE, recipe, write

MAPPING = yaml.safe_load(SAMPLE.replace("1e-3", "0.001"))
TERMS = np.array([0.4, 0.8, 0.2, 0.4])
SEEDS = 4
DOSES = np.repeat([0, 1, 2, 4], [60, 20, 20, 20])
FINISHED = "2030-01-01T00:00:00+00:00"


def made_run(name: str, sweep: dict[str, list], *, off: float = 0.0, **settings) -> Run:
    """Return a run whose tables come from the law, read from no folder.

    Args:
        name: of the run.
        sweep: its axes.
        off: lowers every AUC.
        settings: of the experiment that differ from the sample's, by dotted key.
    """
    values = {**MAPPING, "name": name, "seeds": list(range(SEEDS)), "sweep": sweep}
    values["model"] = {"shape": "llama-1m", "tokenizer": {"vocab_size": 2048}}
    for key, value in settings.items():
        section, _, own = key.partition("__")
        values[section] = {**values[section], own: value}
    record = RunRecord.model_construct(
        id=f"{name}-1", name=name, finished=FINISHED,
        digests=dict.fromkeys(dose_law.READ, (1, "0" * 64)),
    )  # fmt: skip
    run = Run(folder=Path("runs") / name / "1", record=record)
    run.__dict__["settings"] = values
    arms = sized_arms(run)
    dealt = {seed: np.random.default_rng(seed).permutation(DOSES) for seed in range(SEEDS)}
    parts = [arm_rows(arm, seed, copies, off) for arm in arms for seed, copies in dealt.items()]
    run.__dict__["scores"] = pa.concat_tables(scores for scores, _ in parts)
    run.__dict__["exposures"] = pa.concat_tables(exposures for _, exposures in parts)
    run.__dict__["examples"] = pa.Table.from_pylist(
        [
            {
                "seed": seed, "example_id": f"e{at}", "dataset": "texts", "group": str(at),
                "side": "member" if count else "nonmember", "split": "tune" if at < 5 else "test",
                "text": "",
            }
            for seed, copies in dealt.items()
            for at, count in enumerate(copies)
        ]
    )  # fmt: skip
    return run


def arm_rows(arm, seed, copies, off):
    """Return the scores and exposures of one model."""
    random = np.random.default_rng([seed, arm.parameters])
    design = Design.of(np.maximum(copies, 1), arm.parameters, arm.rate)
    shift = np.where(copies > 0, np.sqrt(2) * LAWS["power law"].probit(TERMS, design) - off, 0.0)
    scores = random.normal(size=len(copies)) + shift
    place = {**arm.columns, "seed": seed}
    scored = [
        {**place, "model": model, "example_id": f"e{at}", "detector": detector,
         "selection": selection, "score": score if selection == "default" else 0.0}
        for at, score in enumerate(scores.tolist())
        for model in ("contaminated", "base")
        for detector in ("min_k", "loss")
        for selection in ("default", "tuned")
        if model == "contaminated" or selection == "default"
    ]  # fmt: skip
    seen = [
        {**place, "example_id": f"e{at}", "dataset": "texts", "copy": copy, "variant": "whole",
         "status": "whole", "intact": True, "text_start": 0, "text_stop": 9, "text_length": 9}
        for at, count in enumerate(copies.tolist())
        for copy in range(count)
    ]  # fmt: skip
    axes = [pa.field(column, pa.string()) for column in arm.columns]
    schema = pa.schema([*axes, pa.field("seed", pa.int64()), *EXPOSURES])
    return pa.Table.from_pylist(scored), pa.Table.from_pylist(seen, schema=schema)


@pytest.fixture(scope="module")
def fitted_run() -> Run:
    return made_run("dose", {"model.shape": ["llama-1m", "llama-10m"], "train.lr": [5e-4, 1e-3]})


@pytest.fixture(scope="module")
def later_run() -> Run:
    return made_run("dose-later", {}, model__shape="llama-10m", train__lr=2e-3)


@pytest.fixture
def runs(monkeypatch, fitted_run, later_run):
    """Return the two runs by name, scored by now."""
    by_name = {"dose": fitted_run, "dose-later": later_run}
    monkeypatch.setattr(dose_law, "load_run", by_name.__getitem__)
    monkeypatch.setattr(dose_law, "first_scored", lambda run, arm: None)
    return by_name


PREDICT = ["predict", "dose", "--detectors", "min_k", "--copies", "1,2,4", "--rate", "2e-3"]


def test_arms_have_their_size_and_rate(fitted_run):
    arms = sized_arms(fitted_run)
    assert [arm.label for arm in arms] == [
        f"shape llama-{size}, lr {rate}" for size in ("1m", "10m") for rate in ("0.0005", "0.001")
    ]
    assert [arm.rate for arm in arms] == [5e-4, 1e-3, 5e-4, 1e-3]
    assert 1.0e6 < arms[0].parameters < 1.1e6 < 9e6 < arms[2].parameters


def test_cells_are_those_of_default_scores_on_test_rows(fitted_run):
    arm = sized_arms(fitted_run)[1]
    cells = arm_cells(fitted_run, arm, "min_k")
    assert cells.copies.tolist() == [1, 2, 4]
    scores = {
        (row["seed"], row["example_id"]): row["score"]
        for row in fitted_run.scores.to_pylist()
        if (row["model.shape"], row["train.lr"]) == ("llama-1m", "0.001")
        and (row["model"], row["detector"], row["selection"])
        == ("contaminated", "min_k", "default")
    }
    for seed in range(SEEDS):
        copies = np.random.default_rng(seed).permutation(DOSES)[5:]
        own = np.array([scores[seed, f"e{at}"] for at in range(5, len(DOSES))])
        for column, count in enumerate((1, 2, 4)):
            expected = auc_by_pairs(own[copies == count], own[copies == 0])
            assert cells.auc[seed, column] == pytest.approx(expected)


def test_prediction_and_verdict_from_two_runs(runs, tmp_path, capsys):
    file = tmp_path / "prediction.json"
    parameters = sized_arms(runs["dose-later"])[0].parameters
    main([*PREDICT, "--parameters", str(parameters), "--out", str(file)])
    main(["verdict", str(file), "dose-later", "--into", str(tmp_path)])
    output = capsys.readouterr().out
    assert "min_k, power law: a 0." in output
    assert "[95 % interval]" in output
    with (tmp_path / "data" / "dose-law-prediction.csv").open() as opened:
        lines = list(csv.DictReader(opened))
    verdicts = {line["row"]: line["value"] for line in lines if line["column"] == "verdict"}
    assert set(verdicts) == {f"min_k; {law}" for law in LAWS}
    truth = ndtr(LAWS["power law"].probit(TERMS, Design.of([1, 2, 4], parameters, 2e-3)))
    for count, value in zip((1, 2, 4), truth, strict=True):
        (line,) = [
            line for line in lines
            if (line["table"], line["row"], line["column"])
            == ("Predicted AUC by copies", "min_k; power law", str(count))
        ]  # fmt: skip
        assert float(line["low"]) - 0.05 < value < float(line["high"]) + 0.05
    rows = {line["row"] for line in lines if line["table"] == "Observed AUC by copies"}
    assert rows == {
        *(f"min_k; {arm.label}" for arm in sized_arms(runs["dose"])),
        "min_k; contaminated; left out",
    }
    image = (tmp_path / "images" / "dose-law-prediction-min_k.png").read_bytes()
    assert image.startswith(b"\x89PNG")


def test_copies_at_auc_75_are_those_of_the_law(fitted_run, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(doses, "load_run", {"dose": fitted_run}.__getitem__)
    doses.main(["dose", "--detectors", "min_k", "--into", str(tmp_path)])
    with (tmp_path / "data" / "doses-dose.csv").open(encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    assert len(capsys.readouterr().out.splitlines()) == len(rows) == 4
    a, power, by_size, by_rate = TERMS
    *reached, beyond = zip(sized_arms(fitted_run), rows, strict=True)
    assert beyond[1]["value"] == "less than 1 copy"
    for arm, row in reached:
        scale = a * (arm.parameters / 1e6) ** by_size * (arm.rate / 1e-3) ** by_rate
        expected = (np.sqrt(2) * ndtri(0.75) / scale) ** (1 / power)
        assert row["column"] == arm.label
        assert float(row["low"]) < expected < float(row["high"]) < 3 * expected


def test_arm_that_the_run_has_scored_is_not_predicted(runs, tmp_path):
    arguments = [*PREDICT, "--parameters", "1.05e6", "--out", str(tmp_path / "p.json")]
    arguments[arguments.index("2e-3")] = "1e-3"
    with pytest.raises(SystemExit, match=r"'shape llama-1m, lr 0.001' has .* already scored"):
        main(arguments)
    with pytest.raises(SystemExit, match="already scored"):
        main([*arguments, "--leave-out", "shape llama-1m, lr 0.001"])
    assert not list(tmp_path.iterdir())


def test_arms_that_differ_in_something_else_are_not_fitted_together(tmp_path):
    run = made_run("tails", {"train.lr": [1e-3, 2e-3], "train.weight_decay": [0.0, 0.1]})
    options = {"detectors": ["min_k"], "copies": [1], "parameters": 9e6, "rate": 1e-3}
    with pytest.raises(InputError, match=r"have one size and learning rate.*--leave-out"):
        predict(run, leave_out=[], **options)
    left_out = [f"lr {rate}, weight_decay 0.1" for rate in ("0.001", "0.002")]
    # One size is left, which the law's fit refuses.
    with pytest.raises(InputError, match="1 model sizes and 2 learning rates"):
        predict(run, leave_out=left_out, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--leave-out", "lr 7"], "no arm is called 'lr 7'"),
        (["--detectors", "min_kk"], "'min_kk' scored no text of this arm.*Did you mean 'min_k'"),
    ],
)
def test_unknown_arm_and_detector_are_named(runs, tmp_path, options, message):
    arguments = [*PREDICT, *options, "--parameters", "9e6", "--out", str(tmp_path / "p.json")]
    with pytest.raises(SystemExit, match=message):
        main(arguments)


def test_arm_scored_before_the_prediction_is_refused(runs, tmp_path, monkeypatch):
    file = tmp_path / "prediction.json"
    parameters = sized_arms(runs["dose-later"])[0].parameters
    main([*PREDICT, "--parameters", str(parameters), "--out", str(file)])
    early = datetime.now(UTC) - timedelta(hours=1)
    monkeypatch.setattr(dose_law, "first_scored", lambda run, arm: early)
    with pytest.raises(SystemExit, match="before the prediction"):
        main(["verdict", str(file), "dose-later"])


def test_verdict_requires_the_arm_that_was_predicted(runs, tmp_path):
    file = tmp_path / "prediction.json"
    main([*PREDICT, "--parameters", "30e6", "--out", str(file)])
    with pytest.raises(SystemExit, match=r"0 arms have 3e\+07 parameters.*--arm"):
        main(["verdict", str(file), "dose-later"])
    main(["verdict", str(file), "dose-later", "--arm", "contaminated"])


def test_time_of_scoring_is_that_of_the_first_scores(tmp_path, monkeypatch, later_run):
    store = Store(tmp_path / "store")
    artifacts = [store.obtain(recipe(n=n), write("x"), label="scores").artifact for n in (1, 2)]
    paths = [artifact.path for artifact in artifacts]
    monkeypatch.setattr(run_cells, "linked_artifacts", lambda folder: paths)
    rows = [
        {"role": role, "scores": "/".join(path.parts[-2:])}
        for role, path in zip(("contaminated", "base"), paths, strict=True)
    ]
    run = Run(folder=later_run.folder, record=later_run.record)
    run.__dict__["models"] = pa.Table.from_pylist(rows)
    (arm,) = sized_arms(later_run)
    scored = first_scored(run, arm)
    assert abs((datetime.now(UTC) - scored).total_seconds()) < 60
    monkeypatch.setattr(run_cells, "linked_artifacts", lambda folder: [])
    assert first_scored(run, arm) is None
