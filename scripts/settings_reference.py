"""Writes the reference part of docs/experiment-file.md from the settings themselves.

    python -m scripts.settings_reference

Every field of an experiment file carries its sentence in the code; this puts them into one
list per section, so that the documentation cannot drift (a test compares).
"""

from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from analysis.settings import AnalysisSettings
from analysis.studies.claims import Claim, Effect
from detect.settings import DetectSettings
from inject.corpus.background.docstrings import DocstringsSource
from inject.corpus.background.files import FilesSource
from inject.corpus.background.hub import HubSource
from inject.examples.contaminant import Contaminant, PoolSettings
from inject.examples.datasets.registry import built_in_names, get_dataset
from inject.examples.twin_membership import Twins
from inject.overlap.settings import OverlapSettings
from inject.plan.settings import Copies, Placement
from spikein.config.executor_settings import (
    LocalSettings,
    RaySettings,
    SlurmSettings,
    StepRequest,
)
from spikein.config.schema import CorpusSettings, Experiment
from spikein.scoring.options import ScoredServer, ScoringOptions
from train.execution import ExecutionSettings
from train.settings import (
    BaseSettings,
    LoraSettings,
    ModelSettings,
    TokenizerTraining,
    TrainSettings,
)

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "experiment-file.md"
MARK = "<!-- from here on written by python -m scripts.settings_reference -->\n"

SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("The file", Experiment),
    ("model", ModelSettings),
    ("model.tokenizer", TokenizerTraining),
    ("corpus", CorpusSettings),
    ("corpus.sources, kind: docstrings", DocstringsSource),
    ("corpus.sources, kind: files", FilesSource),
    ("corpus.sources, kind: hub", HubSource),
    ("contaminants", Contaminant),
    ("copies", Copies),
    ("placement", Placement),
    ("pool", PoolSettings),
    ("audit", OverlapSettings),
    ("twins", Twins),
    ("train", TrainSettings),
    ("train.lora", LoraSettings),
    ("base", BaseSettings),
    ("training_runtime", ExecutionSettings),
    ("executor, kind: local", LocalSettings),
    ("executor, kind: ray", RaySettings),
    ("executor, kind: slurm", SlurmSettings),
    ("executor.steps", StepRequest),
    ("detect", DetectSettings),
    ("analysis", AnalysisSettings),
    ("claims.NAME", Claim),
    ("claims.NAME.effect", Effect),
    ("spikein detect KEY=VALUE", ScoringOptions),
    ("spikein detect server.KEY=VALUE", ScoredServer),
)
_EXPLAINED = {title for title, _ in SECTIONS}
"""Keys of the file that have a section."""
_AS_IN: dict[str, tuple[str, type[BaseModel]]] = {
    "base": ("train", TrainSettings),
    "executor.steps": ("executor, kind: slurm", SlurmSettings),
    "spikein detect KEY=VALUE": ("model", ModelSettings),
}
"""Sections whose keys mean what keys of the same name mean in another section."""


def reference() -> str:
    """Return the reference part as Markdown."""
    first: dict[str, str] = {}
    sections = [_section(title, settings, first) for title, settings in SECTIONS]
    return "\n".join([*sections, _dataset_options()])


def _dataset_options() -> str:
    """Return one section with the options of all built-in datasets."""
    datasets: dict[str, list[str]] = {}
    for dataset in built_in_names():
        for name, field in get_dataset(dataset).options.model_fields.items():
            datasets.setdefault(_line(name, field), []).append(f"`{dataset}`")
    lines = [f"- {', '.join(names)}: {line}" for line, names in datasets.items()]
    return "\n".join(["### contaminants.options", "", *lines, ""])


def document(existing: str) -> str:
    """Return the whole document: the text before the mark, then the reference."""
    return existing.split(MARK)[0] + MARK + "\n" + reference()


def _section(title: str, settings: type[BaseModel], first: dict[str, str]) -> str:
    """Return one line per key; keys that an earlier section explains share one line.

    Args:
        title: of the section.
        settings: whose keys it has.
        first: each line so far, with its section; grows.
    """
    elsewhere, other = _AS_IN.get(title, ("", None))
    lines, same, alike = [], list[str](), list[str]()
    for name, field in settings.model_fields.items():
        if name == "kind" or (settings is Experiment and name in _EXPLAINED):
            continue
        if other is not None and name in other.model_fields:
            same.append(_head(name, field))
            continue
        line = f"- {_line(name, field)}"
        if first.setdefault(line, title) == title:
            lines.append(line)
        else:
            alike.append(f"`{name}`")
    if same:
        lines.append(f"- As in `{elsewhere}`: {', '.join(same)}")
    if alike:
        lines.append(f"- As above: {', '.join(alike)}")
    return "\n".join([f"### {title}", "", *lines, ""])


def _line(name: str, field: FieldInfo) -> str:
    meaning = " ".join((field.description or "").split())
    choices = _choices(field.annotation)
    if any(choice not in meaning for choice in choices):
        meaning += f" ({', '.join(choices)})"
    return f"{_head(name, field)}: {meaning}"


def _head(name: str, field: FieldInfo) -> str:
    """Return a key with its default."""
    default = _default(field)
    return f"`{name}`{f' ({default})' if default else ''}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return ""
    if value is None or value in ("", {}):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{value}`"


def _choices(annotation: Any) -> list[str]:
    """Return the words that a field may take, if it takes words from a list."""
    origin = get_origin(annotation)
    if origin is Literal:
        return [f"`{value}`" for value in get_args(annotation)]
    if origin in (Union, UnionType) and bool in get_args(annotation):
        words = [choice for part in get_args(annotation) for choice in _choices(part)]
        return ["`true`", "`false`", *words] if words else []
    if origin in (Union, UnionType, Annotated):
        return [choice for part in get_args(annotation) for choice in _choices(part)]
    return []


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written: {DOCUMENT}")
