"""The section `unlearning` of an experiment file: what is forgotten, by which methods.

The names and parameters of methods are looked up when the parts of an experiment are held against
each other (`spikein.config.cross_checks`), as those of detectors are.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from inject.errors import InputError
from inject.examples.forget_set import ForgetSet, RetainSet
from inject.settings import Settings
from spikein.config.key_path import KeyPath
from train.unlearn.registry import parse_methods

if TYPE_CHECKING:
    from spikein.config.schema import Experiment

SECTION = "unlearning"


class UnlearningSection(Settings):
    """Models that are to forget some members, beside one that was trained without them."""

    forget: ForgetSet
    """The members that are to be forgotten; the retrained model never sees them."""
    retain: RetainSet = RetainSet()
    """The other members that methods hold on to; without a rule, all of them."""
    methods: Annotated[tuple[str | dict[str, Any], ...], Field(min_length=1)]
    """Methods by name, by `FILE.py:NAME`, or as a mapping of `method`, `name`, `sweep` and the
    method's own settings; each makes a model for each value that its `sweep` names."""


def forget_set_of(experiment: "Experiment") -> ForgetSet | None:
    """Return whom the retrained model never sees; None where no such model is trained."""
    if experiment.unlearning is not None:
        return experiment.unlearning.forget
    share = experiment.twins.retrained
    return None if share is None else ForgetSet(share=share)


def unlearning_problems(experiment: "Experiment") -> Iterator[tuple[KeyPath, InputError]]:
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
        parse_methods(section.methods)
    except InputError as error:
        place = (error.where or "").removeprefix(f"{SECTION}.methods").strip(": ")
        yield (
            (SECTION, "methods"),
            InputError(
                f"{SECTION}.methods: {place + ': ' if place else ''}{error.problem}",
                allowed=error.allowed,
                hint=error.hint,
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
