"""The steps of an audit of given models: what each writes of chunks, and the audit itself.

Suspicious chunks are continued, and a keyed sample of the others, so that misses can be measured;
the original and the unlearned model continue as many control texts. What a model writes depends
on the prompt's text, the number of the sample and the seed. Continuations are equally long under
all models and on all chunks, those of control texts included: a longer one has more runs of words
in common by chance, and a control must not. A killed step resumes after the last hundred prompts.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.intervals.influence import Mask
from analysis.unlearning_audit import evidence
from analysis.unlearning_audit.audit import none_if_nan, write_audit
from analysis.unlearning_audit.checks import Weights
from analysis.unlearning_audit.rule import Band
from detect.generation.continuations import Continued, write_continuations
from detect.scores.table import score_notes
from detect.settings import DetectSettings
from detect.target_identity import model_libraries, target_execution, target_settings
from inject.errors import InputError
from inject.examples.example import Example, read_examples
from inject.keyed import Stream, item_keys, words
from inject.step import Step, StepContext
from inject.verified_files import cached_value
from train.models.model_node import ModelNode

if TYPE_CHECKING:
    from detect.engine.target import Target

WEIGHTS_FILE = "weights.json"
_ANSWER = "Question: {question}\nAnswer:"
_MOST_TOKENS = 512
_LEAST_TOKENS = 8
_TOGETHER = 128


def written_step(
    name: str,
    model: ModelNode,
    inputs: Mapping[str, Step],
    settings: Mapping[str, Any],
    detect: DetectSettings,
) -> Step:
    """Let one of the models write.

    Args:
        name: of `MODELS`.
        model: the model.
        inputs: `texts`, and `MODEL-scores` of the original and the unlearned model.
        settings: `band`, `others`, `all_chunks`, `scored` (detector and setting), `samples`,
            `temperature`, `top_p`, `max_tokens`, `answer_tokens`, `seed`, and `context`: the
            smallest of the models, and its name.
        detect: settings for querying the models.
    """
    return Step(
        kind="audit_continuations",
        label=f"{settings['samples']}-{model.label}",
        function=f"{__name__}:build_written",
        settings={"name": name, **settings, **target_settings(model, detect)},
        inputs={**model.inputs("model"), **inputs},
        libraries=model_libraries(model, detect),
        execution=target_execution(model, detect),
    )


def build_written(context: StepContext) -> None:
    """Let the model continue chunks and, if it is the unlearned one, answer the questions."""
    from detect.engine.open_target import open_target

    chunks = read_examples(context.inputs["texts"])
    chosen, all_chunks = _chunks_to_continue(context, chunks)
    target = open_target(context)
    length = _length(target, all_chunks, context.settings)
    texts = _sample(context, target, list(map(evidence.prompt_of, chosen)), length, "continuations")
    if context.settings["name"] == "unlearned":
        questions = [chunk for chunk in chunks if chunk.dataset == evidence.QUESTION]
        prompts = [_ANSWER.format(question=evidence.prompt_of(chunk)) for chunk in questions]
        longest = context.settings["answer_tokens"]
        texts += _sample(context, target, prompts, longest, "answers")
        chosen += questions
    continuations = [
        Continued(evidence.prompt_of(chunk), evidence.rest_of(chunk), own)
        for chunk, own in zip(chosen, texts, strict=True)
    ]
    write_continuations(context.out, [chunk.example_id for chunk in chosen], continuations)


def _chunks_to_continue(
    context: StepContext, chunks: Sequence[Example]
) -> tuple[list[Example], list[Example]]:
    """Return the chunks that the model continues, and those that any model does."""
    settings = context.settings
    audited = [chunk for chunk in chunks if chunk.dataset == evidence.AUDITED]
    held_out = [chunk for chunk in chunks if chunk.dataset == evidence.HOLDOUT]
    scores = {
        name: evidence.scored_by(context.inputs[f"{name}-scores"], audited, *settings["scored"])
        for name in ("original", "unlearned")
    }
    ratios, reasons = evidence.score_ratios(scores["original"][0], scores["unlearned"][0])
    require_ratios(scores, reasons, settings["scored"])
    flags = Band(*settings["band"]).holds(ratios)
    others = None if settings["all_chunks"] else settings["others"]
    selected = select_chunks(audited, flags, others=others, seed=settings["seed"])
    nothing = np.zeros(len(held_out), dtype=bool)
    control = select_chunks(held_out, nothing, others=others, seed=settings["seed"])
    return selected + (control if settings["name"] != "retrained" else []), selected + control


def require_ratios(
    scores: Mapping[str, evidence.Scores], reasons: Sequence[str | None], scored: Sequence[str]
) -> None:
    """Refuse scores of which no ratio can be taken.

    Raises:
        InputError: a model has diverged, or no chunk has a ratio.
    """
    for name, model_scores in scores.items():
        for at, (value, reason) in enumerate(zip(*model_scores, strict=True)):
            if math.isinf(value) or (math.isnan(value) and "number" in (reason or "number")):
                raise InputError(
                    f"the {name} model has diverged: its score of chunk {at} is not a number"
                    + (f" ({reason})" if reason else ""),
                    hint="Look at the log of its training: the loss of such a model is NaN or "
                    "huge.",
                )
    if all(reasons):
        raise InputError(
            f"no chunk has a ratio; of the first one: {reasons[0]}",
            where=f"detector {':'.join(scored)}",
            hint="The ratio is of means of log-probabilities, which are negative: min_k and loss "
            "give such scores.",
        )


def select_chunks(
    chunks: Sequence[Example], suspicious: Mask, *, others: int | None, seed: int
) -> list[Example]:
    """Return which chunks are continued: the suspicious ones, and a keyed sample of the others.

    The sample is drawn by the key of (seed, text, place), so that another text adds its own chunks
    and moves no other.

    Args:
        chunks: all of them.
        suspicious: which are; all of these are continued.
        others: how many of the rest; None for all.
        seed: of the draw.
    """
    unsuspicious = np.flatnonzero(~suspicious)
    sampled = unsuspicious
    if others is not None and others < len(unsuspicious):
        names = [_name(chunks[at]) for at in unsuspicious.tolist()]
        order = words(seed, Stream.CONTINUATION, item_keys(names))
        sampled = unsuspicious[np.argsort(order, kind="stable")[:others]]
    return [chunks[at] for at in np.sort(np.concatenate([np.flatnonzero(suspicious), sampled]))]


def _name(chunk: Example) -> str:
    return f"audited chunk {chunk.source_id} {chunk.fields['start']}"


def _length(target: "Target", chunks: Sequence[Example], settings: Mapping[str, Any]) -> int:
    """Return the token limit of any continuation.

    Raises:
        InputError: prompts that leave no room to continue.
    """
    from inject.corpus.tokenizer import encode_texts

    if not chunks:
        return 0
    rests, prompts = (
        max(map(len, encode_texts(target.tokenizer, list(map(part_of, chunks)), added=True)))
        for part_of in (evidence.rest_of, evidence.prompt_of)
    )
    limit: int = settings["max_tokens"] or min(rests, _MOST_TOKENS)
    if settings["context"] is None:
        return limit
    positions, model = settings["context"]
    room: int = positions - prompts
    if room < min(limit, _LEAST_TOKENS):
        raise InputError(
            f"prompts of up to {prompts:,} tokens leave {max(room, 0):,} of its {positions:,} "
            "positions to continue",
            where=model,
            hint="Give fewer prompt_words.",
        )
    return min(room, limit)


def _sample(
    context: StepContext, target: "Target", prompts: Sequence[str], max_tokens: int, unit: str
) -> list[tuple[str, ...]]:
    """Return the model's continuations of each prompt; a killed step keeps the finished parts."""
    from detect.targets.local import sample_continuations

    names = ("samples", "temperature", "top_p", "seed")
    sampling = {name: context.settings[name] for name in names}
    continuations: list[tuple[str, ...]] = []
    for start in range(0, len(prompts), _TOGETHER):
        part = prompts[start : start + _TOGETHER]

        def ask(part: Sequence[str] = part) -> list[list[str]]:
            return sample_continuations(target, part, max_tokens=max_tokens, **sampling)

        part_texts = cached_value(context.unfinished / f"{unit}-{start}.json", ask)
        continuations += [tuple(texts) for texts in part_texts]
        context.report(len(continuations), len(prompts), unit=unit)
    return continuations


