"""Question, cost and requirements of each experiment that comes with spikein.

The head of its file has the question, the replicated paper and the time, as `# Question: …`;
arms, tokens, model, GPU-hours and data are computed from the file. Only local files are read,
without a network. Cost: 0.1 s per preset, for its checks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from inject.builtin_files import AUDITS, CONFIGS, EXPERIMENTS
from inject.errors import unknown_name
from inject.examples.datasets.registry import get_dataset
from inject.hub.address import fits
from inject.public_data.catalogue import data_sets
from spikein.config.load import read_experiment
from spikein.config.schema import Experiment
from spikein.estimates.training import Hardware, training_estimates

MINUTES_ARE = "two idle cores (45 GFLOP/s), at most"
GPU_HOURS_ARE = "training only, on H100s at 40 % of their peak"

_HEAD = re.compile(r"(?m)^# (Question|Replicates|Takes): (.+)$")


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One shipped experiment, or one shipped unlearning audit."""

    name: str
    folder: str
    """Folder below `configs`; `` for the experiments that need nothing."""
    question: str
    replicates: str
    time: str
    """Time on two idle cores; `` if it cannot run on them."""
    gpu_hours: float | None = None
    arms: int | None = None
    seeds: int | None = None
    tokens: int | None = None
    """Training tokens of all models together."""
    model: str = ""
    data: tuple[str, ...] = ()
    """Datasets that `spikein data fetch` knows, for a preset that reads `data=DIR`; ids of the
    hub for one that reads it itself."""
    fetched: bool = False
    """Whether `data` are names for `spikein data fetch`."""

    def commands(self) -> tuple[str, ...]:
        """Return the commands that run it."""
        if self.name in AUDITS.files():
            return (f"spikein audit-unlearning --config {self.name} books=DIR --out {self.name}",)
        if not self.fetched:
            planned = () if self.gpu_hours is None else (f"spikein plan {self.name}",)
            return (*planned, f"spikein run {self.name}")
        terms = [
            data_set.name
            for data_set in data_sets()
            if data_set.name in self.data and data_set.terms
        ]
        accept = "".join(f" --accept-terms {name}" for name in terms)
        return (
            f"spikein data fetch {self.name} --to data{accept}",
            f"spikein run {self.name} data=data",
        )


def presets(names: Sequence[str] = ()) -> list[Preset]:
    """Return presets by name; all of them, in the order of their folders, without a name.

    Raises:
        InputError: for an unknown name.
    """
    files = _files()
    for name in names:
        if name not in files:
            raise unknown_name("no preset has this name", name, sorted(files), where=name)
    folders = ["", *EXPERIMENTS.folders]
    ordered = sorted(names or files, key=lambda name: (folders.index(_folder(files[name])), name))
    return [_preset(name, files[name]) for name in ordered]


def data_of(name: str) -> tuple[str, ...]:
    """Return the names of the datasets that a preset reads below `data=DIR`."""
    text = EXPERIMENTS.files()[name].read_text(encoding="utf-8")
    patterns = re.findall(r'"\$\{data\}/([^"]+)"', text)
    return tuple(
        data_set.name
        for data_set in data_sets()
        if any(fits(file.path, pattern) for file in data_set.files for pattern in patterns)
    )


def head_of(name: str) -> str:
    """Return the head of a preset's file, without comment signs."""
    lines = _files()[name].read_text(encoding="utf-8").splitlines()
    head = takewhile(lambda line: line.startswith("#"), lines)
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in head)


def _files() -> dict[str, Path]:
    return {**EXPERIMENTS.files(), **AUDITS.files()}


def _preset(name: str, path: Path) -> Preset:
    text = path.read_text(encoding="utf-8")
    head = dict(_HEAD.findall(text))
    facts: dict[str, Any] = {
        "name": name,
        "folder": _folder(path),
        "question": head["Question"],
        "replicates": head.get("Replicates", ""),
        "time": head.get("Takes", ""),
    }
    if name in AUDITS.files():
        return Preset(**facts)
    checked = read_experiment(name)
    experiment = checked.experiment
    estimates = training_estimates(checked.arms, Hardware())
    costs = [(estimate.runs, estimate.cost) for estimate in estimates]
    on_gpus = facts["folder"] in ("paper", "gpu") and all(cost for _, cost in costs)
    hours = sum(runs * cost.gpu_seconds for runs, cost in costs if cost) / 3600
    fetched = data_of(name)
    return Preset(
        **facts,
        gpu_hours=hours if on_gpus else None,
        arms=len(checked.arms),
        seeds=len(experiment.seeds),
        tokens=sum(estimate.runs * estimate.tokens for estimate in estimates),
        model=experiment.model.pretrained or experiment.model.shape or "",
        data=fetched or _hub_ids(experiment),
        fetched=bool(fetched),
    )


def _hub_ids(experiment: Experiment) -> tuple[str, ...]:
    """Return the datasets of the hub that an experiment reads itself."""
    ids = [source.id for source in experiment.corpus.sources if source.kind == "hub"]
    for contaminant in experiment.contaminants:
        if contaminant.path is None:
            ids += get_dataset(contaminant.dataset).hub_ids()
    return tuple(dict.fromkeys(ids))


def _folder(path: Path) -> str:
    folder = path.parent.relative_to(CONFIGS).as_posix()
    return "" if folder == "." else folder
