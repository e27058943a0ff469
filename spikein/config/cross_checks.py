"""Rules between the parts of an experiment; each names the key to change."""

import math
from collections.abc import Iterator, Sequence

from analysis.dataset_detectors.detector import asked_dataset_detectors
from analysis.studies.claims import claim_problems
from detect.detector_settings import DetectorSetting, needs_of, parse_detectors
from detect.evidence.membership import Shadows
from inject.errors import InputError
from inject.examples.datasets.registry import get_dataset
from inject.examples.forget_set import ForgetSet
from inject.variants.settings import ParaphraseVariant, Variants, protected_texts_error
from spikein.config.copy_checkpoints import with_counted_steps
from spikein.config.schema import SECTION, Experiment
from spikein.config.yaml_document import KeyPath, dotted
from train.schedule import kept_steps
from train.settings import TokenizerTraining, check_start
from train.unlearn.registry import parse_methods

Problem = tuple[KeyPath, InputError]


def cross_checks(experiment: Experiment) -> list[Problem]:
    """Return the conflicts between the parts of an experiment, each with the key to change."""
    problems = [
        *_start_problems(experiment),
        *_corpus_problems(experiment),
        *_detector_problems(experiment),
        *_sent_problems(experiment),
        *_unlearning_problems(experiment),
        *_repeated_names(experiment),
    ]
    # A stretch without room is found by all that depend on it.
    return list({(path, problem.problem): (path, problem) for path, problem in problems}.values())


def _flag(
    path: KeyPath, problem: str, hint: str | None = None, *, allowed: str | None = None
) -> Problem:
    return path, InputError(f"{dotted(path)}: {problem}", allowed=allowed, hint=hint)


def _relocate_error(path: KeyPath, error: InputError, place: str | None = None) -> Problem:
    """Return an error of another part; `place` is its position below the key."""
    problem = f"{place}: {error.problem}" if place else error.problem
    return _flag(path, problem, error.hint, allowed=error.allowed)


def _start_problems(experiment: Experiment) -> Iterator[Problem]:
    """Yield the conflicts between the model, its base and its training."""
    base, train, corpus = experiment.base, experiment.train, experiment.corpus
    execution = experiment.training_runtime
    try:
        check_start(experiment.model, has_base=base is not None, mode=train.mode)
        for settings in (train, *([] if base is None else [base.resolved(train)])):
            execution.device_batch(settings.batch_windows, execution.processes)
        if train.checkpoints is not None and corpus.tokens >= train.batch_tokens:
            kept_steps(with_counted_steps(experiment).train, corpus.tokens)
    except InputError as error:
        yield _relocate_error(tuple((error.where or "train").split(".")), error)
    if corpus.imported is not None and isinstance(experiment.model.tokenizer, TokenizerTraining):
        yield _flag(
            ("model", "tokenizer"),
            "an imported corpus is already tokenised, so no tokenizer can be trained for it",
            "Name the tokenizer that made its ids, by path or hub id.",
        )
    if corpus.imported is not None and experiment.analysis.background_tokens:
        yield _flag(
            ("analysis", "background_tokens"),
            "an imported corpus has no documents after it whose loss could be measured",
            "Set it to 0, or give corpus.sources.",
        )
    if train.epochs > 1 and experiment.placement.timed:
        timed_by = experiment.placement.timed_by
        yield _flag(
            ("placement", timed_by),
            f"{train.epochs} epochs see every window again, each in its own order, so no "
            "copy can be confined to a part of the training",
            f"Set train.epochs to 1, or remove {timed_by}.",
        )