def weights_step(original: ModelNode, unlearned: ModelNode) -> Step:
    """Compare the weights of two models, tensor by tensor.

    Cost: one reading of both models' files; the largest matrix of each in memory.
    """
    return Step(
        kind="compared_weights",
        label=unlearned.label,
        function=f"{__name__}:build_weights",
        settings={**original.settings("original"), **unlearned.settings("unlearned")},
        libraries=("torch",),
        execution={**original.execution("original"), **unlearned.execution("unlearned")},
    )


def build_weights(context: StepContext) -> None:
    """Write a comparison of the unlearned model's weights with the original's."""
    from train.models.pretrained import find_model

    nodes = [ModelNode.given(context, name) for name in ("original", "unlearned")]
    with nodes[0].unchanged(), nodes[1].unchanged():
        folders = [find_model(node.path, revision=node.revision) for node in nodes]
        if any(folder.adapter for folder in folders):
            same = nodes[0].identity == nodes[1].identity
            weights = Weights(same, math.nan, "a LoRA adapter is compared only by its digest")
        else:
            weights = _compare_tensors(*(_tensors(folder.path) for folder in folders))
    record = {**weights._asdict(), "cosine": none_if_nan(weights.cosine)}
    (context.out / WEIGHTS_FILE).write_text(json.dumps(record), encoding="utf-8")


