"""Multiple choice: the target's answers about each example that has three paraphrases.

A model is queried once for each pool of examples: every score of `de_cop`, with any calibration, is
a function of the stored answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from detect.access import Access
from detect.choices import ANSWERS_FILE, ChoiceEvidence, read_answers
from detect.evidence.continuations import allows_generation
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.target_identity import asking_step
from inject.examples.example import HELD_OUT, UNSPLIT
from inject.step import Step


@dataclass(frozen=True)
class Choices(Need):
    """Answers to a multiple choice between each passage and three paraphrases, in all orders.

    Letters suffice; a local model also gives the labels' probabilities.
    """

    evidence: ClassVar[str | None] = "choices"
    access: ClassVar[Access] = Access.TEXT
    parts: ClassVar[Mapping[str, str]] = {"choices": r"(clean-)?choices"}
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {ANSWERS_FILE: ()}
    hint: ClassVar[str] = (
        "Spike a dataset that brings paraphrases, such as `fictional`. 24 prompts per example are "
        "expensive: for `all`, also set detect.generate=true."
    )
    file_hint: ClassVar[str] = (
        "Give rows three paraphrases each (`paraphrases`, or Example_A to Example_D with the "
        "verbatim text first)."
    )

    def __str__(self) -> str:
        return "paraphrases to choose from"

    @property
    def cost(self) -> NeedCost:
        """The target answers in every order of the four options."""
        return "24 prompts with the text and three paraphrases", None

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether rows have paraphrases; in an experiment, also whether generation is
        allowed."""
        return sources.paraphrased and (sources.of_file or allows_generation(sources))

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the answers about the rows, and those about held-out rows for calibration."""

        def step(*, held_out: bool) -> Step:
            return asking_step(
                scored.model,
                sources.detect,
                kind="choices",
                label=f"{'held-out-' if held_out else ''}{scored.model.label}",
                function="detect.targets.letters:build",
                settings={"rows": "held_out"} if held_out else {},
                inputs={"examples": sources.examples},
                reads={"examples": HELD_OUT if held_out else UNSPLIT},
            )

        clean = {"clean-choices": step(held_out=True)} if sources.held_out else {}
        return {"choices": step(held_out=False), **clean}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the answers; those about held-out rows are the calibration."""
        clean = work.inputs.get("clean-choices")
        work.fields["choices"] = ChoiceEvidence(
            answers=work.rows_of(read_answers(work.inputs["choices"])),
            clean=[] if clean is None else list(read_answers(clean).values()),
        )