def _corpus_problems(experiment: Experiment) -> Iterator[Problem]:
    """Yield streams that are too short for a window, a batch or the copies."""
    base, train, corpus = experiment.base, experiment.train, experiment.corpus
    longest = experiment.pool.max_tokens
    if longest is not None and longest > train.context:
        yield _flag(
            ("pool", "max_tokens"),
            f"{longest:,} tokens are more than the context, {train.context:,}",
            "Lower it; pool.long_examples: truncate cuts to the context.",
            allowed=f"up to {train.context:,}",
        )
    streams = [("corpus", corpus.tokens, train.context, train.batch_tokens)]
    if base is not None:
        batch_tokens = base.batch_tokens or train.batch_tokens
        streams.append(("base", base.tokens, base.context or train.context, batch_tokens))
    for part, tokens, context, batch_tokens in streams:
        window = f"window of {context:,}", "the context"
        batch = f"batch of {batch_tokens:,}", "batch_tokens"
        if tokens < max(context, batch_tokens):
            unfilled, larger = window if tokens < context else batch
            problem = f"{tokens:,} tokens do not fill one {unfilled}"
            yield _flag((part, "tokens"), problem, f"Raise {part}.tokens or lower {larger}.")
    # A stream of less than a window is already reported.
    if corpus.tokens < train.context:
        return
    if corpus.tokens < train.context * corpus.repeat:
        yield _flag(
            ("corpus", "repeat"),
            f"{corpus.tokens:,} tokens laid out {corpus.repeat:,} times have "
            f"{corpus.unique_tokens:,} unique ones, which do not fill one window of "
            f"{train.context:,}",
            "Raise corpus.tokens or lower repeat.",
            allowed=f"1 to {corpus.tokens // train.context:,}",
        )
    try:
        if problem := _no_room(experiment):
            hint = "Raise it, or lower the copies or the members."
            yield _flag(("corpus", "tokens"), problem, hint)
    except InputError as error:
        yield _relocate_error(("placement", "stretch"), error)


