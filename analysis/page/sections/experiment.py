"""The experiment: texts, streams, models, settings and rows.

Every value is read from the arms, never from the first choice of the experiment file, so a swept
setting appears with all the values that it took.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from analysis.arm_labels import axis_words
from analysis.copy_bins import passage_sentences
from analysis.page.inputs import ArmSettings, PageInputs
from analysis.page.parts import (
    Columns,
    Note,
    Part,
    Section,
    VerticalGroup,
    answer,
    fold_items,
    present,
)
from analysis.page.streams import stream_listing, stream_sentences
from analysis.page.table import Table, TableColumn, facts, listing, numbers, with_noun
from analysis.page.view import capital
from analysis.task_accuracy.gain_step import METRICS
from analysis.unit import DIFFERENCE, NATS, NOTHING, Entry
from inject.examples.example import DropReason, read_examples, read_held_out
from inject.examples.twin_membership import Twins
from inject.variants.settings import Variants
from train.models.gguf import is_gguf
from train.models.shapes import load_shape, parameter_count
from train.settings import BaseSettings, ModelSettings, TokenizerTraining, TrainSettings

_STILL_USED = (DropReason.CUT, DropReason.CUT_BEFORE_ANSWER)
_NAMED = 10
"""Rows named in a sentence; the others are in the pool's table."""

Read = Callable[[ArmSettings], str | None]
Given = TypeVar("Given")


def experiment_section(inputs: PageInputs) -> Section | None:
    """Return the description of the experiment, without the notes that are listed elsewhere."""
    elsewhere = {detector.note for detector in inputs.left_out}
    notes = [note for note in inputs.notes if note not in elsewhere] + pool_notes(inputs.pools)
    notes = [*dict.fromkeys(notes), *passage_sentences(inputs.analysis.metrics)]
    table = stream_listing(inputs.streams)
    # Streams that differ in nothing but their arm need no table.
    alike = table is not None and len(table.columns) == 1
    streams: list[Part] = present(
        datasets_table(inputs.arms[0].examples) if inputs.arms else None,
        Note(f"Training streams. {table.caption}", "how") if table and alike else table,
        [Note(sentence, "how") for sentence in stream_sentences(inputs.streams)],
        background_losses(inputs),
    )
    settings, paragraph = None, ""
    if inputs.settings:
        settings = setup(inputs.settings, swept=inputs.swept, seeds=inputs.seeds)
        paragraph = description(inputs.settings, inputs.datasets)
    columns = Columns(present(settings, VerticalGroup(streams) if streams else None))
    parts = [columns, fold_items("Notes on the texts", notes)]
    return answer("experiment", "Set-up", "What was run", paragraph, extra=parts)


def description(arms: Sequence[ArmSettings], datasets: Sequence[str]) -> str:
    """Return the description of the experiment as a paragraph.

    Args:
        arms: the settings of every arm.
        datasets: the names of the datasets.
    """

    def values(read: Read) -> str:
        return values_text(arms, read)

    members = values(lambda arm: f"{sum(part.members for part in arm.contaminants):,}")
    withheld = values(lambda arm: f"{sum(part.nonmembers for part in arm.contaminants):,}")
    held_out = values(lambda arm: f"{sum(part.held_out for part in arm.contaminants):,}")
    further = "" if held_out == "0" else f", and {held_out} further texts held out for detectors"
    lengths = values(lambda arm: f"{arm.tokens:,}")
    models = "1 model was" if len(arms) == 1 else f"{len(arms)} models were"
    return (
        f"{members} texts ({', '.join(datasets)}) were drawn at random as members and spiked into "
        f"training streams of {lengths} tokens; {withheld} texts of the same pool were withheld"
        f"{further}. "
        f"{models} trained on them, starting from {values(_start)}. Every detector then scored "
        "both sides: higher means more likely a member. Settings were chosen on the tuning "
        "split; everything below is measured on the test split."
    )


