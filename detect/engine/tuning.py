"""A target tuned on further texts by low-rank adapters, for detectors that compare the two.

As Zhang et al. 2025 (fine-tuned score deviation) tune: LoRA of rank 16 and α 32 with dropout 0.05,
learning rate 1e-3 on a cosine, batches of 8 texts, 3 epochs; on the layers and with the weight
decay of `detect.settings.Adapters`. Differences: the warm-up is 100 steps, or a tenth of all steps
if that is less, since a few dozen texts make few steps; the last batch is kept. Texts are shuffled
again in each epoch and cut to the context. All randomness follows from the seed 0; the target
itself is unchanged.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from detect.engine.batching import pad_sequences
from detect.engine.encoding import encode
from detect.engine.forward_pass import scoring_context
from detect.engine.open_target import open_target
from detect.engine.target import Target, make_target
from detect.engine.view_statistics import write_pass
from detect.settings import Adapters, DetectSettings, ScoringPolicy
from inject import keyed
from inject.errors import InputError
from inject.examples.example import read_examples, read_held_out
from inject.step import StepContext
from train.process_state import isolated_randomness

RANK, ALPHA, DROPOUT = 16, 32, 0.05
LEARNING_RATE, BATCH, EPOCHS, WARM_UP = 1e-3, 8, 3, 100
WEIGHT_DECAY: Mapping[Adapters, float] = {"all_linear": 0.0, "peft": 0.0005}


def train(context: StepContext) -> None:
    """Train adapters of the target on the held-out rows, and write them."""
    policy = DetectSettings.model_validate(context.execution["detect"]).policy()
    target = open_target(context)
    train_adapter(
        context.out,
        target,
        [row.text for row in read_held_out(context.inputs["examples"])],
        policy,
        context=scoring_context(target, policy),
        adapters=context.settings["adapters"],
        progress=lambda done, total: context.report(done, total, unit="steps"),
    )


def build(context: StepContext) -> None:
    """Compute the token statistics of every example under the tuned target, and write them."""
    rows = read_examples(context.inputs["examples"])
    tuned = with_adapter(open_target(context), context.inputs["adapter"])
    write_pass(context, tuned, rows, record={"tuned": context.settings["tuned"]})


def train_adapter(
    out: Path,
    target: Target,
    texts: Sequence[str],
    policy: ScoringPolicy,
    *,
    context: int | None,
    adapters: Adapters = "all_linear",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Tune low-rank adapters of the target on texts, and save only the adapters.

    Args:
        out: a folder; it gets `adapter_config.json` and `adapter_model.safetensors`.
        target: its weights are unchanged, but its model is wrapped and must not be used again.
        texts: at least one has two or more tokens.
        policy: whether texts have a start token.
        context: number of ids to read per text; None for all.
        adapters: the adapted layers, and the weight decay.
        progress: called with (steps done, steps in all).

    Raises:
        InputError: no text has two tokens; PEFT has no default layers for the architecture.
    """
    from peft import LoraConfig, get_peft_model

    encoded = [row.ids[:context].tolist() for row in encode(target.tokenizer, texts, policy)]
    sequences = [ids for ids in encoded if len(ids) > 1]
    if not sequences:
        raise InputError("no held-out text has two tokens to tune a model on", where=target.name)
    batches = math.ceil(len(sequences) / BATCH)
    steps = EPOCHS * batches
    warm_up = min(WARM_UP, steps // 10)
    with isolated_randomness():
        torch.manual_seed(0)
        config = LoraConfig(
            r=RANK,
            lora_alpha=ALPHA,
            lora_dropout=DROPOUT,
            target_modules="all-linear" if adapters == "all_linear" else None,
            task_type="CAUSAL_LM",
        )
        try:
            model = get_peft_model(target.model, config)
        except ValueError as error:
            raise InputError(
                f"PEFT has no default layers to adapt in this model ({error})",
                where=target.name,
                allowed="adapters=all_linear",
            ) from error
        model.train()
        weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(
            weights, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY[adapters]
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: learning_rate_share(step, steps, warm_up)
        )
        done = 0
        for epoch in range(EPOCHS):
            random = keyed.generator(0, keyed.Stream.SHOT, epoch)
            order = random.permutation(len(sequences)).tolist()
            for start in range(0, len(order), BATCH):
                batch = [sequences[place] for place in order[start : start + BATCH]]
                inputs, *_ = pad_sequences(target, batch, side="right", always_mask=True)
                labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
                loss = model(**inputs, labels=labels).loss
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(weights, 1.0)
                optimizer.step()
                schedule.step()
                done += 1
                progress(done, steps)
        model.eval()
    model.save_pretrained(out)


def with_adapter(target: Target, adapter: Path) -> Target:
    """Return the target with adapters merged into a copy of its weights."""
    from peft import PeftModel

    # Adapters are drawn at random before their file is read: other draws must not change.
    with isolated_randomness():
        model = PeftModel.from_pretrained(copy.deepcopy(target.model), adapter, is_trainable=False)
        merged: Any = model.merge_and_unload()
    return make_target(merged, target.tokenizer, name=target.name, device=target.device)


def learning_rate_share(step: int, steps: int, warm_up: int) -> float:
    """Return the share of the learning rate at a step: a linear warm-up, then half a cosine."""
    if step < warm_up:
        return (step + 1) / (warm_up + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))
