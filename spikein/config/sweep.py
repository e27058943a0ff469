"""The arms of an experiment: every combination of the swept values, with every seed.

`spikein.config.arms` makes arms of a list instead; both have the same form.

An axis is a dotted key with its values. Every combination is a full experiment and is checked as
one before anything runs. Axes vary like an odometer, the last one fastest, and seeds vary within a
combination; so the order of arms depends only on the file.
"""

import copy
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from analysis.arm import arm_label
from analysis.arm_labels import arm_words
from inject.corpus.background.files import FilesSource
from inject.errors import InputError, InputErrors
from inject.plan.settings import Copies
from spikein.config.overrides import set_value
from spikein.config.schema import SECTION, Experiment, plain_values
from spikein.config.yaml_document import KeyPath, YamlDocument, dotted, parse_path

MOST_COMBINATIONS = 1_000
_NOT_SWEPT = ("name", "seeds", "sweep", "arms", "claims", "variables")


@dataclass(frozen=True, kw_only=True)
class ArmExperiment:
    """One combination of swept values, or one named arm, with one seed."""

    name: str = ""
    """Of an arm in `arms`; empty in a sweep."""
    axes: dict[str, Any]
    """Dotted key to its value in this arm, as plain JSON."""
    labels: dict[str, str]
    """Dotted key to a short text of that value, for tables and folder names."""
    seed: int
    experiment: Experiment
    """The experiment with the swept values in place, this one seed, no sweep and no arms."""

    @property
    def cohort(self) -> str:
        """Return its name, or its label in a sweep: the same for all seeds."""
        return self.name or arm_label(self.labels.items())

    @property
    def label(self) -> str:
        """Return `small, seed 0`, or in a sweep `copies poisson=4, lr 0.001, seed 0`."""
        return ", ".join(filter(None, (self.cohort, f"seed {self.seed}")))

    @property
    def words(self) -> str:
        """Return the label in plain words: `learning rate 0.001, seed 0`."""
        return self.label if self.name else arm_words(self.labels.items(), self.seed)


@dataclass(frozen=True, kw_only=True)
class Combination:
    """The values of one combination, before they are checked."""

    name: str = ""
    """Of an arm in `arms`; empty in a sweep."""
    choice: Mapping[str, KeyPath]
    """Axis to the path of its value in the original experiment."""
    values: Mapping[str, Any]
    """The experiment with the chosen values in place."""
    swept: YamlDocument
    """The original experiment, with its sweep or its arms."""

    def document(self) -> YamlDocument:
        """Return the values with their places; a chosen one has the place in its axis."""
        places = dict(self.swept.places)
        for axis, source in self.choice.items():
            path = parse_path(axis)
            for old in [old for old in places if old[: len(path)] == path]:
                del places[old]
            places[path] = self.swept.place(source)
            for old, place in self.swept.places.items():
                if old[: len(source)] == source:
                    places[path + old[len(source) :]] = place
        return YamlDocument(values=self.values, places=places, name=self.swept.name)


def swept_combinations(document: YamlDocument) -> list[Combination]:
    """Return every combination of the document's `sweep`; a single one without a sweep.

    Raises:
        InputErrors: for a `sweep` that is not a mapping of lists, an axis that cannot be set,
            overlapping axes or more than 1,000 combinations; all problems at once.
    """
    sweep = document.values.get("sweep") or {}
    problems = list(_axis_problems(sweep, document))
    if problems:
        raise InputErrors(problems, title=f"{document.name}: the sweep cannot be run:")
    axes = list(sweep)
    result = []
    for indexes in itertools.product(*(range(len(sweep[axis])) for axis in axes)):
        choice = {axis: ("sweep", axis, at) for axis, at in zip(axes, indexes, strict=True)}
        values = set_choices(document, choice)
        result.append(Combination(choice=choice, values=values, swept=document))
    return result


def arms(checked: Sequence[tuple[Combination, Experiment]]) -> tuple[ArmExperiment, ...]:
    """Return the arms of checked combinations, in their fixed order: each with every seed.

    A key that named arms set to one value is not an axis.
    """
    keys = dict.fromkeys(key for combination, _ in checked for key in combination.choice)
    if checked[0][0].name:
        labels = {key: {axis_label(experiment, key) for _, experiment in checked} for key in keys}
        keys = {key: None for key in keys if len(labels[key]) > 1}
    choices = [
        {key: find_value(experiment, parse_path(key)) for key in keys} for _, experiment in checked
    ]
    label = {key: _label_function([chosen[key] for chosen in choices]) for key in keys}
    result = []
    for (combination, experiment), chosen in zip(checked, choices, strict=True):
        for seed in experiment.seeds:
            single = {"seeds": (seed,), "sweep": {}, "arms": {}}
            arm = ArmExperiment(
                name=combination.name,
                axes={key: _plain_value(value) for key, value in chosen.items()},
                labels={key: label[key](value) for key, value in chosen.items()},
                seed=seed,
                experiment=experiment.model_copy(update=single),
            )
            result.append(arm)
    return tuple(result)


def validate(values: Mapping[str, Any]) -> Experiment:
    """Return the experiment of plain values; no text passes for a number, nor true for 1.

    Raises:
        pydantic.ValidationError: with every problem found.
    """
    # JSON is the mode in which strictness still takes a list for a tuple.
    return Experiment.model_validate_json(json.dumps(values), strict=True)