def setup(arms: Sequence[ArmSettings], *, swept: Sequence[str], seeds: Sequence[int]) -> Table:
    """Return the settings by name; a swept setting lists all its values.

    Args:
        arms: the settings of every arm.
        swept: the swept axes.
        seeds: the seeds of the experiment.
    """
    lines: tuple[tuple[str, Read], ...] = (
        ("Model", _model),
        ("Base model", _describe_base),
        ("Background", lambda arm: arm.background),
        ("Stream", lambda arm: f"{arm.tokens:,} tokens, copies included"),
        ("Mode", _mode),
        ("Learning rate", lambda arm: f"{arm.train.lr:g}, {arm.train.schedule}"),
        ("Copies", lambda arm: axis_words("copies", arm.copies.label())),
        ("Placement", lambda arm: arm.placement.label()),
        ("Copies carry", lambda arm: None if arm.variants == Variants() else arm.variants.label()),
        ("Training", _training),
        ("Twins of each arm", lambda arm: None if arm.twins == Twins() else arm.twins.label()),
    )
    rows = [(name, text) for name, read in lines if (text := values_text(arms, read, "; "))]
    for axis in swept:
        labels = dict.fromkeys(arm.axes[axis] for arm in arms)
        rows.append((f"Swept: {axis}", ", ".join(labels)))
    return facts("Setup", [*rows, ("Seeds", ", ".join(str(seed) for seed in seeds))])


def values_text(
    arms: Sequence[Given], read: Callable[[Given], str | None], between: str = ", "
) -> str:
    """Join the different values that arms (or parts of their settings) have, in their order."""
    values = dict.fromkeys(text for arm in arms if (text := read(arm)) is not None)
    if between == "; " or len(values) < 2:
        return between.join(values)
    *first, last = values
    return f"{between.join(first)} and {last}"


def pretrained_name(model: ModelSettings) -> str:
    """Return a pretrained model's name for readers: of a GGUF file without its folders."""
    name = str(model.pretrained)
    return Path(name).name if is_gguf(name) and not name.startswith("hf://") else name


def _start(arm: ArmSettings) -> str:
    if arm.model.pretrained:
        return f"the pretrained model {pretrained_name(arm.model)}"
    new = arm.train.mode == "pretrain"
    return "new weights" if new else "a base model that had seen none of them"


def _model(arm: ArmSettings) -> str:
    model = arm.model
    if model.shape is None:
        return pretrained_name(model)
    shape = load_shape(model.shape)
    text = f"{shape.architecture}, hidden {shape.hidden}, "
    text += with_noun(shape.layers, "layer")
    if isinstance(model.tokenizer, TokenizerTraining):
        parameters = parameter_count(shape, model.tokenizer.vocab_size)
        text += f", {parameters / 1e6:.2f} M parameters, vocabulary {model.tokenizer.vocab_size:,}"
    return text


def _describe_base(arm: ArmSettings) -> str | None:
    base = arm.base
    if base is None:
        return None
    return f"{base.tokens:,} clean tokens, lr {base.lr:g}, {base.schedule}{_precision(base)}"


def _mode(arm: ArmSettings) -> str:
    answers = ", loss only on the answers" if arm.train.loss_on == "completion" else ""
    return f"{arm.train.mode}{answers}"


def _training(arm: ArmSettings) -> str:
    train = arm.train
    return (
        f"{with_noun(train.epochs, 'epoch')}, windows of {train.context}, "
        f"{train.batch_tokens:,} tokens per step{_precision(train)}"
    )


def _precision(settings: TrainSettings | BaseSettings) -> str:
    """Return the arithmetic; the graph has put in what `auto` and `fastest` stand for."""
    return f", {settings.precision}" if settings.precision not in ("auto", "fastest") else ""


