"""A step: one artifact, the function that makes it, and the function's inputs.

A step is data. Its function is named (`inject.plan.step:build`) and found by that name wherever it
runs; its settings and its execution are plain JSON, so a graph is a file that a person can read. A
step keeps its identity (kind, function, settings, inputs, code, libraries) apart from its execution
(paths, device, workers, batch size …), which never enters the digest. Two steps with one digest are
one step. The code's part is the digest of the modules that the function's module imports
(`inject.source_digest`), and of those that are chosen by name.
"""

import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from inject.digest import digest, plain_values
from inject.errors import InputError
from inject.source_digest import source_digest

MANIFEST = "manifest.json"
"""The file of an artifact that no step writes."""


class Report(Protocol):
    """How a step reports its progress."""

    def __call__(
        self, done: float, total: float | None = None, *, unit: str = "", note: str = ""
    ) -> None:
        """Report that `done` of `total` units are finished; `note` is a short text."""
        ...


@dataclass(frozen=True, kw_only=True)
class StepContext:
    """The argument of a step's function."""

    out: Path
    """An empty folder; everything written below it becomes the artifact."""
    inputs: Mapping[str, Path]
    """The folders of the finished inputs by name."""
    settings: Mapping[str, Any]
    """Of the step."""
    execution: Mapping[str, Any]
    """Of the step."""
    unfinished: Path
    """A folder for parts that a killed build leaves and the next one reuses. It is
    created on demand, on the file system of `out`, and is removed when the artifact is
    published; nothing in it may affect the content."""
    report: Report
    protected: bool = False
    """The artifact contains texts that must not be shared, or is built from such."""
    notice: Callable[[str], None] = lambda _text: None
    """Called with a message for the user, such as that a restart checkpoint was damaged."""


class InputProjection(NamedTuple):
    """The part of an input that a step reads."""

    facet: str | None = None
    """A part that the input's step names in `Step.facets`; None for its files."""
    files: tuple[str, ...] = ("*",)
    """Patterns of the files that are opened; `*` also matches `/`."""