def value_label(value: Any) -> str:
    """Return a short readable text of one swept value: `poisson=4`, `0.001`, `boolq-imdb`."""
    match value:
        case Copies():
            return value.label()
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            short = f"{value:g}"
            return short if float(short) == value else repr(value)
        case BaseModel():
            return value_label(plain_values(value))
        case Mapping():
            return ",".join(f"{key}={value_label(item)}" for key, item in value.items())
        case list() | tuple():
            return "-".join(value_label(item) for item in value)
        case _:
            return str(value)


def short_label(value: Any) -> str:
    """Return the text of one value, in which a source of local files goes by their name.

    Sources that differ only in their weights or folders have the same short label.
    """
    if isinstance(value, list | tuple):
        return "-".join(short_label(item) for item in value)
    name = _files_name(value.path) if isinstance(value, FilesSource) else ""
    return name or value_label(value)


def axis_label(experiment: Experiment, axis: str) -> str:
    """Return the short text of an axis's value in an experiment.

    Raises:
        LookupError, AttributeError, ValueError: for an unknown part.
    """
    return value_label(find_value(experiment, parse_path(axis)))


def repeated_values(
    checked: Sequence[tuple[Combination, Experiment]],
) -> Iterable[tuple[KeyPath, InputError]]:
    """Return a problem for each axis on which two values mean or read the same."""
    first: dict[tuple[str, str], KeyPath] = {}
    problems: dict[KeyPath, InputError] = {}
    for combination, experiment in checked:
        for axis, source in combination.choice.items():
            label = axis_label(experiment, axis)
            if first.setdefault((axis, label), source) != source:
                problems[source] = InputError(
                    f"sweep.{axis}: {label!r} is given twice", hint="Each value once is enough."
                )
    return problems.items()


def _label_function(values: Sequence[Any]) -> Callable[[Any], str]:
    """Return the shortest labels that distinguish an axis's values."""
    exact, short = ({label(value) for value in values} for label in (value_label, short_label))
    return short_label if len(short) == len(exact) else value_label


def _files_name(path: str) -> str:
    """Return the last part of a path without wildcards, and without its suffixes."""
    names = [part for part in path.split("/") if part and not set("*?[") & set(part)]
    return re.sub(r"(\.[A-Za-z]+)+$", "", names[-1]) if names else ""


def _axis_problems(sweep: Any, document: YamlDocument) -> Iterator[InputError]:
    whole = document.place(("sweep",))
    if not isinstance(sweep, Mapping):
        yield InputError(
            "sweep: must be a mapping of dotted keys to lists of values",
            where=whole,
            allowed="such as {train.lr: [1.0e-4, 1.0e-3]}",
        )
        return
    usable: list[str] = []
    for axis, values in sweep.items():
        if not isinstance(values, list) or not values:
            single = isinstance(values, str | int | float)
            yield InputError(
                f"sweep.{axis}: must be a list of at least one value",
                where=document.place(("sweep", axis)),
                allowed=f"such as [{values}, …]" if single else None,
            )
        elif problem := axis_problem(axis, ("sweep", axis, 0), document):
            yield problem
        else:
            usable.append(axis)
    for outer, other in itertools.permutations(usable, 2):
        if is_part(other, outer):
            yield InputError(
                f"sweep.{other}: is part of sweep.{outer}, which would replace it",
                where=document.place(("sweep", other)),
            )
    count = math.prod(len(sweep[axis]) for axis in usable)
    if count > MOST_COMBINATIONS:
        allowed = f"at most {MOST_COMBINATIONS:,}"
        yield InputError(f"sweep: {count:,} combinations", where=whole, allowed=allowed)


def axis_problem(axis: str, source: KeyPath, document: YamlDocument) -> InputError | None:
    """Return why arms cannot differ in a key; None if they can.

    Args:
        axis: the dotted key.
        source: the path of a value for it.
        document: the experiment.
    """
    path, place = parse_path(axis), document.place(source)
    refused = f"{dotted(source[: source.index(axis) + 1])}: cannot be swept"
    if path[0] == SECTION:
        return InputError(
            f"{refused}, since every combination would train the original model and the "
            "retrained one again",
            where=place,
            hint="Sweep within a method, which takes the models as they are: "
            "`unlearning.methods: [{method: npo, sweep: {lr: [1.0e-5, 1.0e-4]}}]`.",
        )
    if path[0] in _NOT_SWEPT or "" in path:
        return InputError(refused, where=place)
    try:
        set_choices(document, {axis: source})
    except InputError as error:
        return error
    return None


def is_part(key: str, outer: str) -> bool:
    """Return whether a dotted key is inside another, or means the same in another spelling."""
    short, long = parse_path(outer), parse_path(key)
    return short == long[: len(short)] and (short != long or outer < key)


def set_choices(document: YamlDocument, choice: Mapping[str, KeyPath]) -> dict[str, Any]:
    """Return the document's values with the chosen ones in place."""
    values: dict[str, Any] = copy.deepcopy(dict(document.values))
    for axis, source in choice.items():
        value = find_value(document.values, source)
        set_value(values, parse_path(axis), value, place=document.place(source))
    return values


def find_value(value: Any, path: KeyPath) -> Any:
    """Return the value at a path in settings, mappings and lists.

    Raises:
        LookupError, AttributeError, ValueError: for an unknown part.
    """
    for part in path:
        if isinstance(value, BaseModel):
            value = getattr(value, str(part))
        elif isinstance(value, Mapping):
            value = value[str(part)]
        else:
            value = value[int(part)]
    return value


def _plain_value(value: Any) -> Any:
    """Return one value of an experiment as plain JSON."""
    if isinstance(value, BaseModel):
        return plain_values(value)
    if isinstance(value, Mapping):
        return {str(key): _plain_value(item) for key, item in value.items()}
    return [_plain_value(item) for item in value] if isinstance(value, list | tuple) else value
