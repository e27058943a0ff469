"""The one training loop: Hugging Face `Trainer`, with our order, our record and our log.

The windows of all epochs form one sequence, each epoch in its keyed order; optimiser steps cut
it into `batch_windows` windows each. So a step may contain the end of one epoch and the start of
the next, and only the last step of the run can be smaller: no window is dropped, and none is
seen twice in an epoch.

Cost in addition to forward, backward and update: under 2 % of a step (`python -m
scripts.bench.training`).
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainingArguments

from inject.errors import InputError
from train.cost import operations_per_token, peak_operations
from train.device import default_device
from train.execution import ExecutionSettings, deepspeed_config
from train.loop.chunked_loss import chunked_loss
from train.loop.dataset import ExtraInputs, Objective, WindowSequence, WindowSource
from train.loop.errors import explain_faults
from train.loop.log import write_log
from train.loop.preparation import Prepared, prepare
from train.loop.record import READ_EVERY, Progress, Record, Recorder
from train.loop.resume import merge_exposures, restore_record, shared_resume_point
from train.loop.trackers import PROJECT, tracking
from train.loop.trainer import KeptModels, KeyedTrainer, ResumeCheckpoints, move_kept_models
from train.models.weight_check import highest_stream_id, require_rows
from train.process_state import isolated_randomness, plain_transformers, reused_memory, trainer_seed
from train.processes.environment import barrier, rank, several_nodes, world_size
from train.processes.hang_detection import (
    COLLECTIVE_SECONDS,
    HEARTBEATS,
    HeartbeatWriter,
    Phase,
    start_hang_detection,
)
from train.processes.preemption import Preempted, handle_sigterm
from train.schedule import checkpoint_steps, schedule_factor, step_count
from train.settings import TrainSettings, require_positions


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The training data of a model, and the recorder of exposures."""

    view: WindowSource
    """The stream; its windows have `TrainSettings.context` tokens."""
    recorder: Recorder
    """Records the windows that were fed."""
    extra_inputs: ExtraInputs | None = None
    """Further inputs of each window (`train.window_inputs`): labels, positions."""
    objective: Objective | None = None
    """Objective that replaces the model's own loss; it gives its own inputs, so that `extra_inputs`
    is empty."""


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """How a model is trained: the first two fields determine its weights, the others their
    computation."""

    settings: TrainSettings
    seed: int
    """Seed of the order of the windows, and of dropout in models that have it."""
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    """By default only this process."""
    unfinished: Path | None = None
    """A folder for restart checkpoints, which survive a kill. The run resumes from its newest one,
    and gives the same weights and exposures as an uninterrupted run."""
    identity: str = ""
    """Digest of everything that affects the run's numbers; names its restart checkpoints."""


