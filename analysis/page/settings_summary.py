"""What was run, in words: a paragraph, and a table of settings.

Every value is read from the arms, never from the first choice of the experiment file, so a swept
setting appears with all the values that it took.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from analysis.page.report import Fact
from detect.settings import DetectSettings
from inject.examples.contaminant import Contaminant, PoolSettings
from inject.examples.twin_membership import Twins
from inject.plan.settings import Copies, Placement
from inject.variants.settings import Variants
from train.models.shapes import load_shape, parameter_count
from train.settings import BaseSettings, ModelSettings, TokenizerTraining, TrainSettings


@dataclass(frozen=True, kw_only=True)
class ArmSettings:
    """The settings of one arm that the page shows."""

    axes: Mapping[str, str]
    """Swept axis → its value in this arm."""
    background: str
    """Where the background comes from."""
    tokens: int
    """Of the training stream, copies included."""
    contaminants: Sequence[Contaminant]
    model: ModelSettings
    base: BaseSettings | None
    train: TrainSettings
    copies: Copies
    placement: Placement
    variants: Variants
    twins: Twins
    pool: PoolSettings
    detect: DetectSettings


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


def setup(arms: Sequence[ArmSettings], *, swept: Sequence[str], seeds: Sequence[int]) -> list[Fact]:
    """Return the settings as a table; a swept setting lists all its values.

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
        ("Copies", lambda arm: arm.copies.label()),
        ("Placement", lambda arm: arm.placement.label()),
        (
            "Copies carry",
            lambda arm: arm.variants.label() if arm.variants != Variants() else None,
        ),
        ("Training", _training),
        ("Twins of each arm", lambda arm: arm.twins.label() if arm.twins != Twins() else None),
    )
    facts = [Fact(name, text) for name, read in lines if (text := values_text(arms, read, "; "))]
    for axis in swept:
        labels = dict.fromkeys(arm.axes[axis] for arm in arms)
        facts.append(Fact(f"Swept: {axis}", ", ".join(labels)))
    return [*facts, Fact("Seeds", ", ".join(str(seed) for seed in seeds))]


def values_text(arms: Sequence[ArmSettings], read: Read, between: str = ", ") -> str:
    """Join the different values that the arms have, in the order of the arms."""
    values = dict.fromkeys(text for arm in arms if (text := read(arm)) is not None)
    if between == "; " or len(values) < 2:
        return between.join(values)
    *first, last = values
    return f"{between.join(first)} and {last}"


def _start(arm: ArmSettings) -> str:
    if arm.model.pretrained:
        return f"the pretrained model {arm.model.pretrained}"
    return (
        "new weights" if arm.train.mode == "pretrain" else "a base model that had seen none of them"
    )


def _model(arm: ArmSettings) -> str:
    model = arm.model
    if model.shape is None:
        return str(model.pretrained)
    shape = load_shape(model.shape)
    text = f"{shape.architecture}, hidden {shape.hidden}, "
    text += "1 layer" if shape.layers == 1 else f"{shape.layers} layers"
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
        f"{train.epochs} {'epoch' if train.epochs == 1 else 'epochs'}, windows of {train.context}, "
        f"{train.batch_tokens:,} tokens a step{_precision(train)}"
    )


def _precision(settings: TrainSettings | BaseSettings) -> str:
    """Return the arithmetic; the graph has put in what `auto` and `fastest` stand for."""
    return f", {settings.precision}" if settings.precision not in ("auto", "fastest") else ""
