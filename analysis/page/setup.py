"""What was run, on which rows, and against which background.

Every value is read from the arms, never from the first choice of the experiment file, so a swept
setting appears with all the values that it took.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.arm_words import axis_words
from analysis.page.inputs import ArmSettings, PoolReport
from analysis.page.parts import Fold, Part
from analysis.page.table import PROTECTED, Column, Table, facts, listing, numbers, texts, with_noun
from analysis.unit import Entry
from inject.examples.example import Loss, read_examples, read_held_out
from inject.examples.twin_membership import Twins
from inject.overlap.filter import OverlapFacts
from inject.overlap.index import Overlap
from inject.variants.settings import Variants
from train.models.gguf import is_gguf
from train.models.shapes import load_shape, parameter_count
from train.settings import BaseSettings, ModelSettings, TokenizerTraining, TrainSettings

_STILL_USED = (Loss.CUT, Loss.CUT_BEFORE_ANSWER)
_NAMED = 10
"""Rows named in a sentence; the others are in the pool's table."""
MAX_ROWS = 30
MAX_UNCHECKED = 200

Read = Callable[[ArmSettings], str | None]


def description(arms: Sequence[ArmSettings], datasets: Sequence[str]) -> str:
    """Return what was run as a paragraph.

    Args:
        arms: the settings of every arm.
        datasets: the names of the datasets.
    """

    def values(read: Read) -> str:
        return values_text(arms, read)

    members = values(lambda arm: f"{sum(part.members for part in arm.contaminants):,}")
    withheld = values(lambda arm: f"{sum(part.nonmembers for part in arm.contaminants):,}")
    held_out = values(lambda arm: f"{sum(part.held_out for part in arm.contaminants):,}")
    further = "" if held_out == "0" else f", and {held_out} further ones held out for detectors"
    lengths = values(lambda arm: f"{arm.tokens:,}")
    models = "1 model was" if len(arms) == 1 else f"{len(arms)} models were"
    return (
        f"{members} texts ({', '.join(datasets)}) were drawn at random as members and spiked into "
        f"training streams of {lengths} tokens; {withheld} texts of the same pool were withheld"
        f"{further}. "
        f"{models} trained on them, starting from {values(_start)}. Every detector then scored "
        "both sides: higher means more likely a member. Settings were chosen on the tune split; "
        "everything below is measured on the test split."
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
        ("Base model", _base),
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


def values_text(arms: Sequence[ArmSettings], read: Read, between: str = ", ") -> str:
    """Join the different values that the arms have, in the order of the arms."""
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
    return (
        "new weights" if arm.train.mode == "pretrain" else "a base model that had seen none of them"
    )


def _model(arm: ArmSettings) -> str:
    model = arm.model
    if model.shape is None:
        return pretrained_name(model)
    shape = load_shape(model.shape)
    text = f"{shape.architecture}, hidden {shape.hidden}, "
    text += with_noun(shape.layers, "layer")
    if isinstance(model.tokenizer, TokenizerTraining):
        parameters = parameter_count(shape, model.tokenizer.train)
        text += f", {parameters / 1e6:.2f} M parameters, vocabulary {model.tokenizer.train:,}"
    return text


def _base(arm: ArmSettings) -> str | None:
    base = arm.base
    if base is None:
        return None
    return f"{base.tokens:,} clean tokens, lr {base.lr:g}, {base.schedule}{_precision(base)}"


def _mode(arm: ArmSettings) -> str:
    answers = ", loss on the answers alone" if arm.train.loss_on == "completion" else ""
    return f"{arm.train.mode}{answers}"


def _training(arm: ArmSettings) -> str:
    train = arm.train
    return (
        f"{with_noun(train.epochs, 'epoch')}, windows of {train.context}, "
        f"{train.batch_tokens:,} tokens a step{_precision(train)}"
    )


def _precision(settings: TrainSettings | BaseSettings) -> str:
    """Return the arithmetic; the graph has put in what `auto` and `fastest` stand for."""
    return f", {settings.precision}" if settings.precision not in ("auto", "fastest") else ""


def datasets_table(folder: Path) -> Table | None:
    """Return one row a dataset: members and non-members of a pool, by split."""
    counts: dict[str, Counter[tuple[str, str]]] = {}
    examples = read_examples(folder)
    for example in examples:
        counts.setdefault(example.dataset, Counter())[example.split, example.side] += 1
    held_out = Counter(example.dataset for example in read_held_out(folder))
    protected = {example.dataset for example in examples if example.protected}

    def sides(dataset: str, split: str) -> str:
        here = counts[dataset]
        return f"{here[split, 'member']:,} + {here[split, 'nonmember']:,}"

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
        + (" No model saw a held-out row, and none is scored." if held_out else ""),
    )