def _tensors(folder: Path) -> dict[str, Path]:
    """Return the file of each tensor by its name."""
    from safetensors import safe_open

    file_by_tensor: dict[str, Path] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            file_by_tensor |= dict.fromkeys(file.keys(), path)
    return file_by_tensor


def _compare_tensors(original: Mapping[str, Path], unlearned: Mapping[str, Path]) -> Weights:
    import torch
    from safetensors import safe_open

    same = original.keys() == unlearned.keys()
    products = np.zeros(3)
    for name in sorted(original.keys() & unlearned.keys()):
        pair = []
        for path in (original[name], unlearned[name]):
            with safe_open(path, "pt") as file:
                pair.append(file.get_tensor(name))
        first, second = pair
        same = same and first.dtype == second.dtype and torch.equal(first, second)
        # Norm scales are near 1 in every model, so only matrices are informative.
        if first.dim() >= 2 and first.shape == second.shape and first.is_floating_point():
            a, b = first.flatten().float(), second.flatten().float()
            products += [float(a @ b), float(a @ a), float(b @ b)]
    norm = math.sqrt(products[1] * products[2])
    about = "the cosine of all matrices of both models"
    return Weights(same, products[0] / norm if norm > 0 else math.nan, about)


def given_audit_step(inputs: Mapping[str, Step], settings: Mapping[str, Any]) -> Step:
    """Audit a given model.

    Args:
        inputs: `texts`, `weights`, `MODEL-scores`, and `MODEL-written` if anything is written.
        settings: `method` (the unlearned model), `audit` (of an `AuditRule`), `scored` (detector
            and setting), `guessing` (loss of it) and `notes`.
    """
    return Step(
        kind="unlearning_audit",
        label=str(settings["method"]).rstrip("/").rpartition("/")[2],
        function=f"{__name__}:build_given",
        settings=settings,
        inputs=inputs,
    )


def build_given(context: StepContext) -> None:
    """Audit the model, and write its tables."""
    settings, folders = context.settings, context.inputs
    weights = json.loads((folders["weights"] / WEIGHTS_FILE).read_text(encoding="utf-8"))
    if weights["cosine"] is None:
        weights["cosine"] = math.nan
    scores = [folders[name] for model in evidence.MODELS if (name := f"{model}-scores") in folders]
    notes = dict.fromkeys([*settings["notes"], *(n for path in scores for n in score_notes(path))])
    write_audit(
        context,
        evidence.read_evidence(context, read_examples(folders["texts"])),
        [*notes],
        weights=Weights(**weights),
        guessing=settings["guessing"],
    )