def _no_room(experiment: Experiment) -> str:
    """Return why the copies cannot fit, however short the examples are; empty if they may."""
    context = experiment.train.context
    low, high = experiment.placement.shares(experiment.corpus.tokens // context, context)
    room = experiment.corpus.tokens * float(high - low)
    members = sum(contaminant.members for contaminant in experiment.contaminants)
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


def _detector_problems(experiment: Experiment) -> Iterator[Problem]:
    """Yield detectors that cannot be read, and conflicts between detectors and twins."""
    requested: list[DetectorSetting] = []
    try:
        requested = parse_detectors(experiment.detect.detectors)
    except InputError as error:
        yield _relocate_error(("detect", "detectors"), error, error.where)
    try:
        asked_dataset_detectors(experiment.analysis.dataset_detectors)
    except InputError as error:
        yield _relocate_error(("analysis", "dataset_detectors"), error)
    yield from _twin_problems(experiment, requested)
    datasets = [contaminant.name for contaminant in experiment.contaminants]
    scored = list(dict.fromkeys(setting.name for setting in requested))
    for path, problem in claim_problems(experiment.claims, experiment.arms, datasets, scored):
        yield _relocate_error(("claims", *path), problem)


def _twin_problems(
    experiment: Experiment, detectors: Sequence[DetectorSetting]
) -> Iterator[Problem]:
    """Yield the conflicts between the twins and the other parts.

    Args:
        experiment: the whole experiment.
        detectors: its detectors; empty if they cannot be read.
    """
    twins, detect = experiment.twins, experiment.detect
    if detect.reference == "twin" and not twins.clean:
        yield _flag(
            ("detect", "reference"),
            "there is no clean twin to compare with",
            "Set twins.clean to true, or name another reference model.",
        )
    if twins.clean and experiment.train.loss_on == "completion":
        yield _flag(
            ("twins", "clean"),
            "a stream without copies contains no answer, so with train.loss_on completion the "
            "clean twin would learn nothing and equal the model that the arm starts from",
            "Compare with detect.reference base, or set train.loss_on to all.",
        )
    if twins.shadows and experiment.variants != Variants():
        yield _flag(
            ("twins", "shadows"),
            "shadow models also spike non-members, but variants are written only for members",
            "Remove variants, or set twins.shadows to 0.",
        )
    if twins.shadows and detectors and Shadows() not in needs_of(detectors):
        yield _flag(
            ("twins", "shadows"),
            "no requested detector reads shadow models",
            "Add lira or rmia to detect.detectors, or set twins.shadows to 0.",
        )


def _sent_problems(experiment: Experiment) -> Iterator[Problem]:
    """Yield protected datasets that a server would paraphrase without permission."""
    protected = {
        contaminant.name: get_dataset(contaminant.dataset).protected
        for contaminant in experiment.contaminants
    }
    for index, variant in enumerate(experiment.variants.of):
        if not isinstance(variant, ParaphraseVariant) or variant.by != "model":
            continue
        path = ("variants", "of", index, "send_protected")
        unknown = [name for name in variant.send_protected if not protected.get(name)]
        if unknown:
            protected_names = ", ".join(name for name in protected if protected[name]) or "none"
            yield _flag(
                path,
                f"{', '.join(map(repr, unknown))} names no protected dataset of this experiment",
                f"Protected here: {protected_names}.",
            )
        withheld = [n for n in protected if not variant.may_send(n, protected=protected[n])]
        if withheld:
            yield _relocate_error(path, protected_texts_error(withheld))


def _unlearning_problems(experiment: Experiment) -> Iterator[Problem]:
    """Yield the conflicts between the section and the other parts."""
    section = experiment.unlearning
    if section is None:
        return
    share = experiment.twins.retrained
    if share is not None and section.forget != ForgetSet(share=share):
        yield _flag(
            ("twins", "retrained"),
            f"excludes a share of {share:g}, and unlearning.forget selects by "
            f"{' and '.join(section.forget.given)}: one arm has one retrained model, which is "
            "trained without the forget set",
            "Remove twins.retrained; the section `unlearning` trains the model.",
        )
    methods = (SECTION, "methods")
    execution = experiment.training_runtime
    try:
        for setting in parse_methods(section.methods):
            try:
                execution.for_texts(setting.settings.batch_texts, execution.processes)
            except InputError as error:
                yield _relocate_error(methods, error, f"{setting.label}.{error.where}")
                break
    except InputError as error:
        place = (error.where or "").removeprefix(dotted(methods)).strip(": .")
        yield _relocate_error(methods, error, place)
    brings = [
        get_dataset(contaminant.dataset).paraphrases for contaminant in experiment.contaminants
    ]
    if "paraphrase" in section.conditions and not any(brings):
        yield _flag(
            (SECTION, "conditions"),
            "no dataset of the experiment has paraphrases",
            "Use a dataset with paraphrases, such as rows with a field of them.",
            allowed="8bit, 4bit",
        )
    names = [contaminant.name for contaminant in experiment.contaminants]
    levels = experiment.copies.levels or (
        None if experiment.copies.fixed is None else (experiment.copies.fixed,)
    )
    for part, selection in (("forget", section.forget), ("retain", section.retain)):
        for number, name in enumerate(selection.datasets or ()):
            if name not in names:
                problem = f"no contaminant is called {name!r}"
                yield _flag((SECTION, part, "datasets", number), problem, allowed=", ".join(names))
        unknown = [count for count in selection.copies or () if levels and count not in levels]
        if unknown:
            problem = f"no member has {unknown[0]} copies"
            yield _flag(
                (SECTION, part, "copies"), problem, allowed=", ".join(map(str, levels or ()))
            )


def _repeated_names(experiment: Experiment) -> Iterator[Problem]:
    names: dict[str, int] = {}
    for index, contaminant in enumerate(experiment.contaminants):
        name = contaminant.name or contaminant.dataset
        if name in names:
            yield _flag(
                ("contaminants", index),
                f"{name!r} is already the name of contaminants.{names[name]}",
                "Give each a `name` of its own.",
            )
        names.setdefault(name, index)