class ContentRead(NamedTuple):
    """The part of an input that a step read, with its digest."""

    digest: str
    facet: str | None
    files: tuple[str, ...]

    @property
    def reading(self) -> InputProjection:
        """The part that was read."""
        return InputProjection(self.facet, self.files)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The expected cost of a step, for `spikein plan`; None if unknown."""

    tokens: int | None = None
    """Tokens passed through a model."""
    flops: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    seconds: float | None = None
    """On this machine."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Inputs that determine an artifact's content, and nothing else."""

    kind: str
    function: str
    settings: Mapping[str, Any]
    """Plain JSON values; anything else raises `TypeError` when the digest is taken."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Input name to the digest of its recipe."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Distribution name to version."""
    code: str = ""
    """Digest of the code that decides the content (`inject.source_digest`)."""

    def identity(self) -> dict[str, Any]:
        """Return the values that are hashed."""
        return {
            "kind": self.kind,
            "function": self.function,
            "settings": dict(self.settings),
            "inputs": dict(self.inputs),
            "libraries": dict(self.libraries),
            "code": self.code,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the identity."""
        return digest(self.identity())

    def content_key(self, read: Mapping[str, ContentRead]) -> str:
        """Return the digest of everything that determines the content: inputs by the parts read.

        Two recipes of one key have the same content, although their inputs' recipes differ.
        """
        inputs = {name: [projection.facet, projection.digest] for name, projection in read.items()}
        return digest({**self.identity(), "inputs": inputs})


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One node of a graph: makes one artifact out of others."""

    kind: str
    """Folder of the store, such as `corpus`."""
    label: str
    """For people: part of the folder's name."""
    function: str
    """The function that makes the artifact, `module:name`: a function of a `StepContext`, at the
    top of its module, that writes the artifact's files and touches nothing else."""
    settings: Mapping[str, Any]
    """Everything else that affects the content, as plain JSON values."""
    inputs: Mapping[str, "Step"] = field(default_factory=dict)
    code: tuple[str, ...] = ()
    """Modules that the function finds by a name, in addition to those that it imports: `module` or
    `module:name` each."""
    libraries: tuple[str, ...] = ()
    """Libraries whose version affects the content: distributions such as `torch`, and parts that
    Python brings (`RUNTIME`)."""
    volatile: tuple[str, ...] = ()
    """Patterns of files that differ from build to build."""
    protected: bool = False
    """The artifact contains texts that must not be shared; so does every artifact that is built
    from it."""
    execution: Mapping[str, Any] = field(default_factory=dict)
    """The place and manner of execution, as plain JSON values; never part of the identity."""
    processes: int = 1
    """Number of processes that it starts on this machine, which share its threads."""
    cost: Cost | None = None
    reads: Mapping[str, InputProjection] = field(default_factory=dict)
    """Input name to the part of it that the function reads, where that is not everything: when only
    the rest changes, the artifact is not built again."""
    facets: Mapping[str, str] = field(default_factory=dict)
    """Parts of the content that later steps may read separately: name to the function,
    `module:name`, from the artifact's folder to the digest of the part."""

    @cached_property
    def recipe(self) -> Recipe:
        """The identity."""
        return Recipe(
            kind=self.kind,
            function=self.function,
            settings=self.settings,
            inputs={name: step.digest for name, step in self.inputs.items()},
            libraries=library_versions(self.libraries),
            code=source_digest(self.roots),
        )

    @property
    def roots(self) -> tuple[str, ...]:
        """The entry modules of the code that determines the content, for `inject.source_digest`."""
        return tuple(sorted({self.function, *self.code}))

    @property
    def digest(self) -> str:
        """The digest of the recipe."""
        return self.recipe.digest

    def json_values(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return settings and execution as JSON holds them: the same in every process.

        Raises:
            TypeError: a value is not plain JSON; names the step and the key.
        """
        return (
            plain_values(self.settings, f"the step {self.name}: settings"),
            plain_values(self.execution, f"the step {self.name}: execution"),
        )

    @property
    def name(self) -> str:
        """`kind label`, for messages."""
        return f"{self.kind} {self.label}"


class StepGroup(NamedTuple):
    """The input on one model for a step that compares many."""

    values: Mapping[str, Any]
    """The settings of the model, such as seed and role; plain JSON values."""
    steps: Mapping[str, Step | None]
    """By name; None values are omitted."""


def axis_pairs(axes: Mapping[str, str]) -> list[list[str]]:
    """Return the swept axes as `StepGroup.values` hold them: the order of a mapping may be lost."""
    return [list(pair) for pair in axes.items()]


def numbered_inputs(groups: Sequence[Mapping[str, Step | None]]) -> dict[str, Step]:
    """Return the inputs of a step that compares many models: a group of steps for each of them.

    Args:
        groups: for each model its steps by name; None values are omitted.

    Returns:
        The steps by numbered names such as `0003-scores`.
    """
    return {
        _number_name(number, name): step
        for number, group in enumerate(groups)
        for name, step in group.items()
        if step is not None
    }


def numbered_folders(inputs: Mapping[str, Path], number: int) -> dict[str, Path]:
    """Return the folders of one group of `numbered_inputs`, by the names given there."""
    start = _number_name(number, "")
    return {
        name.removeprefix(start): path for name, path in inputs.items() if name.startswith(start)
    }


def comparing_step(
    function: str,
    groups: Sequence[StepGroup],
    *,
    kind: str,
    label: str,
    settings: Mapping[str, Any],
    reading: InputProjection,
    libraries: tuple[str, ...],
    code: tuple[str, ...] = (),
) -> Step:
    """Return a step that compares many models, one group each (`compared_models` reads them).

    Args:
        function: as in `Step`, like kind, label, libraries and code.
        groups: their values name `axes` (pairs) and the function's other inputs on a model.
        settings: of all models.
        reading: the part read of the steps named `model`.
    """
    inputs = numbered_inputs([group.steps for group in groups])
    return Step(
        kind=kind,
        label=label,
        function=function,
        settings={**settings, "arms": [dict(group.values) for group in groups]},
        inputs=inputs,
        libraries=libraries,
        code=code,
        reads=numbered_reads(inputs, "model", reading),
    )


def compared_models(
    models: Sequence[Mapping[str, Any]], inputs: Mapping[str, Path]
) -> Iterator[tuple[dict[str, Any], dict[str, Path]]]:
    """Yield the values of each model of `comparing_step`, axes as a mapping, and its folders.

    Args:
        models: the step's setting `arms`.
        inputs: the folders of its inputs.
    """
    for number, values in enumerate(models):
        yield {**values, "axes": dict(values["axes"])}, numbered_folders(inputs, number)


def numbered_reads(
    inputs: Mapping[str, Step], name: str, reading: InputProjection
) -> dict[str, InputProjection]:
    """Return, for the inputs of one name in all groups, the part that a step reads."""
    return {full: reading for full in inputs if full.partition("-")[2] == name}


def _number_name(number: int, name: str) -> str:
    return f"{number:04d}-{name}"


def find_function(name: str) -> Callable[..., Any]:
    """Return the function that `module:name` names, its module imported."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


RUNTIME: Mapping[str, Callable[[], str]] = {
    "unicode": lambda: unicodedata.unidata_version,
    "zlib": lambda: zlib.ZLIB_RUNTIME_VERSION,
}
"""Python's parts that affect numbers: its tables of letters, words and capitals, and the
library that it compresses with."""

distribution_version = cache(version)
"""Looking a version up parses the distribution's metadata, and every step needs several."""


def library_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the version of each installed distribution, without a local part such as `+cpu`.

    Args:
        names: of distributions, or of `RUNTIME`.

    Raises:
        InputError: when one is not installed.
    """
    versions = {}
    for name in names:
        try:
            version = RUNTIME[name]() if name in RUNTIME else distribution_version(name)
            versions[name] = version.partition("+")[0]
        except PackageNotFoundError:
            raise InputError(
                f"the library {name} is not installed", hint=f"Install it: pip install {name}"
            ) from None
    return versions
