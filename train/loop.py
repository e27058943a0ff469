"""The one training loop: Hugging Face `Trainer`, with our order, our record and our log.

The windows of all epochs form one sequence, each epoch in its keyed order; optimiser steps cut
it into `batch_windows` windows each. So a step may hold the end of one epoch and the start of
the next, and only the last step of the run can be smaller: no window is dropped, and none is
seen twice in an epoch.

Cost beside forward, backward and update: under 2 % of a step (`python -m scripts.bench.training`).
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from inject.errors import InputError
from train.callbacks import Clock, Keeper, Milestones, hand_over
from train.checkpoints import checkpoint_steps
from train.execution import ExecutionSettings, deepspeed_config
from train.faults import explained
from train.feeding import IGNORED
from train.log import write_log
from train.memory import reused_memory
from train.preparation import prepare
from train.processes import rank, wait_for_all, world_size
from train.quiet import plain_transformers
from train.randomness import isolated_randomness, trainer_seed
from train.record import Ledger, Pending, Progress, Record, Speed, TrainSummary
from train.resume import (
    KEPT,
    Timer,
    find_resume_point,
    merge_exposures,
    take_up,
)
from train.schedule import schedule_factor, step_count, warmup_steps
from train.settings import TrainSettings
from train.stream import Further, Stream, Windows, collate
from train.tracking import PROJECT, log_every, tracking
from train.utilisation import operations_per_token, peak_operations


def train(
    out: Path,
    *,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    view: Windows,
    ledger: Ledger,
    settings: TrainSettings,
    seed: int,
    execution: ExecutionSettings | None = None,
    further: Further | None = None,
    progress: Progress | None = None,
    unfinished: Path | None = None,
    identity: str = "",
    resume_every: int | None = None,
) -> TrainSummary:
    """Train `model` in place on every window, and write checkpoint, log and exposures.

    Equal arguments give bit-identical weights on one machine's CPU with one number of threads.
    The global random state is left as it was.

    Args:
        out: folder to write to: the Hugging Face checkpoint (safetensors) with its tokenizer,
            `log.parquet`, `exposures.parquet`, and `step-N` for each model kept along the way;
            nothing else stays there.
        model: a causal language model.
        tokenizer: saved beside it.
        view: the stream; its windows have `settings.context` tokens.
        ledger: told what was fed.
        settings: how to train.
        seed: decides the order of the windows (and dropout, in models that have it).
        execution: how the run is computed; None for this process alone.
        further: what each window brings beside its ids (`train.feeding`): labels, positions.
        progress: called after every reading of the loss.
        unfinished: a folder for checkpoints that survive a kill; the newest of this run there is
            taken up, and gives the weights and the ledger of a run that was never killed.
        identity: digest of everything that bears on the run's numbers; names its checkpoints.
        resume_every: optimiser steps between two checkpoints; None for one in five minutes.

    Raises:
        InputError: when view, model, tokenizer and settings do not fit together; when a checkpoint
            in `unfinished` belongs to another run.
        TrainingDiverged: when a loss is infinite or not a number.
        OutOfMemory: with what to lower.
        AdapterUntrained: when LoRA moved no adapter.
    """
    check_fit(model, tokenizer, view, settings)
    steps = step_count(settings, view.n_windows)
    execution = execution or ExecutionSettings()
    device_windows = execution.device_batch(settings.batch_windows, world_size())
    passes = settings.batch_windows // (device_windows * world_size())
    stream = Stream(
        view,
        epochs=settings.epochs,
        seed=seed,
        further=further,
        multiple_of=1 if device_windows == settings.batch_windows else settings.batch_windows,
    )
    prepared = prepare(model, settings, execution, seed=seed)
    record = Record(
        ledger,
        context=view.context,
        windows=stream.windows,
        progress=progress,
        passes=passes,
        speed=_speed(model, settings, view.context),
    )
    use_cache = model.config.use_cache
    kept = () if settings.checkpoints is None else checkpoint_steps(settings.checkpoints, steps)
    point = find_resume_point(unfinished, identity, execution, kept)
    if point is not None:
        take_up(point, record)
    engine = deepspeed_config(execution)
    with (
        explained(settings, execution, unfinished, out),
        _workplace(unfinished) as scratch,
        tracking(execution, unfinished, identity),
        isolated_randomness(),
        plain_transformers(deepspeed=engine is not None),
    ):
        trainer = _KeyedTrainer(
            prepared.model,
            _arguments(settings, execution, engine, scratch, steps, seed, identity),
            stream,
            record,
            schedule=lambda step: schedule_factor(
                settings.schedule, step, steps=steps, warmup_steps=warmup_steps(settings, steps)
            ),
            bfloat16=_use_bfloat16(settings),
        )

        def weights() -> dict[str, torch.Tensor] | None:
            # With ZeRO-3 every process holds a part of each weight.
            if engine is None:
                return None
            return trainer.accelerator.get_state_dict(trainer.model_wrapped)

        if kept:
            trainer.add_callback(
                Milestones(
                    kept,
                    Path(scratch),
                    record=record,
                    prepared=prepared,
                    tokenizer=tokenizer,
                    weights=weights,
                    use_cache=use_cache,
                )
            )
        if unfinished is not None:
            every = resume_every or execution.resume_every
            if every is None and world_size() > 1:
                # Clocks differ between processes, and all must save at the same step.
                every = max(steps // 20, 1)
            trainer.add_callback(Keeper(record, identity, Timer(every), execution))
        with reused_memory() if model.device.type == "cpu" else nullcontext():
            trainer.train(resume_from_checkpoint=str(point.folder) if point else None)
            record.read()
        whole = weights()
        merge_exposures(Path(scratch), ledger)
        model.config.use_cache = use_cache
        if rank() == 0:
            prepared.save(out, weights=whole)
            with plain_transformers():
                tokenizer.save_pretrained(out)
            write_log(out / "log.parquet", record.rows)
            ledger.write(out / "exposures.parquet")
            hand_over(kept, Path(scratch), out)
    wait_for_all()
    return record.summary()


def check_fit(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    view: Windows,
    settings: TrainSettings,
) -> None:
    """Check that the parts of a training run fit together.

    Raises:
        InputError: for a stream shorter than a window, windows of another length than
            `settings.context` or longer than the model's positions, and a tokenizer with more
            ids than the model's embedding has rows.
    """
    if view.context != settings.context:
        raise InputError(
            f"windows of {view.context} tokens do not fit a context of {settings.context}",
            where="train.context",
        )
    if view.n_windows == 0:
        raise InputError(
            f"the training stream holds less than one window of {view.context} tokens",
            where="tokens",
            hint="Give a larger budget or a smaller context.",
        )
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and settings.context > positions:
        raise InputError(
            f"a context of {settings.context} is more than the model's {positions} positions",
            where="train.context",
            allowed=f"up to {positions}",
        )
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise InputError(
            f"the tokenizer has {len(tokenizer)} ids, the model's embedding {rows} rows",
            where="model.tokenizer",
            hint="Use the tokenizer that the model was trained with.",
        )


@contextmanager
def _workplace(unfinished: Path | None) -> Iterator[str]:
    """Yield the trainer's folder: the one that survives a kill, or one that goes at the end."""
    if unfinished is not None:
        unfinished.mkdir(parents=True, exist_ok=True)
        yield str(unfinished)
        return
    with tempfile.TemporaryDirectory(prefix="spikein-trainer-") as scratch:
        yield scratch