def train(
    out: Path,
    *,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    data: TrainingData,
    run: TrainingRun,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
) -> None:
    """Train `model` in place on every window, and write the model, log and exposures.

    Equal arguments give bit-identical weights on one machine's CPU with one number of threads.
    The global random state is left as it was.

    Args:
        out: folder to write to: the model in Hugging Face format (safetensors) with its tokenizer,
            `log.parquet`, `exposures.parquet`, and `step-N` for each model kept along the way;
            nothing else remains.
        model: a causal language model.
        tokenizer: saved with it.
        data: the training data.
        run: training and execution settings.
        progress: called after every reading of the loss.
        notice: called with notices for the user, such as a damaged restart checkpoint; in the first
            process.

    Raises:
        InputError: if view, model, tokenizer and settings do not fit together; if a restart
            checkpoint in `run.unfinished` belongs to another run.
        TrainingDiverged: if a loss is infinite or not a number.
        OutOfMemory: with settings to lower.
        AdapterUntrained: if LoRA moved no adapter.
        Preempted: SIGTERM came, and a restart checkpoint was written.
    """
    view, settings, execution, unfinished = data.view, run.settings, run.execution, run.unfinished
    check_compatibility(model, tokenizer, view, settings)
    steps = step_count(settings, view.n_windows)
    micro_batch_windows = execution.device_batch(settings.batch_windows, world_size())
    passes = settings.batch_windows // (micro_batch_windows * world_size())
    stream = WindowSequence(
        view,
        epochs=settings.epochs,
        seed=run.seed,
        extra_inputs=data.extra_inputs,
        objective=data.objective,
        multiple_of=1 if micro_batch_windows == settings.batch_windows else settings.batch_windows,
    )
    prepared = prepare(model, settings, execution, seed=run.seed)
    window_tokens = view.context
    if data.objective is not None:
        data.objective.begin(prepared.model)
        window_tokens = data.objective.window_tokens
    record = Record(
        data.recorder,
        context=window_tokens,
        windows=stream.windows,
        progress=progress,
        passes=passes,
        mfu_share=_mfu_share(prepared, data.objective, view.context),
    )
    use_cache = model.config.use_cache
    model_steps = (
        () if settings.checkpoints is None else checkpoint_steps(settings.checkpoints, steps)
    )
    engine = deepspeed_config(execution)
    with (
        explain_faults(settings, execution, unfinished, out),
        _scratch_folder(unfinished) as scratch,
        _heartbeats(unfinished, execution) as heartbeat,
        tracking(execution, unfinished, run.identity) if execution.trackers else nullcontext(),
        isolated_randomness(),
        plain_transformers(deepspeed=engine is not None),
    ):
        arguments = _arguments(run, engine, scratch, steps)
        point = shared_resume_point(unfinished, run.identity, execution, model_steps, notice)
        if point is not None:
            restore_record(point, record)
        trainer = KeyedTrainer(
            prepared.model,
            arguments,
            stream,
            record,
            schedule=lambda step: schedule_factor(settings, step, steps=steps),
            bfloat16=_use_bfloat16(settings),
            heartbeat=heartbeat,
        )

        def weights() -> dict[str, torch.Tensor] | None:
            # With ZeRO-3 every process has a part of each weight.
            if engine is None:
                return None
            return trainer.accelerator.get_state_dict(trainer.model_wrapped)

        if model_steps:
            trainer.add_callback(
                KeptModels(
                    steps=model_steps,
                    folder=Path(scratch),
                    record=record,
                    prepared=prepared,
                    tokenizer=tokenizer,
                    weights=weights,
                    use_cache=use_cache,
                    heartbeat=heartbeat,
                )
            )
        causal = getattr(prepared.model, "get_base_model", lambda: prepared.model)()
        with (
            handle_sigterm(enabled=unfinished is not None) as request,
            chunked_loss(causal) if data.objective is None else nullcontext(),
        ):
            if unfinished is not None:
                trainer.add_callback(
                    ResumeCheckpoints(
                        record=record,
                        identity=run.identity,
                        execution=execution,
                        request=request,
                        heartbeat=heartbeat,
                    )
                )
            with reused_memory() if model.device.type == "cpu" else nullcontext():
                trainer.train(resume_from_checkpoint=str(point) if point else None)
                record.read()
            if request.shared:
                raise Preempted(
                    f"ended by SIGTERM after step {len(record.rows)} of {steps}, with a "
                    f"checkpoint in {unfinished}. Run the same command to resume from there."
                )
        heartbeat.write(Phase.SAVE, steps)
        whole = weights()
        merge_exposures(Path(scratch), data.recorder)
        model.config.use_cache = use_cache
        if rank() == 0:
            prepared.save(out, weights=whole)
            with plain_transformers():
                tokenizer.save_pretrained(out)
            write_log(out, record.rows)
            data.recorder.write(out)
            move_kept_models(model_steps, Path(scratch), out)
    barrier()


