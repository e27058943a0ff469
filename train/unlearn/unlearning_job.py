"""Inputs of an unlearning run, as plain values: a job is JSON.

Other processes than the planning one may compute a job.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inject.errors import InputError, did_you_mean
from inject.examples.example import Example, members, read_examples
from train.job import Job
from train.models.model_node import GivenModel
from train.unlearn.registry import MethodSetting, parse_methods

FIRST_STAGE = "first"
"""Name of the first stage; also the folder of its model, in the folder that survives a kill."""


class UnlearningJob(Job):
    """Inputs of an unlearning run."""

    original: GivenModel
    """The model to unlearn."""
    examples: str
    """Folder of the examples artifact."""
    forget_ids: tuple[str, ...]
    """Members to be forgotten."""
    retain_ids: tuple[str, ...] = ()
    """Members to be kept; may be empty if the method needs none."""
    method: dict[str, Any]
    """Entry for `train.unlearn.registry.parse_methods`, with one setting."""

    def setting(self) -> MethodSetting:
        """Return the method and its settings.

        Raises:
            InputError: as `parse_methods`, and for an entry with several settings.
        """
        settings = parse_methods([self.method], of_job=True)
        if len(settings) != 1:
            raise InputError("a job has one setting", where="method", allowed="no sweep")
        return settings[0]


def first_model(job: UnlearningJob) -> Path:
    """Return the folder of the first stage's model."""
    return Path(job.unfinished) / FIRST_STAGE / "model"


def stage_unfinished(job: UnlearningJob, stage: str | None = None) -> Path:
    """Return the folder for restart checkpoints of a stage; None is the method's own."""
    unfinished = Path(job.unfinished)
    return unfinished if stage is None else unfinished / stage / "unfinished"


def chosen_examples(
    job: UnlearningJob, setting: MethodSetting
) -> tuple[list[Example], list[Example]]:
    """Return the examples of the forget set and of the retain set, in the job's order.

    Raises:
        InputError: an empty forget set; an id that is not a member's; a text in both sets; an empty
            retain set if the method needs one.
    """
    spiked = {example.example_id: example for example in members(read_examples(Path(job.examples)))}
    if not job.forget_ids:
        raise InputError("the forget set is empty", where="unlearning.forget")
    for name, ids in (("forget", job.forget_ids), ("retain", job.retain_ids)):
        _check_members(ids, spiked, place=f"unlearning.{name}")
    both = sorted(set(job.forget_ids) & set(job.retain_ids))
    if both:
        raise InputError(
            f"{len(both)} texts are in both the forget set and the retain set, the first is "
            f"{both[0]}",
            where="unlearning.retain",
        )
    if setting.needs_retain and not job.retain_ids:
        raise InputError(
            f"the method {setting.method.name} needs a retain set, and this one is empty",
            where="unlearning.retain",
            hint="Keep some members, or use a method without one, such as npo with "
            "retain_weight 0.",
        )
    return [spiked[name] for name in job.forget_ids], [spiked[name] for name in job.retain_ids]


def _check_members(ids: Sequence[str], spiked: dict[str, Example], *, place: str) -> None:
    strange = [example_id for example_id in ids if example_id not in spiked]
    if strange:
        raise InputError(
            f"{len(strange)} of {len(ids)} texts are not among the members, the first is "
            f"{strange[0]}.{did_you_mean(strange[0], spiked)}",
            where=place,
            hint="A model can only forget, or keep, what it was trained on.",
        )
