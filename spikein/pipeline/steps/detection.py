"""Steps of detection: token statistics of a view, token frequencies, scores.

Token statistics are made once for each model and view; every likelihood detector and setting is
then a function of the stored table. The blind classifier looks at no model, so it is scored
once for each pool of examples, beside the base model where there is one.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from detect.evidence import Evidence, Frequency, Need, Reference, ShadowModel, Shadows
from detect.registry import DetectorSetting, detector_code, names_all, parse_detectors, with_grids
from detect.scoring import needed_views, needs, runnable, score_rows, write_scores
from detect.settings import DetectSettings
from detect.token_statistics import read_statistics, write_statistics
from detect.views import TEXT, view_text
from inject.corpus.corpus import corpus_tokenizer
from inject.examples.example import members, read_examples
from inject.reading.rows import files_identity
from inject.reading.unchanged import unchanged
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.artifact_parts import TEXTS, TOKENS, UNSPLIT
from spikein.pipeline.steps.inputs import open_corpus
from spikein.pipeline.steps.training import ModelNode

if TYPE_CHECKING:
    from detect.engine.target import Target

BLIND = "blind"
REFERENCE = "reference"
LIRA = "lira"
TWIN = "twin"
"""What `detect.reference` calls the clean twin."""


class Shadow(NamedTuple):
    """A shadow model, and the examples with the sides that hold for it."""

    model: ModelNode
    membership: Step


def statistics_step(model: ModelNode, examples: Step, *, view: str, detect: DetectSettings) -> Step:
    """Make the token statistics of every example under one model, as one view shows it."""
    policy = detect.policy()

    def build(context: StepContext) -> None:
        from detect.engine.forward_pass import token_statistics

        rows = read_examples(context.inputs["examples"].path)
        target = open_target(model, context.inputs, detect)
        statistics = token_statistics(
            target,
            [view_text(view, row.text) for row in rows],
            policy,
            batch_tokens=detect.batch_tokens,
            compile_mode=detect.compile,
            progress=lambda done, total: context.report(done, total, unit="tokens"),
        )
        write_statistics(
            context.out,
            [row.example_id for row in rows],
            statistics,
            record={"view": view, **policy.record()},
        )

    return Step(
        kind="statistics",
        label=f"{view}-{model.label}",
        settings={
            "view": view,
            "policy": policy.record(),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=("torch", "transformers"),
        code=(root(build),),
        reads={"examples": TEXTS},
        build=build,
    )


def open_target(model: ModelNode, inputs: Mapping[str, Any], detect: DetectSettings) -> "Target":
    """Load the model that a step asks, its input of the name `model`."""
    from detect.engine.target import load_target

    with model.unchanged():
        return load_target(
            model.locate(inputs, "model"),
            revision=model.revision,
            trust_remote_code=model.trust_remote_code,
            device=detect.device,
            dtype=model.dtype(detect.dtype),
        )


def frequency_step(corpus: Step, detect: DetectSettings) -> Step | None:
    """Count tokens: of the clean corpus, or of files of texts with the corpus's tokenizer."""
    if detect.frequency is None:
        return None
    pattern = None if detect.frequency == "corpus" else detect.frequency
    files: list[dict[str, Any]] = []
    if pattern is not None:
        files = files_identity(pattern)

    def build(context: StepContext) -> None:
        from detect.token_frequency import count_files, count_ids, save_frequency

        clean = open_corpus(corpus, context.inputs)
        if pattern is None:
            step = 1 << 20
            blocks = (
                clean.read(start, min(start + step, clean.n_tokens))
                for start in range(0, clean.n_tokens, step)
            )
            table = count_ids(blocks, clean.vocabulary)
        else:
            tokenizer = corpus_tokenizer(context.inputs["corpus"].path)
            with unchanged("detect.frequency", lambda: files_identity(pattern), files):
                table = count_files(tokenizer, pattern)
        save_frequency(context.out, table)

    return Step(
        kind="frequency",
        label="corpus" if pattern is None else "files",
        settings={"files": files},
        inputs={"corpus": corpus},
        code=(root(build),),
        reads={"corpus": TOKENS},
        build=build,
    )