def pool_notes(pools: Sequence[PoolReport]) -> list[str]:
    """Return a sentence for everything that is unusual, dataset by dataset."""
    notes = []
    for pool in pools:
        where = f"{pool.label} · " if len(pools) > 1 else ""
        for name, counts in pool.datasets.items():
            notes += _dataset_notes(f"{where}{name}", counts)
            if counts["protected"]:
                notes.append(
                    f"{name} is a protected dataset: its texts appear neither here nor in the "
                    "tables of this folder. Do not share the artifacts that hold them."
                )
    return notes


def _dataset_notes(name: str, facts: Mapping[str, Any]) -> list[str]:
    notes = []
    lost = facts["losses"]
    reasons = ", ".join(
        f"{count} {loss}" for loss, count in lost.items() if loss not in _STILL_USED
    )
    if reasons:
        notes.append(f"{name}: dropped {reasons}.")
    if repeated := facts["repeated_ids"]:
        notes.append(f"{name}: {repeated} rows have the id of an earlier row; each counts.")
    if pooled := facts["strata_pooled"]["strata"]:
        notes.append(
            f"{name}: {pooled} of {facts['strata']} strata "
            f"({facts['strata_pooled']['rows']} rows) are too small to be balanced on "
            "both sides (or their groups too large); they were drawn as one stratum."
        )
    if facts["split"]:
        notes.append(
            f"{name}: {facts['split']} rows are longer than the context and were left whole, over "
            "several windows."
        )
    if cut := sum(lost.get(loss, 0) for loss in _STILL_USED):
        notes.append(f"{name}: {cut} rows are longer than the context and were cut to it.")
    if unanswered := facts[Loss.CUT_BEFORE_ANSWER]:
        named = ", ".join(unanswered[:_NAMED])
        more = f" and {len(unanswered) - _NAMED} more" if len(unanswered) > _NAMED else ""
        notes.append(
            f"{name}: {len(unanswered)} of these rows were cut before the end of their answer, "
            f"which no model learns from them: {named}{more}."
        )
    return notes


def background_parts(overlaps: Sequence[Overlap], facts: OverlapFacts) -> list[Part]:
    """Return the counts of a background's audit, the longest overlaps, and unsought rows."""
    if not facts.offending:
        outcome = "No document overlaps with a row."
    elif facts.dropped:
        outcome = f"{facts.dropped:,} documents overlap and were left out of the corpus."
    else:
        outcome = f"{facts.offending:,} documents overlap and were kept, as the experiment asks."
    few = len(facts.unchecked)
    if few:
        outcome += (
            f" {few:,} of the rows {'has' if few == 1 else 'have'} too few words to be "
            "searched for: whether the background contains them is not known. They are listed "
            "below."
        )
    parts: list[Part] = [
        f"{facts.documents:,} documents ({facts.bytes / 1e6:,.1f} MB) were compared with "
        f"{facts.examples:,} rows of the datasets, by the rule: {facts.rules}. {outcome}"
    ]
    ranked = sorted(overlaps, key=lambda one: (-one.words, one.place, one.example_id))
    if ranked:
        parts.append(_overlaps_table(ranked[:MAX_ROWS]))
    if len(ranked) > MAX_ROWS:
        more = len(ranked) - MAX_ROWS
        parts.append(f"{more:,} more are listed in the corpus's overlaps.parquet.")
    if few:
        parts.append(Fold(f"Rows that were not searched for: {few:,}", _unchecked(facts)))
    return parts


def _overlaps_table(overlaps: Sequence[Overlap]) -> Table:
    return Table(
        columns=(
            Column("Document"),
            Column("Example"),
            Column("Words", right=True),
            Column("Similarity", right=True),
            Column("Shared text", long=True),
        ),
        rows=tuple(
            (
                Entry(one.place, notes=(one.rule,)),
                Entry(f"{one.dataset}, {one.part}", notes=(one.example_id,)),
                str(one.words),
                f"{one.similarity:.2f}",
                PROTECTED if one.text is None else one.text,
            )
            for one in overlaps
        ),
        style="stack examples",
    )


def _unchecked(facts: OverlapFacts) -> list[Part]:
    table = Table(
        columns=(*texts("Dataset", "Row", "Example"), *numbers("Words")),
        rows=tuple(
            (one.dataset, one.source_id, one.example_id, f"{one.words:.1f}")
            for one in facts.unchecked[:MAX_UNCHECKED]
        ),
    )
    more = len(facts.unchecked) - MAX_UNCHECKED
    listed = f"{more:,} more are listed in the corpus's overlaps.json."
    return [table, listed] if more > 0 else [table]
