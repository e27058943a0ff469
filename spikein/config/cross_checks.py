"""The rules that tie the parts of an experiment together: each names the key to change."""

import math
from collections.abc import Iterator, Sequence

from analysis.dataset_detectors.registry import asked_dataset_detectors
from detect.detector_settings import DetectorSetting, needs_of, parse_detectors
from detect.evidence.membership import Shadows
from inject.errors import InputError
from inject.examples.datasets.registry import get_dataset
from inject.examples.forget_set import ForgetSet
from inject.variants.settings import ParaphraseVariant, Variants, protected_texts_error
from spikein.config.key_path import KeyPath, dotted
from spikein.config.schema import Experiment
from spikein.config.unlearning_section import SECTION
from train.checkpoint_steps import checkpoint_steps
from train.execution import ExecutionSettings
from train.loop.schedule import step_count
from train.settings import TokenizerTraining, check_start
from train.unlearn.registry import MethodSetting, parse_methods


def cross_checks(experiment: Experiment) -> list[tuple[KeyPath, InputError]]:
    """Return what is wrong between the parts of an experiment, each with the key to change."""
    model, base, train, corpus = (
        experiment.model,
        experiment.base,
        experiment.train,
        experiment.corpus,
    )
    found: list[tuple[KeyPath, InputError]] = []
    try:
        check_start(model, has_base=base is not None, mode=train.mode)
        if base is not None:
            base.resolved(train)
        if train.checkpoints is not None and corpus.tokens >= train.batch_tokens:
            windows = corpus.tokens // train.context
            checkpoint_steps(train.checkpoints, step_count(train, windows))
    except InputError as error:
        key = error.where or "train"
        found.append(
            (
                tuple(key.split(".")),
                InputError(f"{key}: {error.problem}", hint=error.hint, allowed=error.allowed),
            )
        )

    def add(path: KeyPath, problem: str, hint: str) -> None:
        found.append((path, InputError(f"{dotted(path)}: {problem}", hint=hint)))

    if corpus.imported is not None and isinstance(model.tokenizer, TokenizerTraining):
        add(
            ("model", "tokenizer"),
            "an imported corpus is tokenised already, so no tokenizer can be trained for it",
            "Name the tokenizer that made its ids, by path or hub id.",
        )
    if train.epochs > 1 and experiment.placement.timed:
        add(
            ("placement", "between"),
            f"{train.epochs} epochs see every window again, each in an order of its own, so no "
            "copy can be kept to a stretch of the training",
            "Set train.epochs to 1, or leave between out.",
        )
    streams = [("corpus", corpus.tokens, train.context, train.batch_tokens)]
    if base is not None:
        batch_tokens = base.batch_tokens or train.batch_tokens
        streams.append(("base", base.tokens, base.context or train.context, batch_tokens))
    for part, tokens, context, batch_tokens in streams:
        if tokens < context:
            add(
                (part, "tokens"),
                f"{tokens:,} tokens do not fill one window of {context:,}",
                f"Raise {part}.tokens or lower the context.",
            )
        elif batch_tokens > tokens:
            add(
                (part, "tokens"),
                f"{tokens:,} tokens do not fill one batch of {batch_tokens:,}",
                f"Raise {part}.tokens or lower batch_tokens.",
            )
    asked: list[DetectorSetting] = []
    try:
        asked = parse_detectors(experiment.detect.detectors)
    except InputError as error:
        part = f"{error.where}: " if error.where else ""
        found.append(
            (
                ("detect", "detectors"),
                InputError(
                    f"detect.detectors: {part}{error.problem}",
                    allowed=error.allowed,
                    hint=error.hint,
                ),
            )
        )
    try:
        asked_dataset_detectors(experiment.analysis.dataset_detectors)
    except InputError as error:
        problem = f"analysis.dataset_detectors: {error.problem}"
        found.append(
            (
                ("analysis", "dataset_detectors"),
                InputError(problem, allowed=error.allowed, hint=error.hint),
            )
        )
    for path, problem, hint in (*_twin_problems(experiment, asked), *_sent_problems(experiment)):
        add(path, problem, hint)
    found += _unlearning_problems(experiment)
    # A stream of less than a window was reported already.
    if corpus.tokens >= train.context and (problem := _no_room(experiment)):
        add(("corpus", "tokens"), problem, "Raise it, or lower the copies or the members.")
    names: dict[str, int] = {}
    for index, contaminant in enumerate(experiment.contaminants):
        name = contaminant.name or contaminant.dataset
        if name in names:
            add(
                ("contaminants", index),
                f"{name!r} is already the name of contaminants.{names[name]}",
                "Give each a `name` of its own.",
            )
        names.setdefault(name, index)
    return found


def _no_room(experiment: Experiment) -> str:
    """Say that the copies cannot fit however short the examples are; empty where they may."""
    low, high = experiment.placement.between
    room = experiment.corpus.tokens * (high - low)
    members = sum(one.members for one in experiment.contaminants)
    shortest = 1 if experiment.variants != Variants() else experiment.pool.min_tokens
    # A Poisson sum this far below its mean occurs once in 10**9 draws.
    rate = experiment.copies.poisson
    copies = experiment.copies.mean * members
    least = copies if rate is None else max(copies - 6 * math.sqrt(copies), 0)
    needed = least * shortest
    if needed <= room:
        return ""
    return (
        f"{copies:,.0f} copies of at least {shortest} tokens need {needed:,.0f} tokens and have "
        f"room for {room:,.0f}"
    )