def scores_step(
    *,
    model: ModelNode,
    is_base: bool,
    base: ModelNode | None,
    examples: Step,
    frequency: Step | None,
    detect: DetectSettings,
    twin: ModelNode | None = None,
    shadows: Sequence[Shadow] = (),
    without: Collection[str] = (),
) -> Step | None:
    """Score every example under every detector and every setting of its grid.

    Args:
        model: the target.
        is_base: whether it is the base model, which is compared neither with itself nor with
            models of one arm.
        base: the base model, where there is one.
        examples: what is scored.
        frequency: counted tokens.
        detect: which detectors, and how.
        twin: the clean twin of the arm.
        shadows: the shadow models of the arm.
        without: detectors that are left out.

    Returns:
        The step, or None where no detector is left: a base model asked only for `reference`.
    """
    asked, notes = asked_settings(
        detect, base=base, frequency=frequency, twin=twin, shadows=shadows
    )
    without = {*without, *_needless(detect, model, is_base=is_base, base=base)}
    asked = [one for one in asked if one.name not in without]
    if not asked:
        return None
    settings = with_grids(asked)
    views = needed_views(settings)
    compared = needs(settings, Reference())
    reference = None
    if compared:
        other = {"base": base, TWIN: twin}.get(str(detect.reference)) or reference_node(detect)
        if other is None:
            raise TypeError("a reference detector without a reference model")
        reference = statistics_step(other, examples, view=TEXT, detect=detect)
    counts = needs(settings, Frequency())
    read = list(shadows) if needs(settings, Shadows()) else []

    def build(context: StepContext) -> None:
        scored = score_rows(
            [row.example_id for row in _rows(context.inputs)],
            _evidence(context.inputs, views, compared, counts, len(read)),
            settings,
        )
        record = {
            "policy": detect.policy().record(),
            "notes": [*notes, *scored.notes],
            "defaults": defaults(asked),
        }
        write_scores(context.out, scored.table, record=record)

    inputs: dict[str, Step] = {
        f"view-{name}": statistics_step(model, examples, view=name, detect=detect) for name in views
    }
    if reference is not None:
        inputs["reference"] = reference
    if counts and frequency is not None:
        inputs["frequency"] = frequency
    for number, shadow in enumerate(read):
        inputs[f"shadow-{number:03d}"] = statistics_step(
            shadow.model, examples, view=TEXT, detect=detect
        )
        inputs[f"membership-{number:03d}"] = shadow.membership
    return Step(
        kind="scores",
        label=model.label,
        settings={
            "detectors": [f"{one.name}:{one.text}" for one in settings],
            "defaults": defaults(asked),
        },
        inputs={**inputs, "examples": examples},
        libraries=("scikit-learn",) if any(one.name == BLIND for one in asked) else (),
        code=(root(build), *{detector_code(one.name): None for one in asked}),
        reads={name: UNSPLIT for name in inputs if name.startswith("membership-")}
        | {"examples": UNSPLIT},
        build=build,
    )


def _needless(
    detect: DetectSettings, model: ModelNode, *, is_base: bool, base: ModelNode | None
) -> set[str]:
    """Return the detectors that tell nothing about this model."""
    if is_base:
        itself = detect.reference in (None, "base", TWIN)
        return {LIRA, REFERENCE} if itself else {LIRA}
    found = set() if base is None and model.checkpoint is None else {BLIND}
    if model.checkpoint is not None:
        # Twins were trained to the end: beside a model on the way they tell of time, too.
        found |= {LIRA, REFERENCE} if detect.reference == TWIN else {LIRA}
    return found


def asked_settings(
    detect: DetectSettings,
    *,
    base: ModelNode | None,
    frequency: Step | None,
    twin: ModelNode | None = None,
    shadows: Sequence[Shadow] = (),
) -> tuple[list[DetectorSetting], tuple[str, ...]]:
    """Return the detectors that can run, and notes on those of `all` that cannot.

    Raises:
        InputError: a detector that was named lacks what it needs.
    """
    missing: list[Need] = []
    absent = (
        None,
        *(["base"] if base is None else []),
        *([TWIN] if twin is None else []),
    )
    if detect.reference in absent:
        missing.append(Reference())
    if not shadows:
        missing.append(Shadows())
    if frequency is None:
        missing.append(Frequency())
    found = runnable(
        parse_detectors(detect.detectors), missing, leave_out=names_all(detect.detectors)
    )
    return found.settings, found.notes


def defaults(asked: list[DetectorSetting]) -> dict[str, str]:
    """Return each detector's default setting: the first that was asked for."""
    found: dict[str, str] = {}
    for one in asked:
        found.setdefault(one.name, one.text)
    return found


def reference_node(detect: DetectSettings) -> ModelNode | None:
    """Return the reference model that the user named by path or id."""
    if detect.reference in (None, "base", TWIN):
        return None
    from train.models.pretrained import model_identity

    return ModelNode(pretrained=detect.reference, identity=model_identity(str(detect.reference)))


def _rows(inputs: Mapping[str, Any]) -> list[Any]:
    return read_examples(inputs["examples"].path)


def _evidence(
    inputs: Mapping[str, Any],
    views: Collection[str],
    reference: bool,
    frequency: bool,
    shadows: int,
) -> Evidence:
    from detect.token_frequency import load_frequency

    rows = _rows(inputs)

    def statistics(name: str) -> list[Any]:
        table = read_statistics(inputs[name].path)
        return [table[row.example_id] for row in rows]

    def shadow(number: int) -> ShadowModel:
        membership = read_examples(inputs[f"membership-{number:03d}"].path)
        inside = {one.example_id for one in members(membership)}
        return ShadowModel(
            statistics=statistics(f"shadow-{number:03d}"),
            inside=[row.example_id in inside for row in rows],
        )

    return Evidence(
        texts=[row.text for row in rows],
        statistics={name: statistics(f"view-{name}") for name in views},
        reference=statistics("reference") if reference else None,
        frequency=load_frequency(inputs["frequency"].path) if frequency else None,
        members=[row.side == "member" for row in rows],
        groups=[f"{row.dataset}\n{row.group}" for row in rows],
        shadows=[shadow(number) for number in range(shadows)] or None,
    )