class _KeyedTrainer(Trainer):
    """`Trainer` that keeps the given order, takes our schedule and reports each step."""

    lr_scheduler: LambdaLR | None

    def __init__(
        self,
        model: PreTrainedModel,
        arguments: TrainingArguments,
        stream: Stream,
        record: Record,
        *,
        schedule: Callable[[int], float],
        bfloat16: bool,
    ) -> None:
        self._record = record
        self._schedule = schedule
        self._bfloat16 = bfloat16
        self._counts_labels = stream.further is not None
        super().__init__(model=model, args=arguments, train_dataset=stream, data_collator=collate)
        self.remove_callback(PrinterCallback)
        self.add_callback(Clock(record))

    def compute_loss_context_manager(self) -> AbstractContextManager[Any]:
        """Return the context of the forward pass: bfloat16 arithmetic, where asked for.

        Not through Accelerate, which would also turn all logits into float32 copies and leave
        the model's `forward` wrapped.
        """
        return torch.autocast(self.args.device.type, dtype=torch.bfloat16, enabled=self._bfloat16)

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> LambdaLR:
        """Return our schedule; torch counts the updates done, we count steps from 1."""
        scheduler = LambdaLR(optimizer or self.optimizer, lambda done: self._schedule(done + 1))
        self.lr_scheduler = scheduler
        return scheduler

    def training_step(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> torch.Tensor:
        """Make one forward and backward pass, then record what the model was fed."""
        fed = inputs.pop("fed")
        loss = super().training_step(model, inputs, num_items_in_batch)
        step = self.state.global_step + 1
        lr = float(self.optimizer.param_groups[0]["lr"])
        labels = inputs["labels"][:, 1:].ne(IGNORED).sum() if self._counts_labels else None
        self._record.add(Pending(step, lr, fed, inputs["input_ids"], loss, labels))
        return loss

    def _get_num_items_in_batch(
        self, batch_samples: list[dict[str, Any]], device: torch.device
    ) -> torch.Tensor | int | None:
        """Return the label tokens of the step, at least 1: a step without any has a loss of 0."""
        count = super()._get_num_items_in_batch(batch_samples, device)
        return count.clamp(min=1) if isinstance(count, torch.Tensor) else count

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Tell the trackers, where there are any, what our own log holds beside."""
        if "loss" in logs and self._record.rows:
            row = self._record.rows[-1]
            known = {"tokens": row.tokens, "tokens_per_second": row.tokens_per_second}
            logs = {**logs, **known} if np.isnan(row.mfu) else {**logs, **known, "mfu": row.mfu}
        super().log(logs, start_time)

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        """Return 0: the count is ours (`train.shapes.flops_per_token`), and this one is slow."""
        return 0


def _arguments(
    settings: TrainSettings,
    execution: ExecutionSettings,
    engine: dict[str, Any] | None,
    scratch: str,
    steps: int,
    seed: int,
    identity: str,
) -> TrainingArguments:
    device_windows = execution.device_batch(settings.batch_windows, world_size())
    on_gpu = torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=scratch,
        per_device_train_batch_size=device_windows,
        gradient_accumulation_steps=settings.batch_windows // (device_windows * world_size()),
        deepspeed=engine,
        use_cpu=not on_gpu,
        ddp_backend=None if world_size() == 1 or on_gpu else "gloo",
        ddp_find_unused_parameters=False if world_size() > 1 else None,
        num_train_epochs=1,
        max_steps=steps,
        learning_rate=settings.lr,
        optim="adamw_torch_fused",
        weight_decay=settings.weight_decay,
        adam_beta1=settings.betas[0],
        adam_beta2=settings.betas[1],
        adam_epsilon=1e-8,
        max_grad_norm=settings.clip or 0.0,
        torch_compile=execution.compile,
        seed=trainer_seed(seed),
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        logging_strategy="steps" if execution.trackers else "no",
        logging_steps=log_every(on_gpu),
        logging_nan_inf_filter=False,
        save_strategy="no",
        save_total_limit=KEPT,
        eval_strategy="no",
        report_to=list(execution.trackers),
        run_name=identity or None,
        project=PROJECT,
        disable_tqdm=True,
    )
    # Without this, several visible GPUs would be wrapped in DataParallel, which splits the batch.
    _ = arguments.device
    arguments._n_gpu = min(arguments._n_gpu, 1)
    return arguments


def _speed(model: PreTrainedModel, settings: TrainSettings, context: int) -> Speed:
    device = torch.device("cuda") if torch.cuda.is_available() else model.device
    return Speed(
        operations_per_token(model, context),
        peak_operations(device, bfloat16=_use_bfloat16(settings)) * world_size(),
    )


def _use_bfloat16(settings: TrainSettings) -> bool:
    if settings.precision == "auto":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return settings.precision == "bfloat16"