def datasets_table(folder: Path) -> Table | None:
    """Return one row per dataset: members and non-members of a pool, by split."""
    counts: dict[str, Counter[tuple[str, str]]] = {}
    examples = read_examples(folder)
    for example in examples:
        counts.setdefault(example.dataset, Counter())[example.split, example.side] += 1
    held_out = Counter(example.dataset for example in read_held_out(folder))
    protected = {example.dataset for example in examples if example.protected}

    def sides(dataset: str, split: str) -> str:
        split_counts = counts[dataset]
        return f"{split_counts[split, 'member']:,} + {split_counts[split, 'nonmember']:,}"

    return listing(
        "Examples",
        ("Dataset", "Tune", "Test", "Held out", "Texts"),
        [
            (
                name,
                sides(name, "tune"),
                sides(name, "test"),
                f"{held_out[name]:,}" if held_out else "",
                "protected" if name in protected else "",
            )
            for name in counts
        ],
        "Members + non-members, first seed."
        + (" Held-out rows are neither trained on nor scored." if held_out else ""),
    )


def pool_notes(pools: Sequence[tuple[str, Mapping[str, Mapping[str, Any]]]]) -> list[str]:
    """Return a sentence for everything that is unusual, dataset by dataset."""
    notes = []
    for label, datasets in pools:
        prefix = f"{label} · " if len(pools) > 1 else ""
        for name, counts in datasets.items():
            notes += _dataset_notes(f"{prefix}{name}", counts)
            if counts["protected"]:
                notes.append(
                    f"{name} is a protected dataset: its texts appear neither here nor in the "
                    "tables of this folder. Do not share the artifacts that contain them."
                )
    return notes


def _dataset_notes(name: str, facts: Mapping[str, Any]) -> list[str]:
    notes = []
    lost = facts["losses"]
    if reasons := [f"{count} {loss}" for loss, count in lost.items() if loss not in _STILL_USED]:
        notes.append(f"{name}: dropped {', '.join(reasons)}.")
    if repeated := facts["repeated_ids"]:
        notes.append(f"{name}: {repeated} rows have the id of an earlier row; all are kept.")
    if pooled := facts["strata_pooled"]["strata"]:
        notes.append(
            f"{name}: {pooled} of {facts['strata']} strata "
            f"({facts['strata_pooled']['rows']} rows) are too small to be balanced on "
            "both sides (or their groups too large); they were drawn as one stratum."
        )
    if facts["split"]:
        notes.append(
            f"{name}: {facts['split']} rows are longer than the context and were "
            "kept whole, over several windows."
        )
    if cut := sum(lost.get(loss, 0) for loss in _STILL_USED):
        length = f"{facts['max_tokens']} tokens" if "max_tokens" in facts else "the context"
        notes.append(f"{name}: {cut} rows are longer than {length} and were cut to it.")
    if unanswered := facts[DropReason.CUT_BEFORE_ANSWER]:
        named = ", ".join(unanswered[:_NAMED])
        more = f" and {len(unanswered) - _NAMED} more" if len(unanswered) > _NAMED else ""
        notes.append(
            f"{name}: {len(unanswered)} of these rows were cut before the end of their answer, "
            f"so no model learns the full answer: {named}{more}."
        )
    return notes


def background_losses(inputs: PageInputs) -> Table | None:
    """Return the losses on held-out background, a row per arm; None unless measured."""
    if inputs.background_loss is None:
        return None
    by_arm: dict[str, dict[str, Entry]] = {}
    documents = 0
    for row in inputs.background_loss.to_pylist():
        unit = DIFFERENCE if row["metric"] == "change" else NATS
        entry = unit.place(row["value"], row["low"], row["high"])
        by_arm.setdefault(capital(inputs.arm_of(row)) or "All arms", {})[row["metric"]] = entry
        documents = row["documents"]
    return Table(
        title="Loss on held-out background",
        columns=(TableColumn("Arm"), *numbers(*map(capital, METRICS))),
        rows=tuple(
            (arm, *(entries.get(metric, NOTHING) for metric in METRICS))
            for arm, entries in by_arm.items()
        ),
        caption=f"Nats per token, means over {documents} documents that no model is trained "
        "on, with 95 % intervals over documents; a positive change means that training raised the "
        "loss.",
    )
