"""Arms as a list: each has a name and sets some keys, in place of a sweep.

An arm that does not set a key has the experiment's own value, so a design need not be a product.
The keys in which the arms differ are their axes, as in a sweep, and labels are made of them.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inject.errors import InputError, InputErrors, first_names
from spikein.config.schema import Experiment
from spikein.config.sweep import (
    MOST_COMBINATIONS,
    ArmExperiment,
    Combination,
    axis_label,
    axis_problem,
    find_value,
    is_part,
    repeated_values,
    set_choices,
    swept_combinations,
    value_label,
)
from spikein.config.yaml_document import KeyPath, YamlDocument, dotted, parse_path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_FORM = "such as {short: {corpus.tokens: 800_000}, long: {corpus.tokens: 3_200_000}}"
_Checked = Sequence[tuple[Combination, Experiment]]


def combinations(document: YamlDocument) -> list[Combination]:
    """Return one combination per named arm, or all those of the document's `sweep`.

    Raises:
        InputErrors: for arms or a sweep that cannot be run, or both; all problems at once.
    """
    arms = document.values.get("arms")
    if not arms:
        return swept_combinations(document)
    problems = list(_problems(arms, document))
    if document.values.get("sweep"):
        problem = InputError(
            "arms and sweep: are both given",
            where=f"{document.place(('arms',))}, {document.place(('sweep',))}",
            allowed="one of them",
            hint="`sweep: null` or `arms: null` removes an inherited one.",
        )
        problems.append(problem)
    if problems:
        raise InputErrors(problems, title=f"{document.name}: the arms cannot be run:")
    result = []
    for name, values in arms.items():
        choice: dict[str, KeyPath] = {key: ("arms", name, key) for key in values}
        placed = set_choices(document, choice)
        result.append(Combination(name=name, choice=choice, values=placed, swept=document))
    return result


def conflicts(checked: _Checked) -> Iterator[tuple[KeyPath, InputError]]:
    """Yield a problem for each swept value or arm that equals another.

    An arm that has no place for a key of another arm is a problem, since the two cannot be compared
    in that key.
    """
    if not checked[0][0].name:
        yield from repeated_values(checked)
        return
    keys = list(dict.fromkeys(key for combination, _ in checked for key in combination.choice))
    first: dict[tuple[str | None, ...], str] = {}
    for combination, experiment in checked:
        name = combination.name
        labels = {key: _label_if_present(experiment, key) for key in keys}
        missing = [key for key, label in labels.items() if label is None]
        earlier = first.setdefault(tuple(labels.values()), name)
        if missing:
            problem = f"arms.{name}: has no {missing[0]}, which another arm sets"
            hint = "Set it in this arm as well, or in all arms the whole section around it."
            yield ("arms", name), InputError(problem, hint=hint)
        elif earlier != name:
            problem = f"arms.{name}: has the same values as arms.{earlier}"
            hint = "Remove one of the two, or set a key in which they differ."
            yield ("arms", name), InputError(problem, hint=hint)


def describe_choice(combinations: Sequence[Combination]) -> str:
    """Return the names of arms, or the swept values that combinations share, for messages."""
    first = combinations[0]
    if first.name:
        return f"arms: {first_names([combination.name for combination in combinations], 5)}"
    shared = {
        axis: source
        for axis, source in first.choice.items()
        if all(combination.choice[axis] == source for combination in combinations)
    }
    values = (
        f"{dotted(parse_path(axis))}={value_label(find_value(first.swept.values, source))}"
        for axis, source in (shared or first.choice).items()
    )
    return f"sweep: with {', '.join(values)}"


def with_arms(experiment: Experiment, arms: Sequence[ArmExperiment]) -> Experiment:
    """Return the first arm's experiment, whose named arms each have a value for all axes."""
    named = {arm.name: arm.axes for arm in arms if arm.name}
    return experiment.model_copy(update={"arms": named})


def axes_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the axes of a checked experiment's plain values: dotted keys."""
    arms: Mapping[str, Mapping[str, Any]] = values.get("arms") or {}
    keys = [*(values.get("sweep") or ()), *(key for arm in arms.values() for key in arm)]
    return tuple(dict.fromkeys(keys))


def _problems(arms: Any, document: YamlDocument) -> Iterator[InputError]:
    place = document.place(("arms",))
    if not isinstance(arms, Mapping):
        yield InputError("arms: must be a mapping of names", where=place, allowed=_FORM)
        return
    if len(arms) > MOST_COMBINATIONS:
        allowed = f"at most {MOST_COMBINATIONS:,}"
        yield InputError(f"arms: {len(arms):,} of them", where=place, allowed=allowed)
        return
    usable: list[tuple[str, str]] = []
    for name, values in arms.items():
        place = document.place(("arms", name))
        if not _NAME.fullmatch(name):
            allowed = "letters, digits, '_' and '-', a letter or digit first, at most 100 of them"
            yield InputError(f"arms: {name!r} is not a name", where=place, allowed=allowed)
        elif not isinstance(values, Mapping):
            yield InputError(
                f"arms.{name}: must be a mapping of dotted keys to values",
                where=place,
                allowed=_FORM,
                hint="{} is an arm with the experiment's own values.",
            )
        else:
            refused = {key: axis_problem(key, ("arms", name, key), document) for key in values}
            yield from filter(None, refused.values())
            usable += [(name, key) for key, problem in refused.items() if not problem]
    yield from _overlaps(usable, document)


def _overlaps(used: Sequence[tuple[str, str]], document: YamlDocument) -> list[InputError]:
    """Return a problem for each key that is a part of another, in one arm or in two."""
    first_arm: dict[str, str] = {}
    for name, key in used:
        first_arm.setdefault(key, name)
    return [
        InputError(
            f"arms.{first_arm[key]}.{key}: is part of arms.{first_arm[outer]}.{outer}",
            where=document.place(("arms", first_arm[key], key)),
            hint=f"Set either {outer} as a whole or its parts, the same in all arms.",
        )
        for outer, key in itertools.permutations(first_arm, 2)
        if is_part(key, outer)
    ]


def _label_if_present(experiment: Experiment, key: str) -> str | None:
    try:
        return axis_label(experiment, key)
    except (LookupError, AttributeError, TypeError, ValueError):
        return None