def check_compatibility(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    view: WindowSource,
    settings: TrainSettings,
) -> None:
    """Check that view, model, tokenizer and settings agree.

    Raises:
        InputError: for a stream shorter than a window, windows longer than the model's positions,
            and a tokenizer that makes ids for which the model's embedding has no row.
    """
    if view.n_windows == 0:
        raise InputError(
            f"the training stream is shorter than one window of {view.context} tokens",
            where="tokens",
            hint="Give a larger budget or a smaller context.",
        )
    require_positions(settings.context, getattr(model.config, "max_position_embeddings", None))
    rows = model.get_input_embeddings().weight.shape[0]
    require_rows(highest_stream_id(tokenizer), rows, place="model.tokenizer")


@contextmanager
def _scratch_folder(unfinished: Path | None) -> Iterator[str]:
    """Yield the trainer's folder: the one that survives a kill, or a temporary one."""
    if unfinished is not None:
        unfinished.mkdir(parents=True, exist_ok=True)
        yield str(unfinished)
        return
    with tempfile.TemporaryDirectory(prefix="spikein-trainer-") as scratch:
        yield scratch


@contextmanager
def _heartbeats(unfinished: Path | None, execution: ExecutionSettings) -> Iterator[HeartbeatWriter]:
    """Yield the writer of this process's heartbeats; of several processes, all are watched."""
    if unfinished is None or world_size() == 1:
        yield HeartbeatWriter(None, rank=0)
        return
    folder = unfinished / HEARTBEATS
    heartbeat = HeartbeatWriter(folder, rank=rank(), several_nodes=several_nodes())
    start_hang_detection(folder, world_size(), execution.hang_timeout)
    try:
        yield heartbeat
    finally:
        heartbeat.close()


def _arguments(
    run: TrainingRun, engine: dict[str, Any] | None, scratch: str, steps: int
) -> TrainingArguments:
    settings, execution = run.settings, run.execution
    micro_batch_windows = execution.device_batch(settings.batch_windows, world_size())
    on_gpu = torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=scratch,
        per_device_train_batch_size=micro_batch_windows,
        gradient_accumulation_steps=settings.batch_windows // (micro_batch_windows * world_size()),
        deepspeed=engine,
        use_cpu=not on_gpu,
        ddp_backend=None if world_size() == 1 or on_gpu else "gloo",
        ddp_find_unused_parameters=False if world_size() > 1 else None,
        ddp_timeout=round(COLLECTIVE_SECONDS),
        num_train_epochs=1,
        max_steps=steps,
        learning_rate=settings.lr,
        optim="adamw_torch_fused",
        weight_decay=settings.weight_decay,
        adam_beta1=settings.betas[0],
        adam_beta2=settings.betas[1],
        adam_epsilon=1e-8,
        max_grad_norm=settings.max_grad_norm or 0.0,
        torch_compile=execution.compile,
        seed=trainer_seed(run.seed),
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        logging_strategy="steps" if execution.trackers else "no",
        logging_steps=READ_EVERY if on_gpu else 1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        eval_strategy="no",
        report_to=list(execution.trackers),
        run_name=run.identity or None,
        project=PROJECT,
        disable_tqdm=True,
    )
    # Without this, several visible GPUs would be wrapped in DataParallel, which splits the batch.
    _ = arguments.device
    arguments._n_gpu = min(arguments._n_gpu, 1)
    return arguments


def _mfu_share(prepared: Prepared, objective: Objective | None, context: int) -> float:
    """Return the model FLOPs utilisation for each token per second; NaN if it is not known."""
    model = prepared.model
    device = torch.device("cuda") if torch.cuda.is_available() else model.device
    blocks, extra_passes = (None, 0.0) if objective is None else (objective.blocks, objective.asked)
    peak = peak_operations(device, bfloat16=_use_bfloat16(prepared.settings)) * world_size()
    return operations_per_token(model, context, blocks=blocks, extra_passes=extra_passes) / peak


def _use_bfloat16(settings: TrainSettings) -> bool:
    return default_device().training_precision(settings.precision) == "bfloat16"
