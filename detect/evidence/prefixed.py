"""Shots before each text: which texts of its dataset these are, and token statistics behind them.

The prefix of a dataset ends with the separator behind its last text, by its own ids.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from detect.asked_model import model_libraries, target_execution, target_settings
from detect.engine.measured_cost import COST_FILE
from detect.evidence.evidence import PrefixedStatistics
from detect.evidence.needs import Prefixed
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.settings import DetectSettings
from inject.examples.example import EXAMPLES_FILE
from inject.examples.parts import HELD_OUT, UNSPLIT
from inject.step import Reading, Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode

SHOTS_FILE = "shots.json"
_NO_WEIGHTS = Reading(files=("*.json", "*.jinja", "*.model", "*.txt", "*.py"))
"""A model's configuration, its tokenizer, and code that comes with either."""


@dataclass(frozen=True, kw_only=True)
class Shots:
    """The prefix of one dataset."""

    texts: tuple[str, ...]
    """In their order."""
    ids: tuple[int, ...]
    """Of the whole prefix: start token, and each text with the separator behind it."""
    separator: tuple[int, ...]
    """Of the separator."""
    groups: tuple[str, ...] = ()
    """Groups of the texts, where these are rows that are scored as well."""
    too_long: bool = False
    """Whether texts were left out for the context."""


def write_shots(folder: Path, shots: Mapping[str, Shots]) -> None:
    """Write the shots of every dataset as `shots.json`."""
    values = {name: asdict(one) for name, one in shots.items()}
    (folder / SHOTS_FILE).write_text(json.dumps(values, indent=1, sort_keys=True))


def read_shots(folder: Path) -> dict[str, Shots]:
    """Read what `write_shots` wrote."""
    values = json.loads((folder / SHOTS_FILE).read_text())
    return {
        name: Shots(
            texts=tuple(one["texts"]),
            ids=tuple(one["ids"]),
            separator=tuple(one["separator"]),
            groups=tuple(one["groups"]),
            too_long=one["too_long"],
        )
        for name, one in values.items()
    }


def shot_notes(
    need: Prefixed, shots: Mapping[str, Shots], datasets: Collection[str]
) -> tuple[str, ...]:
    """Return what is to be said of datasets with fewer shots than were asked for."""
    notes = []
    for name in sorted(datasets):
        one = shots.get(name)
        if one is None or len(one.texts) < need.shots:
            reason = (
                "more do not fit into half of the context"
                if one is not None and one.too_long
                else "there are no more such rows"
            )
            # Without the number that was asked for, so that a grid says it once.
            count = len(one.texts) if one else 0
            of = f" of {name}" if name else ""
            notes.append(f"at most {count} {need} stand before the texts{of}: {reason}")
    return tuple(notes)


def shots_step(model: "ModelNode", examples: Step, need: Prefixed, detect: DetectSettings) -> Step:
    """Choose the shots that stand before each dataset's texts: held-out rows, or known members."""
    return Step(
        kind="shots",
        label=f"{need.name}-{model.label}",
        function="detect.evidence_steps.prefixed:choose",
        settings={
            "need": [need.known, need.first, need.shots],
            "policy": detect.policy().record(),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=("transformers",),
        reads={
            "examples": Reading(files=(EXAMPLES_FILE,)) if need.known == "members" else HELD_OUT,
            **({"model": _NO_WEIGHTS} if model.step else {}),
        },
        execution=target_execution(model, detect),
    )


def prefixed_step(
    model: "ModelNode", examples: Step, need: Prefixed, detect: DetectSettings
) -> Step:
    """Make the token statistics of every example behind its dataset's shots.

    How many shots were asked for is no part of it: where no more fit, 12 shots cost no second pass.
    """
    return Step(
        kind="statistics",
        label=f"behind-{need.name}-{model.label}",
        function="detect.evidence_steps.prefixed:build",
        settings={
            "behind": "shots",
            "policy": detect.policy().record(),
            **target_settings(model, detect),
        },
        inputs={
            **model.inputs("model"),
            "examples": examples,
            "shots": shots_step(model, examples, need, detect),
        },
        libraries=model_libraries(model, detect),
        reads={"examples": UNSPLIT},
        volatile=(COST_FILE,),
        execution=target_execution(model, detect),
    )


class _PrefixedProvider(Provider[Prefixed]):
    hint = (
        "Shots are held-out rows (contaminants.held_out); known members are those of the split "
        "`tune` (detect.tune_share above 0)."
    )
    leaves = ((SHOTS_FILE, ("texts", "ids", "separator")),)

    def meets(self, need: Prefixed, sources: EvidenceSources) -> bool:
        known = sources.detect.tune_share > 0 if need.known == "members" else sources.held_out
        return bool(known)

    def inputs(self, need: Prefixed, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = prefixed_step(scored.model, sources.examples, need, sources.detect)
        return {f"behind-{need.name}": step, f"shots-{need.name}": step.inputs["shots"]}

    def read(self, needs: Sequence[Prefixed], work: Work) -> None:
        datasets = {row.dataset for row in work.rows}
        found = {}
        for need in needs:
            shots = read_shots(work.inputs[f"shots-{need.name}"])
            found[need.name] = PrefixedStatistics(
                statistics=work.statistics(f"behind-{need.name}"),
                notes=shot_notes(need, shots, datasets),
            )
        work.fields["prefixed"] = found
        work.fields["datasets"] = [row.dataset for row in work.rows]


PREFIXED: Provider[Prefixed] = _PrefixedProvider()
"""The need of shots is met by held-out rows or known members, and the model that is scored."""
