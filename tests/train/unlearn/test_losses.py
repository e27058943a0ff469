"""Losses of padded batches of different lengths against slow, obvious versions."""

import copy

import numpy as np
import pytest
import torch

from inject.corpus.tokenizer import load_tokenizer
from tests.train.unlearn import slow_losses as slow
from tests.train.unlearn.made import examples, forget_ids, job, load
from tests.train.unlearn.slow_losses import Text
from train.unlearn import batch
from train.unlearn.batch import kl_divergence
from train.unlearn.stages import method_objective, new_labels, unlearning_texts


class Case:
    """A method's objective on a model that has moved away from the original."""

    def __init__(self, world, folder, entry, *, move: float = 0.02) -> None:
        self.job = job(world, folder, entry)
        self.setting = self.job.setting()
        tokenizer = load_tokenizer(str(world / "model"))
        self.model = load(world / "model")
        self.original = copy.deepcopy(self.model).double().eval()
        roles = self.setting.method.roles(self.setting.settings)
        self.texts = unlearning_texts(self.job, self.setting, tokenizer, self.model, roles=roles)
        self.objective = method_objective(self.job, self.setting, self.texts, self.model)
        self.objective.begin(self.model)
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for weight in self.model.parameters():
                weight.add_(move * torch.randn(weight.shape, generator=generator))
        self.moved = copy.deepcopy(self.model).double().eval()

    def losses(self, epoch: int = 0) -> torch.Tensor:
        rows = [self.objective.inputs(epoch, window) for window in range(len(self.texts.forget))]
        inputs = {name: torch.from_numpy(np.stack([row[name] for row in rows])) for name in rows[0]}
        return self.objective.losses(self.model, inputs)

    def text(self, role: str, window: int) -> Text:
        """Return the text of a role for a forget text, with its loss from the first label on."""
        (piece,) = [piece for row, piece in self.texts.rows(0, window) if row == role]
        labelled = np.flatnonzero(piece.labels != -100)
        return Text(piece.ids, int(labelled[0]))

    def check(self, expected) -> None:
        losses = self.losses().tolist()
        expected_losses = [expected(window) for window in range(len(losses))]
        np.testing.assert_allclose(losses, expected_losses, rtol=2e-4, atol=2e-5)


def ascent(case: Case, window: int) -> float:
    return slow.mean_log_probability(case.moved, case.text("forget", window))


def retained(case: Case, window: int) -> float:
    """Return the usual loss of the retain text."""
    return -slow.mean_log_probability(case.moved, case.text("retain", window))


def npo(case: Case, window: int, beta: float, reduction: str) -> float:
    return slow.npo(case.original, case.moved, case.text("forget", window), beta, reduction)


def simnpo(case: Case, window: int, reduction: str) -> float:
    return slow.simnpo(case.moved, case.text("forget", window), 0.02, 0.4, reduction)


def kl(case: Case, window: int) -> float:
    return slow.kl(case.original, case.moved, case.text("retain", window))


def dpo(case: Case, window: int, beta: float, reduction: str) -> float:
    texts = case.text("forget", window), case.text("alternative", window)
    return slow.dpo(case.original, case.moved, *texts, beta, reduction)


def reduced(reduction: str) -> list[tuple]:
    """Return the methods with summed or averaged log-probabilities over the labels."""
    weights = {"forget_weight": 0.2, "retain_weight": 0.7, "reduction": reduction}
    return [
        (
            {"method": "npo", "beta": 0.3, **weights},
            lambda case, w: 0.2 * npo(case, w, 0.3, reduction) + 0.7 * retained(case, w),
        ),
        (
            # With a larger beta the sigmoid is 1 for any margin.
            {"method": "simnpo", "beta": 0.02, "gamma": 0.4, **weights},
            lambda case, w: 0.2 * simnpo(case, w, reduction) + 0.7 * retained(case, w),
        ),
        (
            {"method": "dpo", "beta": 0.2, "reduction": reduction, "prompt_tokens": 5},
            lambda case, w: dpo(case, w, 0.2, reduction),
        ),
    ]


KL = {"method": "kl", "beta": 0.2, "forget_weight": 0.5, "retain_weight": 3.0}
OTHERS = [
    ({"method": "gradient_ascent"}, ascent),
    # The first stage minimises the loss.
    ({"method": "task_vector"}, lambda case, w: -ascent(case, w)),
    (
        {"method": "gradient_difference", "forget_weight": 0.5, "retain_weight": 2.0},
        lambda case, w: 0.5 * ascent(case, w) + 2.0 * retained(case, w),
    ),
    (
        {**KL, "forget_loss": "gradient_ascent"},
        lambda case, w: 0.5 * ascent(case, w) + 3.0 * kl(case, w),
    ),
    (
        {**KL, "forget_loss": "npo"},
        lambda case, w: 0.5 * npo(case, w, 0.2, "sum") + 3.0 * kl(case, w),
    ),
    # Open-Unlearning's loss is 2 / beta times ours, so its retain weight is beta / 2 of ours.
    (
        {"method": "dpo", "beta": 0.1, "forget_weight": 20.0, "retain_weight": 1.5},
        lambda case, w: 2 / 0.1 * dpo(case, w, 0.1, "sum") + 1.5 * retained(case, w),
    ),
]


