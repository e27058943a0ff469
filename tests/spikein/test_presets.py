"""Every shipped experiment reads, is planned offline with its cost, and matches its description."""

import re
from pathlib import Path

import pytest

from analysis.studies.design import design
from inject.builtin_files import AUDITS, CONFIGS, EXPERIMENTS
from spikein.api.plan import plan
from spikein.config.design_rows import Rows, design_rows
from spikein.config.load import read_experiment
from spikein.estimates.training import Hardware
from spikein.pipeline.build_graph import build_graph
from tests.spikein.estimates.test_training import no_network

__all__ = ["no_network"]

STUDIES = {
    "size-in-distribution",
    "learning-rate",
    "gpqa-finetune",
    "unlearning",
}
PAGE = CONFIGS.parent / "docs" / "presets.md"


def names(folder: str) -> list[str]:
    stems = {path.stem for path in (CONFIGS / folder).glob("*.yaml")}
    return sorted(stems - AUDITS.files().keys())


def test_a_preset_is_found_by_its_name_and_names_itself():
    page = PAGE.read_text(encoding="utf-8")
    for folder in ("small", "studies", "paper", "gpu"):
        assert f"configs/{folder}/" in page
        for name in names(folder):
            path = EXPERIMENTS.find(name)
            assert read_experiment(name).experiment.name == name
            text = path.read_text(encoding="utf-8")
            assert re.search(rf"(?m)^#   spikein (run|plan) {name}(\s|$)", text), name


def test_designed_studies_fix_claims_before_they_run():
    without = [name for name in names("studies") if not read_experiment(name).experiment.claims]
    assert without == ["correction", "which-detector"]


def test_copies_of_the_dose_study_are_at_most_two_percent(data_folder, tmp_path: Path):
    # One seed: the others differ in their draws.
    overrides = [f"data={data_folder}", "seeds=[0]", "arms=null", "claims=null"]
    planned = plan("dose", overrides=overrides, store=tmp_path / "store", draw=True)
    assert planned.problems == ()
    shares = {estimate.share for estimate in planned.injection}
    assert all(share is not None and 0 < share < 0.0205 for share in shares), shares


def near(*expected: float) -> object:
    """The inflation of a design on paper; steps, tails and members of arms are whole numbers."""
    return pytest.approx(list(expected), abs=0.06)


def inflations(rows: Rows, columns: list[str]) -> list[float]:
    """The variance inflation of the columns, which the arms separate."""
    result = design(list(rows.values()), columns)
    assert result.rank == 1 + len(columns)
    return [result.inflation[column] for column in columns]


def test_sizes_and_rates_of_the_dose_study_are_separable():
    rows = design_rows(read_experiment("dose").arms)
    del rows["recent"]
    assert inflations(rows, ["parameters", "train.lr"]) == near(1.1, 1.1)


def test_causes_of_a_larger_corpus_are_separable_in_size_steps():
    rows = design_rows(read_experiment("size-steps").arms)
    crossed = dict([*rows.items()][:8])
    columns = ["unique", "steps", "batch", "tail"]
    assert inflations(crossed, columns) == near(2.0, 4.0, 3.0, 1.0)
    with_members = dict([*rows.items()][:10])
    columns.append("members")
    assert inflations(with_members, columns) == near(2.5, 4.5, 3.4, 1.0, 1.4)
    # Tokens are the product of steps and batch.
    result = design(list(with_members.values()), [*columns, "corpus.tokens"])
    assert (result.rank, result.size) == (6, 7)
    # The tail may be counted in steps.
    for row in crossed.values():
        row["tail"] /= row["batch"]
    assert inflations(crossed, ["unique", "steps", "batch", "tail"])[2:3] == near(3.4)


def test_kinds_of_text_and_of_background_are_crossed_in_outlier():
    rows: dict[str, dict[str, float]] = {}
    for arm, row in design_rows(read_experiment("outlier").arms).items():
        arxiv = row["corpus.sources"] == "arxiv_abstracts"
        large = row["corpus.tokens"] == 2_400_000
        for abstract in (True, False):
            signs = {"kind": abstract, "background": arxiv, "tokens": large}
            signs |= {"match": abstract == arxiv, "both": (abstract == arxiv) == large}
            rows[f"{arm}/{abstract}"] = {key: 2.0 ** (2 * sign - 1) for key, sign in signs.items()}
    columns = ["kind", "background", "tokens", "match", "both"]
    assert inflations(rows, columns) == near(1, 1, 1, 1, 1)


@pytest.mark.parametrize("name", [*names("paper"), *names("gpu")])
def test_a_large_preset_is_planned_offline_with_its_cost(no_network, tmp_path: Path, name: str):
    hardware = Hardware(gpu="h100", gpus=8)
    planned = plan(name, store=tmp_path / "store", hardware=hardware)
    assert planned.problems == ()
    assert planned.unresolved, "inputs that were not looked up are named"
    assert sum(training.runs for training in planned.training) == planned.arms
    for training in planned.training:
        assert training.cost is not None, training.note
        assert training.cost.gpu_seconds > 0
        assert any(training.memory(stage) <= hardware.memory for stage in range(4))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "name", ["size-in-distribution", "gpqa-finetune", "finetune-lora-small", "unlearning"]
)
def test_a_small_preset_is_checked_on_its_data(data_folder, tmp_path: Path, name: str):
    planned = plan(name, overrides=[f"data={data_folder}"], store=tmp_path / "store")
    assert planned.problems == ()
    assert planned.unresolved == {}
    tokens = sum(training.runs * training.tokens for training in planned.training)
    # Some 4,000 tokens a second are trained on a core that does nothing else.
    assert tokens <= 8_000_000
    assert all(training.cost is not None for training in planned.training)


def test_a_study_has_three_seeds_and_the_fastest_arithmetic():
    for checked in map(read_experiment, sorted(STUDIES)):
        assert len(checked.experiment.seeds) == 3
        for arm in checked.arms:
            assert arm.experiment.train.precision == "fastest"
            assert arm.experiment.base.precision == "fastest"
            assert arm.experiment.train.schedule == "constant"


def test_the_quickstart_needs_only_three_passes():
    """A first page in minutes: two arms, and scores of two texts under two models."""
    # Another background, whose documentation is extracted sooner, needs the same steps.
    light, full = (
        build_graph(read_experiment(name, ["corpus.sources.0.packages=[pydantic]"]))
        for name in ("quickstart", "quickstart-full")
    )
    assert (len(light.nodes), len(full.nodes)) == (2, 4)
    evidence = {step.kind for step in light.graph.steps}
    assert evidence >= {"statistics", "frequency", "scores", "results"}
    assert not evidence & {"gradients", "adapter", "shots", "guesses", "continuations", "choices"}
    assert len(light.graph.steps) * 5 < len(full.graph.steps)
    # Its arithmetic is float32 on every processor.
    experiment = light.experiment
    assert (experiment.train.precision, experiment.base.precision) == ("auto", "auto")
