"""What was run, in the words of the page: a paragraph, and a table of settings.

Every value is read from the arms, never from the file's first choice, so a swept setting is told
with all the values that it took.
"""

from collections.abc import Callable

from analysis.page import Fact
from inject.examples.twin_membership import Twins
from inject.variants.settings import Variants
from spikein.config.schema import Experiment
from spikein.pipeline.build_graph import ExperimentGraph
from train.models.shapes import load_shape, parameter_count
from train.settings import TokenizerTraining

Read = Callable[[Experiment], str | None]


def description(experiment_graph: ExperimentGraph) -> str:
    """Return what was run as a paragraph."""
    experiments = _experiments(experiment_graph)

    def told(read: Read) -> str:
        return _any_of(experiments, read)

    names = [one.name for one in experiment_graph.experiment.contaminants]
    members = told(lambda one: f"{sum(part.members for part in one.contaminants):,}")
    withheld = told(lambda one: f"{sum(part.nonmembers for part in one.contaminants):,}")
    lengths = told(lambda one: f"{one.corpus.tokens:,}")
    count = len(experiment_graph.nodes)
    models = "1 model was" if count == 1 else f"{count} models were"
    return (
        f"{members} texts ({', '.join(names)}) were drawn at random as members and spiked into "
        f"training streams of {lengths} tokens; {withheld} texts of the same pool were withheld. "
        f"{models} trained on them, starting from {told(_start)}. Every detector then scored both "
        "sides: higher means more likely a member. Settings were chosen on the tune split; "
        "everything below is measured on the test split."
    )


def setup(experiment_graph: ExperimentGraph) -> list[Fact]:
    """Return the settings as a table; one that was swept names all its values."""
    experiments = _experiments(experiment_graph)
    lines: tuple[tuple[str, Read], ...] = (
        ("Model", _model),
        ("Base model", _base),
        ("Background", lambda one: one.corpus.described()),
        ("Stream", lambda one: f"{one.corpus.tokens:,} tokens, copies included"),
        ("Mode", _mode),
        ("Learning rate", lambda one: f"{one.train.lr:g}, {one.train.schedule}"),
        ("Copies", lambda one: one.copies.label()),
        ("Placement", lambda one: one.placement.label()),
        (
            "Copies carry",
            lambda one: one.variants.label() if one.variants != Variants() else None,
        ),
        ("Training", _training),
        ("Beside each arm", lambda one: one.twins.label() if one.twins != Twins() else None),
    )
    facts = [Fact(name, text) for name, read in lines if (text := _any_of(experiments, read, "; "))]
    for axis in experiment_graph.experiment.sweep:
        labels = dict.fromkeys(node.arm.labels[axis] for node in experiment_graph.nodes)
        facts.append(Fact(f"Swept: {axis}", ", ".join(labels)))
    seeds = ", ".join(str(seed) for seed in experiment_graph.experiment.seeds)
    return [*facts, Fact("Seeds", seeds)]


def _experiments(experiment_graph: ExperimentGraph) -> list[Experiment]:
    return [node.arm.experiment for node in experiment_graph.nodes]


def _any_of(experiments: list[Experiment], read: Read, between: str = ", ") -> str:
    """Join the different values that the arms have, in the order of the arms."""
    values = dict.fromkeys(text for one in experiments if (text := read(one)) is not None)
    if between == "; " or len(values) < 2:
        return between.join(values)
    *first, last = values
    return f"{between.join(first)} and {last}"


def _start(one: Experiment) -> str:
    if one.model.pretrained:
        return f"the pretrained model {one.model.pretrained}"
    return (
        "new weights" if one.train.mode == "pretrain" else "a base model that had seen none of them"
    )


def _model(one: Experiment) -> str:
    model = one.model
    if model.shape is None:
        return str(model.pretrained)
    shape = load_shape(model.shape)
    text = f"{shape.architecture}, hidden {shape.hidden}, {shape.layers} layers"
    if isinstance(model.tokenizer, TokenizerTraining):
        parameters = parameter_count(shape, model.tokenizer.train)
        text += f", {parameters / 1e6:.2f} M parameters, vocabulary {model.tokenizer.train:,}"
    return text


def _base(one: Experiment) -> str | None:
    base = one.base
    if base is None:
        return None
    return f"{base.tokens:,} clean tokens, lr {base.lr:g}, {base.schedule}"


def _mode(one: Experiment) -> str:
    answers = ", loss on the answers alone" if one.train.loss_on == "completion" else ""
    return f"{one.train.mode}{answers}"


def _training(one: Experiment) -> str:
    train = one.train
    return (
        f"{train.epochs} {'epoch' if train.epochs == 1 else 'epochs'}, windows of {train.context}, "
        f"{train.batch_tokens:,} tokens a step"
    )
