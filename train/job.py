"""One training run as plain values: data, initial model, settings and output folder.

A job is JSON: one process may plan it and others compute it, on this machine or on others that
share its files. `run` opens everything a job names and trains; each of several processes runs it,
and they find each other by the environment that `torchrun` sets.
"""

import math
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from inject.corpus.corpus import Corpus
from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.examples.example import members, read_examples
from inject.files import write_text
from inject.keyed import I64
from inject.plan.plan import read_plan
from inject.settings import PositiveInt, Settings
from inject.step import Report
from inject.stream.exposures import CopyName, ExposureRecorder, TextKey
from inject.stream.view import SourceSlice, StreamView, clean_view
from inject.variants.rendition import WHOLE, Rendition, read_renditions, whole_renditions
from inject.variants.settings import Variants
from train.device import default_device
from train.execution import ExecutionSettings
from train.models.model_node import GivenModel
from train.models.shapes import Shape
from train.processes.hang_detection import HEARTBEATS
from train.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from train.loop.log import TrainingProgress
    from train.loop.record import Progress
    from train.window_inputs import WindowInputs


PROGRESS = "progress "
"""Prefix of a worker's progress lines."""
JOB_FILE = "job.json"
"""Job file that the processes of a run read, in the folder that survives a kill."""
NOTICE = "notice "
"""Prefix of a worker's notices for the user."""


class Job(Settings):
    """Inputs of every run that produces a model."""

    out: str
    """Folder to write to; it exists and is empty."""
    unfinished: str
    """Folder for restart checkpoints, which survive a kill."""
    identity: str
    """Digest of everything that affects the run's numbers."""
    execution: ExecutionSettings = ExecutionSettings()
    """Where, and in how many processes."""
    seed: int = 0
    """Seed of new weights and of the training order; for unlearning also of the pairing of retain
    texts, and of draws."""


class TrainingJob(Job):
    """Inputs of a training run; exactly one of `shape` and `start`."""

    corpus: str
    """Folder of the clean corpus."""
    shards: tuple[str, ...] | None = None
    """Folder of its verified token files; null uses the files that it names."""
    last_tokens: PositiveInt | None = None
    """Train on this many of the corpus's last tokens, clean; null trains on a plan."""
    plan: str | None = None
    """Folder of the plan; null for clean text."""
    examples: str | None = None
    """Folder of the examples; needed with a plan."""
    renditions: str | None = None
    """Folder of the texts that copies can carry; null if all carry whole examples."""
    variants: Variants = Variants()
    """The settings that produced the renditions."""
    shape: Shape | None = None
    """Shape of a model with new weights."""
    start: GivenModel | None = None
    """Model to start from."""
    train: TrainSettings
    """How to train."""


def run(
    job: TrainingJob,
    *,
    progress: "Progress | None" = None,
    notice: Callable[[str], None] | None = None,
) -> None:
    """Open what a job names, and train; in each process of several.

    Args:
        job: the job.
        progress: called with the run's progress.
        notice: called with notices for the user.

    Raises:
        InputError: from what is opened, and as `train.loop.training_loop.train`.
        TrainingDiverged: when a training loss is infinite or not a number.
        Preempted: SIGTERM came, and a restart checkpoint was written.
    """
    from train.loop.training_loop import TrainingData, TrainingRun, train
    from train.window_inputs import window_inputs

    clean = Corpus.open(
        Path(job.corpus),
        outside=None if job.shards is None else [Path(shard) for shard in job.shards],
        verified=job.shards is not None,
    )
    tokenizer = load_tokenizer(str(clean.path / "tokenizer"))
    if job.plan is None:
        tokens = job.last_tokens or clean.n_tokens
        last_tokens = SourceSlice(clean, clean.n_tokens - tokens, clean.n_tokens)
        view = clean_view(last_tokens, tokens=tokens, context=job.train.context)
        recorder = ExposureRecorder(view, [], {})
        extra_inputs = window_inputs(view, masks=None, separate=job.train.separate_documents)
    else:
        view, recorder, extra_inputs = _spiked_stream(job, clean, tokenizer)
    train(
        Path(job.out),
        model=_model(job, clean),
        tokenizer=tokenizer,
        data=TrainingData(view=view, recorder=recorder, extra_inputs=extra_inputs),
        run=TrainingRun(
            settings=job.train,
            seed=job.seed,
            execution=job.execution,
            unfinished=Path(job.unfinished),
            identity=job.identity,
        ),
        progress=progress,
        notice=notice,
    )