def _twin_problems(
    experiment: Experiment, asked: Sequence[DetectorSetting]
) -> Iterator[tuple[KeyPath, str, str]]:
    """Yield what is wrong between the twins and the rest: key, problem, hint.

    Args:
        experiment: the whole.
        asked: its detectors; empty where they cannot be read.
    """
    twins, detect = experiment.twins, experiment.detect
    if detect.reference == "twin" and not twins.clean:
        yield (
            ("detect", "reference"),
            "there is no clean twin to compare with",
            "Set twins.clean to true, or name another reference model.",
        )
    if twins.clean and experiment.train.loss_on == "completion":
        yield (
            ("twins", "clean"),
            "a stream without copies holds no answer, so with train.loss_on completion the clean "
            "twin would learn nothing: it is the model that the arm starts from",
            "Compare with detect.reference base, or set train.loss_on to all.",
        )
    if twins.shadows and experiment.variants != Variants():
        yield (
            ("twins", "shadows"),
            "shadow models spike non-members, too, and variants are written for members alone",
            "Leave variants out, or set twins.shadows to 0.",
        )
    if twins.shadows and asked and Shadows() not in needs_of(asked):
        yield (
            ("twins", "shadows"),
            "no detector that is asked for reads shadow models",
            "Add lira or rmia to detect.detectors, or set twins.shadows to 0.",
        )


def _sent_problems(experiment: Experiment) -> Iterator[tuple[KeyPath, str, str]]:
    """Yield protected datasets that a server is to paraphrase unasked: key, problem, hint."""
    names = {one.name: get_dataset(one.dataset).protected for one in experiment.contaminants}
    for index, variant in enumerate(experiment.variants.of):
        if not isinstance(variant, ParaphraseVariant) or variant.by != "model":
            continue
        key = ("variants", "of", index, "send_protected")
        unknown = [name for name in variant.send_protected if not names.get(name)]
        if unknown:
            protected = ", ".join(name for name in names if names[name]) or "none"
            yield (
                key,
                f"{', '.join(map(repr, unknown))} names no protected dataset of this experiment",
                f"Protected here: {protected}.",
            )
        kept = [name for name in names if not variant.may_send(name, protected=names[name])]
        if kept:
            error = protected_texts_error(kept)
            yield key, error.problem, error.hint or ""


def _require_shares(setting: MethodSetting, execution: ExecutionSettings) -> None:
    """Check that the processes divide the steps of a method, before anything is trained.

    Raises:
        InputError: as `train.execution.ExecutionSettings.for_texts`, with the method's label.
    """
    try:
        execution.for_texts(setting.settings.batch_texts, execution.processes)
    except InputError as error:
        raise InputError(
            error.problem,
            where=f"{SECTION}.methods: {setting.label}.{error.where}",
            allowed=error.allowed,
            hint=error.hint,
        ) from error


def _unlearning_problems(experiment: Experiment) -> Iterator[tuple[KeyPath, InputError]]:
    """Yield what is wrong between the section and the rest, each with the key to change."""
    section = experiment.unlearning
    if section is None:
        return
    share = experiment.twins.retrained
    if share is not None and section.forget != ForgetSet(share=share):
        yield (
            ("twins", "retrained"),
            InputError(
                f"twins.retrained: leaves out a share of {share:g}, and unlearning.forget selects "
                f"by {' and '.join(section.forget.given)}: one arm has one retrained model, which "
                "is trained without the forget set",
                hint="Leave twins.retrained out; the section `unlearning` trains the model.",
            ),
        )
    try:
        for setting in parse_methods(section.methods):
            _require_shares(setting, experiment.execution)
    except InputError as error:
        place = (error.where or "").removeprefix(f"{SECTION}.methods").strip(": .")
        yield (
            (SECTION, "methods"),
            InputError(
                f"{SECTION}.methods: {place + ': ' if place else ''}{error.problem}",
                allowed=error.allowed,
                hint=error.hint,
            ),
        )
    brings = [get_dataset(one.dataset).paraphrases for one in experiment.contaminants]
    if "paraphrase" in section.conditions and not any(brings):
        yield (
            (SECTION, "conditions"),
            InputError(
                "unlearning.conditions: no dataset of the experiment brings paraphrases",
                allowed="8bit, 4bit",
                hint="Take a dataset with paraphrases, such as rows with a field of them.",
            ),
        )
    names = [one.name for one in experiment.contaminants]
    levels = experiment.copies.levels or (
        None if experiment.copies.fixed is None else (experiment.copies.fixed,)
    )
    for part, selection in (("forget", section.forget), ("retain", section.retain)):
        for number, name in enumerate(selection.datasets or ()):
            if name not in names:
                yield (
                    (SECTION, part, "datasets", number),
                    InputError(
                        f"unlearning.{part}.datasets.{number}: no contaminant is called {name!r}",
                        allowed=", ".join(names),
                    ),
                )
        unknown = [one for one in selection.copies or () if levels and one not in levels]
        if unknown:
            yield (
                (SECTION, part, "copies"),
                InputError(
                    f"unlearning.{part}.copies: no member has {unknown[0]} copies",
                    allowed=", ".join(map(str, levels or ())),
                ),
            )
