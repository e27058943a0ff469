"""A stage of an unlearning run: opens the job's inputs, computes the method's requirements before
training, and trains through the one loop; in each of several processes.

The requirements (log-probabilities under the original, new labels, drawn directions) are a function
only of the job, and are computed again after a restart: one forward pass over the forget set for
each queried model.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from inject.corpus.named_tokenizer import load_named_tokenizer
from inject.corpus.tokenizer import end_token_id
from inject.errors import InputError
from train.device import default_device
from train.execution import ExecutionSettings
from train.job import load_start_model
from train.loop.record import Progress
from train.loop.training_loop import TrainingData, TrainingRun, train
from train.models.pretrained import load_causal_model
from train.process_state import plain_transformers
from train.processes.environment import local_rank, world_size
from train.unlearn.batch import Role, token_log_probabilities
from train.unlearn.exposures import UnlearningRecorder
from train.unlearn.method import MethodSettings, UnlearningMethod
from train.unlearn.objective import (
    UnlearningObjective,
    ask,
    block_list,
)
from train.unlearn.registry import MethodSetting
from train.unlearn.texts import (
    I64,
    Piece,
    UnlearningTexts,
    preferences,
    row_length,
    text_pieces,
)
from train.unlearn.unlearning_job import (
    UnlearningJob,
    chosen_examples,
    first_model,
    stage_unfinished,
)
from train.window_inputs import IGNORED


def log_probabilities(
    model: torch.nn.Module,
    pieces: Sequence[Piece],
    texts: UnlearningTexts,
    settings: MethodSettings,
) -> npt.NDArray[np.float32]:
    """Return the log-probability of each piece, summed over its labels, [pieces].

    Args:
        model: moved to the training device, and left there.
        pieces: the pieces to score.
        texts: defines the padding of rows.
        settings: settings of the method: arithmetic, and rows per pass.
    """
    sums = np.zeros(len(pieces), dtype=np.float32)
    with _evaluation_mode(model, settings) as device:
        for ids, labels, place in _rows(pieces, texts, settings.batch_texts, device):
            targets = torch.nn.functional.pad(labels[:, 1:], (0, 1), value=IGNORED)
            summed = token_log_probabilities(ask(model, ids), targets).sum(1)
            sums[place] = summed.float().cpu().numpy()
    return sums


def new_labels(
    method: UnlearningMethod,
    original: torch.nn.Module,
    first: torch.nn.Module,
    texts: UnlearningTexts,
    settings: MethodSettings,
) -> I64:
    """Return the labels that a method gives the forget pieces, [pieces, length].

    Padding, and tokens that carried no loss, stay `IGNORED`.

    Args:
        method: has `labels`.
        original: the model to unlearn.
        first: the model of the method's first stage.
        texts: the pieces.
        settings: of the method.
    """
    if method.labels is None:
        raise ValueError("the method gives no labels")
    all_labels = np.full((len(texts.forget), texts.length), IGNORED, dtype=np.int64)
    with _evaluation_mode(original, settings) as device, _evaluation_mode(first, settings):
        for ids, labels, place in _rows(texts.forget, texts, settings.batch_texts, device):
            chosen = method.labels(
                lambda ids: ask(original, ids), lambda ids: ask(first, ids), ids, settings
            )
            row_labels = torch.where(labels.ne(IGNORED), chosen, labels)
            all_labels[place] = row_labels.cpu().numpy()
    return all_labels


@contextmanager
def _evaluation_mode(model: torch.nn.Module, settings: MethodSettings) -> Iterator[torch.device]:
    """Yield the training device, with the model on it, without dropout and gradients."""
    on_gpu = torch.cuda.is_available()
    device = torch.device(f"cuda:{local_rank()}") if on_gpu else torch.device("cpu")
    model.to(device)
    was_training = model.training
    model.eval()
    bfloat16 = default_device().training_precision(settings.precision) == "bfloat16"
    try:
        with (
            torch.no_grad(),
            torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16),
        ):
            yield device
    finally:
        model.train(was_training)


def _rows(
    pieces: Sequence[Piece], texts: UnlearningTexts, n: int, device: torch.device
) -> Iterator[tuple[torch.Tensor, torch.Tensor, slice]]:
    for start in range(0, len(pieces), n):
        rows = [texts.row(piece) for piece in pieces[start : start + n]]
        ids, labels = (
            torch.from_numpy(np.stack(part)).to(device) for part in zip(*rows, strict=True)
        )
        yield ids, labels, slice(start, start + len(rows))


def run_stage(
    job: UnlearningJob,
    stage: str | None = None,
    *,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
) -> None:
    """Train one stage of a job, in this process (of several, in each).

    Args:
        job: the job.
        stage: `FIRST_STAGE`, or None for the method itself.
        progress: called with the stage's progress.
        notice: called with notices for the user.

    Raises:
        InputError: as `train.unlearn.job.unlearn_job`.
    """
    setting = job.setting()
    start = job.original
    tokenizer = load_named_tokenizer(
        start.path, revision=start.revision, trust_remote_code=start.trust_remote_code
    )
    model = load_start_model(start)
    first = setting.method.first
    if stage is not None and first is not None:
        settings: MethodSettings = first(setting.settings)
        texts = unlearning_texts(job, setting, tokenizer, model, roles=("forget",))
        execution = job.execution.for_texts(settings.batch_texts, world_size())
        objective = UnlearningObjective(loss=setting.method.loss, settings=settings, texts=texts)
        out, identity = first_model(job), f"{job.identity} {stage}"
    else:
        texts = unlearning_texts(
            job, setting, tokenizer, model, roles=setting.method.roles(setting.settings)
        )
        texts, settings, execution = _share_out(job, setting, texts)
        objective = method_objective(job, setting, texts, model)
        out, identity = Path(job.out), job.identity
    train(
        out,
        model=model,
        tokenizer=tokenizer,
        data=TrainingData(view=texts, recorder=UnlearningRecorder(texts), objective=objective),
        run=TrainingRun(
            settings=settings.training(texts.length),
            seed=job.seed,
            execution=execution,
            unfinished=stage_unfinished(job, stage),
            identity=identity,
        ),
        progress=progress,
        notice=notice,
    )


def _share_out(
    job: UnlearningJob, setting: MethodSetting, texts: UnlearningTexts
) -> tuple[UnlearningTexts, MethodSettings, ExecutionSettings]:
    """Return texts, settings and execution, so that each step fits the processes.

    Raises:
        InputError: as `train.execution.ExecutionSettings.for_texts`.
    """
    settings, execution = setting.settings, job.execution
    if not setting.method.whole_steps:
        return texts, settings, execution.for_texts(settings.batch_texts, world_size())
    windows, execution = execution.whole_step(len(texts.forget), world_size())
    texts = replace(texts, fillers=windows - len(texts.forget))
    return texts, settings.model_copy(update={"batch_texts": windows}), execution


def unlearning_texts(
    job: UnlearningJob,
    setting: MethodSetting,
    tokenizer: PreTrainedTokenizerBase,
    model: PreTrainedModel,
    *,
    roles: tuple[Role, ...],
) -> UnlearningTexts:
    """Return the texts of a job, cut into pieces.

    Raises:
        InputError: as `chosen_examples` and `train.unlearn.texts.text_pieces`; no text of a role
            has a token to predict.
    """
    forget, retain = chosen_examples(job, setting)
    settings = setting.settings
    positions = getattr(model.config, "max_position_embeddings", None) or settings.context
    longest = min(settings.context, positions)
    cut: dict[str, list[Piece]] = {}
    for role, examples in (("forget", forget), ("retain", retain if "retain" in roles else [])):
        cut[role] = text_pieces(examples, tokenizer, longest=longest, loss_on=settings.loss_on)
        if examples and not cut[role]:
            raise InputError(f"no {role} text has a token to predict", where=f"unlearning.{role}")
    if "alternative" in roles:
        pairs = preferences(
            forget,
            cut["forget"],
            tokenizer,
            prompt_tokens=setting.method.prompt_tokens(settings),
            longest=longest,
            seed=job.seed,
        )
        cut["forget"] = [rejected for rejected, _ in pairs]
        cut["alternative"] = [preferred for _, preferred in pairs]
    pieces = [piece for role in cut for piece in cut[role]]
    return UnlearningTexts(
        forget=cut["forget"],
        retain=cut["retain"],
        alternative=cut.get("alternative", ()),
        roles=roles,
        length=row_length(pieces, longest=longest),
        end=end_token_id(tokenizer),
        seed=job.seed,
    )


def method_objective(
    job: UnlearningJob, setting: MethodSetting, texts: UnlearningTexts, model: PreTrainedModel
) -> UnlearningObjective:
    """Return a method's objective, with all values computed before training.

    Args:
        job: gives the seed, and the first stage's model if there is one.
        setting: the method.
        texts: of the job.
        model: the original.
    """
    method, settings = setting.method, setting.settings
    layer = None
    if method.hidden_layer is not None:
        setting.require_block(len(block_list(model)))
        layer = method.hidden_layer(settings)
    texts_by_role = {"forget": texts.forget, "alternative": texts.alternative}
    labels = None
    if method.first is not None and method.labels is not None:
        first = _load_stage_model(job, first_model(job))
        labels = new_labels(method, model, first, texts, settings)
    original = {}
    if method.reference(settings):
        original = {
            role: log_probabilities(model, texts_by_role[role], texts, settings)
            for role in texts.roles
            if role in texts_by_role
        }
    return UnlearningObjective(
        loss=method.loss,
        settings=settings,
        texts=texts,
        original_log_probabilities=original,
        labels=labels,
        constants={} if method.constants is None else method.constants(model, settings, job.seed),
        asks_original=method.original(settings),
        hidden_layer=layer,
        trained=None if method.trained is None else method.trained(model, settings),
    )


def _load_stage_model(job: UnlearningJob, folder: Path) -> PreTrainedModel:
    """Return a model that an earlier stage of the job made."""
    return load_causal_model(str(folder), trust_remote_code=job.original.trust_remote_code)


def finish(job: UnlearningJob, setting: MethodSetting) -> None:
    """Replace the trained weights in `job.out` by the method's final weights.

    Cost: both models in the memory of the CPU.
    """
    make = setting.method.finish
    if make is None:
        return
    out = Path(job.out)
    original, trained = load_start_model(job.original), _load_stage_model(job, out)
    state = make(original.state_dict(), trained.state_dict(), setting.settings)
    trained.load_state_dict(dict(state))
    with plain_transformers():
        trained.save_pretrained(out)