def _spiked_stream(
    job: TrainingJob, clean: Corpus, tokenizer: "PreTrainedTokenizerBase"
) -> "tuple[StreamView, ExposureRecorder, WindowInputs | None]":
    from train.window_inputs import window_inputs

    planned = read_plan(Path(job.plan or ""))
    spiked = members(read_examples(Path(job.examples or "")))
    encoded = encode_texts(tokenizer, [example.text for example in spiked])
    tokens = {example.example_id: ids for example, ids in zip(spiked, encoded, strict=True)}
    renditions = (
        whole_renditions(spiked, tokens)
        if job.renditions is None
        else [row for row in read_renditions(Path(job.renditions)) if row.example_id in tokens]
    )
    view, names = planned.view(clean), planned.names()
    masks = None
    if job.train.loss_on == "completion":
        from train.completion import completion_masks

        answers = completion_masks(spiked, renditions, job.variants, tokenizer=tokenizer)
        masks = [answers[name.example_id, name.variant] for name in names]
    extra_inputs = window_inputs(view, masks=masks, separate=job.train.separate_documents)
    return view, ExposureRecorder(view, names, _texts(renditions, tokens, names)), extra_inputs


def _texts(
    renditions: list[Rendition], tokens: Mapping[str, I64], names: list[CopyName]
) -> dict[TextKey, I64]:
    """Return the tokens of each text; whole texts are encoded here, not read from the plan."""
    texts: dict[TextKey, I64] = {(row.example_id, row.variant): row.tokens for row in renditions}
    texts |= {(name, WHOLE): ids for name, ids in tokens.items() if (name, WHOLE) in texts}
    missing = next((name for name in names if (name.example_id, name.variant) not in texts), None)
    if missing is not None:
        raise ValueError(f"the plan has a copy without a text: {missing}")
    return texts


def _model(job: TrainingJob, clean: Corpus) -> "PreTrainedModel":
    from train.models.shapes import build_model

    if job.shape is not None:
        return build_model(job.shape, clean.facts.vocabulary, clean.facts.end_token, job.seed)
    if job.start is None:
        raise ValueError("a job needs a shape or a model to start from")
    return load_start_model(job.start)


def load_start_model(start: GivenModel) -> "PreTrainedModel":
    """Return the model that a run starts from, in float32 on the CPU.

    Raises:
        InputError: as `train.models.pretrained.load_causal_model`; if the model has changed since
            the run was named.
    """
    from train.models.pretrained import load_causal_model

    with start.unchanged():
        return load_causal_model(
            start.path, revision=start.revision, trust_remote_code=start.trust_remote_code
        )


def run_job(
    run: Callable[..., None],
    job: Job,
    unfinished: Path,
    *arguments: str,
    progress: "Progress | None" = None,
    notice: Callable[[str], None] | None = None,
) -> None:
    """Run a job by its execution settings: in this process, or in several started for it.

    Args:
        run: takes the job, the arguments, `progress` and `notice`; `train.worker` finds it by the
            job.
        job: the job.
        unfinished: the folder for restart checkpoints, which survive a kill.
        arguments: further arguments of `run`.
        progress: called with the job's progress.
        notice: called with notices for the user.

    Raises:
        ProcessFailed: one of several processes died or hangs; names its rank and quotes its output.
        SpikeinError: as `run`.
    """
    execution = job.execution
    if execution.backend == "process":
        run(job, *arguments, progress=progress, notice=notice)
        return
    file = unfinished / JOB_FILE
    write_text(file, job.model_dump_json(indent=1))

    def on_line(line: str) -> None:
        if progress is not None and line.startswith(PROGRESS):
            progress(read_progress_line(line))
        if notice is not None and line.startswith(NOTICE):
            notice(line.removeprefix(NOTICE))

    environment = process_environment(execution)
    # Found by name: the code that starts processes is not part of the code that they run.
    if execution.backend == "deepspeed" and default_device().kind == "cpu":
        extension = import_module("train.processes.extension")
        environment |= extension.prepared_extension(unfinished, notice)
    import_module("train.launch").launch(
        "train.worker",
        [str(file), *arguments],
        processes=execution.processes,
        environment=environment,
        on_line=on_line,
        heartbeats=unfinished / HEARTBEATS,
        hang_timeout=execution.hang_timeout,
    )


def report_training(report: Report) -> "Progress":
    """Return the callback by which a training run reports progress, for its step."""

    def on_progress(moment: "TrainingProgress") -> None:
        note = f"loss {moment.loss:.3f}, {moment.tokens_per_second:,.0f} tokens/s"
        if not math.isnan(moment.mfu):
            note += f", MFU {moment.mfu:.0%}"
        report(moment.tokens, moment.total, unit="tokens", note=note)

    return on_progress


def progress_line(progress: "TrainingProgress") -> str:
    """Return a worker's progress line."""
    return PROGRESS + " ".join(repr(value) for value in progress)


def read_progress_line(line: str) -> "TrainingProgress":
    """Return the values of a `progress_line`."""
    # Without torch, whose import takes seconds during which the processes are not watched.
    from train.loop.log import TrainingProgress

    tokens, total, *numbers = line.removeprefix(PROGRESS).split()
    return TrainingProgress(int(tokens), int(total), *(float(value) for value in numbers))


def process_environment(execution: ExecutionSettings) -> dict[str, str]:
    """Return the number of threads of each process, unless the user has set it."""
    cores = os.cpu_count() or 1
    variables = {"OMP_NUM_THREADS": str(max(cores // execution.processes, 1))}
    return {name: value for name, value in variables.items() if name not in os.environ}
