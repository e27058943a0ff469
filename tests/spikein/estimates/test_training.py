"""Training estimates of a plan, also without a network."""

import re
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inject.corpus.named_tokenizer import tokenizer_identity
from inject.errors import InputError, Unreachable
from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.hub.resolver import UNRESOLVED, without_network
from spikein.api.plan import plan as plan_experiment
from spikein.cli.main import app
from spikein.config.load import read_experiment
from spikein.estimates.training import Hardware, hardware_needed, training_estimates
from tests.command_line import invoke
from tests.spikein.samples import read_checked, write_sample
from train.cost import model_states
from train.models.pretrained import model_identity

PAPER = Path(__file__).parents[3] / "configs" / "paper" / "min-k-table3.yaml"
LLAMA = "huggyllama/llama-7b"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names cannot be resolved, and nothing has been downloaded before."""
    from huggingface_hub import constants

    def unresolvable(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unresolvable)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


def test_the_papers_experiment_is_planned_without_a_network(no_network, tmp_path: Path) -> None:
    result = invoke("plan", PAPER, "--no-time-training", "--store", tmp_path / "store", code=0)
    # 27 M tokens in windows of 2,048 and steps of 32 windows.
    row = next(line for line in result.stdout.splitlines() if line.startswith(" continue"))
    cells = re.split(r"\s{2,}", row.strip())
    assert cells == [
        "continue", "1", "412", "27.0 M", "1.2e+18",
        "127.6 GB", "80.4 GB", "56.8 GB", "21.4 GB", "27.0 GB", "1.1",
    ]  # fmt: skip
    assert "6,738,415,616 parameters, by the published sizes (llama-7b.yaml)" in result.stdout
    assert "fits from ZeRO-2 on" in result.stdout
    for name in (f"model {LLAMA}", f"tokenizer {LLAMA}", "background together", "dataset google"):
        assert name in result.stdout
    assert not (tmp_path / "store").exists()
    hardware = ["--gpu", "a100", "--gpus", "1", "--mfu", "0.5"]
    command = ["plan", str(PAPER), "--no-time-training", "--store", str(tmp_path), *hardware]
    result = CliRunner().invoke(app, command)
    assert "Assumed: 1 GPUs A100 (80.0 GB), 50% of their peak" in result.stdout
    assert "fits no stage of ZeRO" in result.stdout


def test_context_beyond_the_published_positions_is_refused_offline(no_network, tmp_path) -> None:
    command = [
        "plan",
        str(PAPER),
        "--no-time-training",
        "--store",
        str(tmp_path),
        "train.context=4096",
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "a context of 4096 is more than the model's 2048 positions" in result.output


def test_a_run_requires_inputs_that_a_plan_leaves_unresolved(no_network) -> None:
    contaminant = Contaminant(dataset="boolq", members=1, nonmembers=1)
    for identify in (
        lambda: model_identity(LLAMA),
        lambda: tokenizer_identity(LLAMA),
        lambda: contaminant_identity(contaminant),
    ):
        with pytest.raises(Unreachable):
            identify()
        with without_network() as notes:
            assert UNRESOLVED in str(identify())
        assert len(notes) == 1
        with pytest.raises(Unreachable):
            identify()
    with without_network() as notes, pytest.raises(InputError, match="no such model folder"):
        model_identity("./nowhere/at/all")
    assert notes == {}


def test_gpus_are_assumed_if_present_or_if_the_processor_takes_too_long() -> None:
    small = training_estimates(read_checked().arms, Hardware())
    assert hardware_needed(small, gpus=0) is None
    assert hardware_needed(small, gpus=1) == Hardware()
    large = training_estimates(read_experiment(PAPER).arms, Hardware())
    assert hardware_needed(large, gpus=0) == Hardware()


def test_equal_runs_are_counted_together_and_modes_apart() -> None:
    hardware = Hardware(gpu="a100", gpus=2)
    checked = read_checked(
        "seeds=[0,1]", "sweep={train.mode: [finetune, lora], train.epochs: [1, 2]}"
    )
    estimates = training_estimates(checked.arms, hardware)
    # One base for all arms; two modes and two lengths, each with two seeds.
    assert [(estimate.what, estimate.runs) for estimate in estimates] == [
        ("base", 1),
        ("finetune", 2),
        ("finetune", 2),
        ("lora", 2),
        ("lora", 2),
    ]
    base, once, twice, adapted, _ = estimates
    windows = 50_000 // 64
    assert once.tokens == windows * 64
    assert twice.tokens == 2 * once.tokens
    # The last step has fewer than 16 windows.
    assert (once.steps, twice.steps) == (-(-windows // 16), -(-2 * windows // 16))
    assert base.steps == -(-(100_000 // 64) // 16)
    assert once.cost is not None
    assert adapted.cost is not None
    states = model_states(once.cost.parameters, trained=once.cost.parameters, stage=1, gpus=2)
    assert once.memory(1) == states + once.cost.activations
    assert adapted.cost.flops < once.cost.flops
    assert adapted.memory(0) < once.memory(0)


def test_a_model_of_unknown_size_is_reported(no_network, tmp_path: Path) -> None:
    text = PAPER.read_text().replace(LLAMA, "unknown/unheard-of")
    planned = plan_experiment(write_sample(tmp_path, text), store=tmp_path / "store")
    [estimate] = planned.training
    assert estimate.cost is None
    assert (estimate.steps, estimate.tokens) == (412, 26_998_784)
    assert "the sizes of unknown/unheard-of are unknown here" in estimate.note
    assert all(row.flops is None for row in planned.rows)


def test_impossible_hardware_is_refused() -> None:
    for wrong in ({"gpu": "tpu"}, {"gpus": 0}, {"utilisation": 0.0}, {"utilisation": 1.5}):
        with pytest.raises(InputError):
            Hardware(**wrong)


def test_twins_are_counted_and_a_shared_clean_twin_once() -> None:
    checked = read_checked(
        "twins={clean: true, shadows: 4, retrained: 0.2}",
        "sweep={copies: [{fixed: 1}, {poisson: 4}]}",
        "seeds=[0, 1]",
    )
    runs = {row.what: row.runs for row in training_estimates(checked.arms, Hardware())}
    # Four arms; each has four shadows and a retrained model, each seed one clean twin.
    assert runs == {"base": 1, "continue": 4, "twins": 4 * 5 + 2}


def test_intermediate_models_take_disk_only_in_arms() -> None:
    checked = read_checked("twins={clean: true}", "train.checkpoints={powers_of_two: 4, every: 13}")
    estimates = {row.what: row for row in training_estimates(checked.arms, Hardware())}
    total = estimates["continue"].steps
    saved_steps = {1, 2, 4, *range(13, total, 13)} - {total}
    assert estimates["continue"].models == 1 + len(saved_steps)
    assert estimates["twins"].models == estimates["base"].models == 1
