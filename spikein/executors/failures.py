"""Steps that failed while the others went on, and how that is said in the end."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from inject.errors import SpikeinError

LAST_LINES = 12
"""Of a step's log, in messages and in `spikein status`."""


class StepFailure(NamedTuple):
    """One step that failed for good."""

    name: str
    problem: str
    """Why, in one or a few lines."""
    lines: tuple[str, ...] = ()
    """The last lines of its log."""
    log: str = ""
    """Where the whole log lies."""

    def __str__(self) -> str:
        text = f"{self.name}: {self.problem}"
        text += "".join(f"\n    {line}" for line in self.lines)
        return text + (f"\n    The whole log: {self.log}" if self.log else "")


class StepsFailed(SpikeinError):
    """Some steps failed; every step that needs none of them was finished."""

    exit_code: ClassVar[int] = 3

    def __init__(
        self, failures: Sequence[StepFailure], *, not_begun: Sequence[str], finished: int
    ) -> None:
        self.failures = tuple(failures)
        self.not_begun = tuple(not_begun)
        """The names of the steps that need one that failed."""
        number = len(self.failures)
        lines = [f"{number} step{'s' if number > 1 else ''} failed; {finished} finished."]
        lines += [f"  {one}" for one in self.failures]
        if self.not_begun:
            lines.append(f"Not begun, as they need what failed: {_listed(self.not_begun)}.")
        lines.append("Finished steps are kept; run the same command again to try the others.")
        lines.append(
            "A report needs every arm. For one of the arms that were finished, run the experiment "
            "without those that failed: nothing of the others is built again."
        )
        super().__init__("\n".join(lines))


def _listed(names: Sequence[str], most: int = 6) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
