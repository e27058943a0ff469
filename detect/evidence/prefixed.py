"""Shots before each text: the selected texts of its dataset, and token statistics after them.

The prefix of a dataset ends with the separator after its last text, encoded separately.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

from detect.access import Access
from detect.evidence.evidence import Evidence, PrefixedStatistics
from detect.evidence.held_out import FILE_HINT
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.settings import DetectSettings
from detect.target_identity import AnyModel, asking_step, target_execution
from inject.examples.example import EXAMPLES_FILE, HELD_OUT, UNSPLIT
from inject.step import InputProjection, Step

SHOTS_FILE = "shots.json"
KNOWN_MEMBERS_FILE = "known_members.parquet"
"""Additional file of a user's rows: known members that are not scored. An experiment has no such
file, but members of the split `tune`."""
_NO_WEIGHTS = InputProjection(files=("*.json", "*.jinja", "*.model", "*.txt", "*.py"))
"""A model's configuration, its tokenizer, and the code of either."""
_MEMBERS = InputProjection(files=(EXAMPLES_FILE, KNOWN_MEMBERS_FILE))


@dataclass(frozen=True, kw_only=True)
class Shots:
    """The prefix of one dataset."""

    texts: tuple[str, ...]
    """Texts in their order."""
    ids: tuple[int, ...]
    """Ids of the whole prefix: start token, and each text followed by the separator."""
    separator: tuple[int, ...]
    """Ids of the separator."""
    groups: tuple[str, ...] = ()
    """Groups of the texts, if these rows are also scored."""
    too_long: bool = False
    """Whether the context limit excluded texts."""


def write_shots(folder: Path, shots: Mapping[str, Shots]) -> None:
    """Write the shots of every dataset as `shots.json`."""
    values = {name: asdict(chosen) for name, chosen in shots.items()}
    (folder / SHOTS_FILE).write_text(json.dumps(values, indent=1, sort_keys=True))


def read_shots(folder: Path) -> dict[str, Shots]:
    """Read the shots that `write_shots` wrote."""
    values = json.loads((folder / SHOTS_FILE).read_text())
    return {
        name: Shots(
            texts=tuple(entry["texts"]),
            ids=tuple(entry["ids"]),
            separator=tuple(entry["separator"]),
            groups=tuple(entry["groups"]),
            too_long=entry["too_long"],
        )
        for name, entry in values.items()
    }


@dataclass(frozen=True)
class Prefixed(Need):
    """Token statistics of the text after shots: other texts of its dataset."""

    shots: int = 1
    """Number of texts before it."""
    first: int = 0
    """Index of the first shot among the dataset's texts in their random order."""
    known: Literal["nonmembers", "members"] = "nonmembers"
    """Held-out rows, which no model saw, or known members of the split `tune`."""
    access: ClassVar[Access] = Access.TOKENS
    parts: ClassVar[Mapping[str, str]] = {"shots": r"(behind|shots)-.*"}
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {SHOTS_FILE: ("texts", "ids", "separator")}
    hint: ClassVar[str] = (
        "Shots are held-out rows (contaminants.held_out); known members are those of the split "
        "`tune` (detect.tune_share above 0)."
    )
    file_hint: ClassVar[str] = f"{FILE_HINT} Rows of it with label 1 are known members."

    def __str__(self) -> str:
        return "shots" if self.known == "nonmembers" else "known members as shots"

    @property
    def cost(self) -> NeedCost:
        """The target reads the text after the shots, which it reads once for all texts."""
        return "target behind shots", 1

    @property
    def name(self) -> str:
        """Its name in `Evidence.prefixed` and in step names."""
        return f"{self.known}-{self.first}-{self.shots}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the statistics after these shots are present."""
        return self.name in evidence.prefixed

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether there are rows for the shots."""
        return sources.known_members if self.known == "members" else sources.held_out > 0

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the shots, and a pass of the scored model after them."""
        detect = sources.detect
        shots = shots_step(scored.model, sources.examples, self, detect)
        # Without the requested number: if no more fit, 12 shots cost no second pass.
        prefixed_step = asking_step(
            scored.model,
            detect,
            kind="statistics",
            label=f"behind-{self.name}-{scored.model.label}",
            function="detect.evidence.shots:build",
            settings={"behind": "shots", "policy": detect.policy().record()},
            inputs={"examples": sources.examples, "shots": shots},
            reads={"examples": UNSPLIT},
        )
        return {f"behind-{self.name}": prefixed_step, f"shots-{self.name}": shots}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the statistics after the shots, and note datasets with fewer shots."""
        datasets = {row.dataset for row in work.rows}
        prefixed = {}
        for need in needs:
            shots = read_shots(work.inputs[f"shots-{need.name}"])
            prefixed[need.name] = PrefixedStatistics(
                statistics=work.statistics(f"behind-{need.name}"),
                notes=shot_notes(need, shots, datasets),
            )
        work.fields["prefixed"] = prefixed
        work.fields["datasets"] = [row.dataset for row in work.rows]


def shot_notes(
    need: Prefixed, shots: Mapping[str, Shots], datasets: Collection[str]
) -> tuple[str, ...]:
    """Return notes on datasets with fewer shots than requested."""
    notes = []
    for name in sorted(datasets):
        chosen = shots.get(name)
        if chosen is None or len(chosen.texts) < need.shots:
            reason = (
                "more do not fit into half of the context"
                if chosen is not None and chosen.too_long
                else "there are no more such rows"
            )
            # Without the requested number, so that a grid reports it once.
            count = len(chosen.texts) if chosen else 0
            of = f" of {name}" if name else ""
            notes.append(f"at most {count} {need} precede the texts{of}: {reason}")
    return tuple(notes)


def shots_step(model: AnyModel, examples: Step, need: Prefixed, detect: DetectSettings) -> Step:
    """Select the shots before each dataset's texts: held-out rows, or known members."""
    return Step(
        kind="shots",
        label=f"{need.name}-{model.label}",
        function="detect.evidence.shots:choose",
        settings={
            "need": [need.known, need.first, need.shots],
            "policy": detect.policy().record(),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=() if model.served else ("transformers",),
        reads={
            "examples": _MEMBERS if need.known == "members" else HELD_OUT,
            **({"model": _NO_WEIGHTS} if model.step else {}),
        },
        # Shots for a server require no model: all of them are sent before a text.
        execution={} if model.served else target_execution(model, detect),
    )