@pytest.mark.parametrize(("entry", "expected"), [*reduced("sum"), *reduced("mean"), *OTHERS])
def test_losses_match_their_formulas(world, tmp_path, entry, expected):
    case = Case(world, tmp_path, entry)
    case.check(lambda window: expected(case, window))


def test_dpo_answers_follow_the_question(world, tmp_path):
    case = Case(world, tmp_path, {"method": "dpo", "prompt_tokens": 5, "context": 64})
    tokenizer = load_tokenizer(str(world / "model"))
    by_id = {example.example_id: example for example in examples()}
    answers = set()
    for window, piece in enumerate(case.texts.forget):
        true, idk = case.text("forget", window), case.text("alternative", window)
        prompt = tokenizer.decode(true.ids[: true.behind])
        example = by_id[piece.example_id]
        if example.spans:
            assert prompt.rstrip() == example.text[: example.spans["answer"].start].rstrip()
        else:
            assert true.behind == min(5, len(true.ids) // 2)
        assert tokenizer.decode(idk.ids[: idk.behind]) == prompt
        answers.add(tokenizer.decode(idk.ids[idk.behind :]))
        assert idk.ids[-1] == tokenizer.eos_token_id
    assert len(answers) > 1


@pytest.mark.parametrize("loss_on", ["all", "answer"])
def test_rmu_moves_the_states_of_the_labels(world, tmp_path, loss_on):
    entry = {"method": "rmu", "layer": 1, "layers": 2, "steering": 3.0, "alpha": 0.5}
    case = Case(world, tmp_path, {**entry, "loss_on": loss_on})
    direction = case.setting.method.constants(case.model, case.setting.settings, 5)["direction"]
    assert float(direction.norm()) == pytest.approx(1.0, abs=1e-6)
    target = [3.0 * value for value in direction.double().tolist()]

    def expected(window: int) -> float:
        forget, retain = case.text("forget", window), case.text("retain", window)
        steered = slow.hidden(case.moved, forget, 1)
        reference = slow.hidden(case.original, retain, 1)
        return slow.squared_distance(steered, [target] * len(steered), forget) + 0.5 * (
            slow.squared_distance(slow.hidden(case.moved, retain, 1), reference, retain)
        )

    case.check(expected)


def test_rmu_trains_only_the_down_projections(world, tmp_path):
    case = Case(world, tmp_path, {"method": "rmu", "layer": 2, "layers": 2})
    case.losses().mean().backward()
    moved = {name for name, weight in case.model.named_parameters() if weight.grad is not None}
    assert moved == {f"model.layers.{block}.mlp.down_proj.weight" for block in (1, 2)}


def test_relabelled_tokens_match_the_generic_model(world, tmp_path):
    case = Case(world, tmp_path, "gradient_ascent")
    made = job(world, tmp_path, {"method": "relabel", "alpha": 2.0}).setting()
    labels = new_labels(made.method, load(world / "model"), case.model, case.texts, made.settings)
    before = load(world / "model").eval()
    for window in range(len(case.texts.forget)):
        text = case.text("forget", window)
        expected = [
            slow.generic_label(before, case.model.eval(), text, place, 2.0)
            for place in range(len(text.ids) - 1)
        ]
        assert labels[window, 1 : len(text.ids)].tolist() == expected
        assert labels[window, 0] == -100
        assert (labels[window, len(text.ids) :] == -100).all()
    whole = np.concatenate([piece.ids[1:] for piece in case.texts.forget])
    assert len(case.texts.forget) == len(forget_ids())
    assert (labels[labels != -100] != whole).any()


@pytest.mark.parametrize("block", [1, 100, 1 << 20])
@pytest.mark.parametrize("share", [0.0, 0.5, 2.0])
def test_divergence_and_gradient_match_autograd(monkeypatch, block, share):
    monkeypatch.setitem(batch._BLOCK, "cpu", block)
    generator = torch.Generator().manual_seed(1)
    p, q = (torch.randn(3, 11, 37, generator=generator, dtype=torch.float64) for _ in range(2))
    q.requires_grad_(True)
    mask = torch.rand(3, 11, generator=generator) < share
    weight = torch.arange(33.0, dtype=torch.float64).view(3, 11)
    expected = (p.softmax(2) * (p.log_softmax(2) - q.log_softmax(2))).sum(2) * mask
    (gradient,) = torch.autograd.grad((weight * expected).sum(), q)
    single = q.detach().float().requires_grad_(True)
    divergence = kl_divergence(p.float(), single, mask)
    (weight.float() * divergence).sum().backward()
    torch.testing.assert_close(divergence.double(), expected.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(single.grad.double(), gradient, atol=1e-5, rtol=1e-5)


def test_original_under_an_adapter_runs_without_dropout(world, tmp_path):
    from peft import LoraConfig, get_peft_model

    case = Case(world, tmp_path, KL)
    expected = case.original.float()(torch.arange(12)[None]).logits
    model = load(world / "model")
    for block in model.model.layers:
        block.self_attn.attention_dropout = 0.9
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj"])).train()
    objective = method_objective(case.job, case.setting, case.texts, adapted)
    answers = []

    def loss(unlearning_batch):
        answers.append(unlearning_batch.ask_original(torch.arange(12)[None]))
        return torch.zeros(())

    objective.loss = loss
    objective.begin(adapted)
    inputs = {name: torch.from_numpy(row[None]) for name, row in objective.inputs(0, 0).items()}
    objective.losses(adapted, inputs)
    torch.testing.assert_close(answers[0], expected)
    assert adapted.training
