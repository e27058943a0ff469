"""Descriptions of all detectors, without running them: for `spikein detectors`, docs and the page.

Everything is read from the detectors' declarations, so a table and a detector cannot disagree.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo

from detect.detector import Detector
from detect.detector_settings import setting_text, value_text
from detect.evidence.membership import Sides
from detect.evidence.needs import Need, cost_text
from detect.registry import BUILT_IN, KnownDetector, every_detector, get_detector
from inject.settings import Settings

_MOST_LISTED = 6


class ParameterFacts(NamedTuple):
    """One parameter of a detector."""

    name: str
    default: str
    meaning: str
    choices: tuple[str, ...]
    """Its allowed words; empty for other types."""

    @property
    def text(self) -> str:
        """Its meaning, with its allowed words if the meaning does not name them."""
        unnamed = [word for word in self.choices if f"`{word}`" not in self.meaning]
        return f"{self.meaning} ({', '.join(self.choices)})" if unnamed else self.meaning


@dataclass(frozen=True, kw_only=True)
class DetectorFacts:
    """A detector's declaration, in words."""

    name: str
    title: str
    """Its printed title; its name if it declares none."""
    summary: str
    source: str
    """Paper and equation."""
    origin: str
    """`built in`, a package and its version, or `FILE.py:NAME`."""
    aliases: tuple[str, ...]
    access: str
    """Its access to the target with the described parameters."""
    access_level: int
    """The level as a number: a level includes those below it."""
    needs: tuple[str, ...]
    cost: str
    """Passes of models over each text."""
    depends_on_rows: bool
    """Whether a score depends on the other rows."""
    depends_on_labels: bool
    """Whether a score depends on the membership labels."""
    assumption: str
    """The assumption under which its scores mean membership."""
    setting: str
    """The described parameters, by default the paper's."""
    parameters: tuple[ParameterFacts, ...]
    grid: tuple[str, ...]
    """The tuning grid."""
    grid_text: str
    """The number of these settings, and the values that differ among them, in words; empty if
    none."""
    libraries: tuple[str, ...]
    notes: str
    """Its definition, from the code."""

    @property
    def depends_on(self) -> str:
        """Inputs of a score other than the row and the model, in words."""
        return depends_text(self.depends_on_rows, self.depends_on_labels)

    def plain(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        record = asdict(self)
        record["parameters"] = [parameter._asdict() for parameter in self.parameters]
        return record


def detector_table(files: Sequence[str] = ()) -> tuple[list[DetectorFacts], tuple[str, ...]]:
    """Return one row per detector, and the problems of those that are omitted.

    Args:
        files: `FILE.py:NAME` references, listed after the others.

    Raises:
        InputError: if one of the files cannot be used.
    """
    detectors, warnings = every_detector(files)
    return [describe_detector(detector) for detector in detectors], warnings


def describe_named(name: str) -> DetectorFacts:
    """Return the description of a detector by its name, an alias or `FILE.py:NAME`.

    Raises:
        InputError: unknown name, or a file that cannot be used.
    """
    return describe_detector(get_detector(name))


def describe_detector(entry: KnownDetector, parameters: Settings | None = None) -> DetectorFacts:
    """Return the description of a detector.

    Args:
        entry: the detector.
        parameters: parameters that determine its needs; None for the defaults.
    """
    detector = entry.detector
    values = detector.parameters() if parameters is None else parameters
    needs = detector.needs_with(values)
    access = detector.access_with(values)
    return DetectorFacts(
        name=detector.name,
        title=detector.title.strip() or detector.name,
        summary=detector.summary,
        source=detector.source,
        origin=entry.origin,
        aliases=tuple(detector.aliases),
        access=access.label,
        access_level=int(access),
        needs=tuple(_count_needs(needs)),
        cost=cost_text(needs),
        depends_on_rows=detector.depends_on_rows,
        depends_on_labels=any(isinstance(need, Sides) for need in needs),
        assumption=detector.assumption,
        setting=setting_text(values),
        parameters=tuple(_parameters(detector)),
        grid=tuple(setting_text(setting) for setting in detector.grid),
        grid_text=_grid_text(detector.grid),
        libraries=tuple(detector.libraries),
        notes=_notes(entry),
    )


def depends_text(rows: bool, labels: bool) -> str:
    """Return the further inputs of a score: `other rows, labels`; empty if none."""
    return ", ".join(word for word, true in (("other rows", rows), ("labels", labels)) if true)


def _count_needs(needs: Sequence[Need]) -> list[str]:
    """Return the needs in words; needs of one name once, with their number."""
    counts = Counter(map(str, needs))
    return [name if count == 1 else f"{name} ({count})" for name, count in counts.items()]


def _parameters(detector: Detector) -> list[ParameterFacts]:
    defaults = detector.parameters()
    return [
        ParameterFacts(
            name,
            value_text(getattr(defaults, name)),
            " ".join((field.description or "").split()),
            _choices(field),
        )
        for name, field in detector.parameters.model_fields.items()
    ]


def _choices(field: FieldInfo) -> tuple[str, ...]:
    if get_origin(field.annotation) is not Literal:
        return ()
    return tuple(map(str, get_args(field.annotation)))


def _grid_text(grid: Sequence[Settings]) -> str:
    if not grid:
        return ""
    varied = []
    for name in type(grid[0]).model_fields:
        values = list(dict.fromkeys(value_text(getattr(setting, name)) for setting in grid))
        if len(values) > 1:
            varied.append(f"{name} {_join_values(values)}")
    return f"{len(grid)} settings" + (f": {'; '.join(varied)}" if varied else "")


def _join_values(values: Sequence[str]) -> str:
    """Return values in their order; the middle of a long list is omitted."""
    if len(values) <= _MOST_LISTED:
        return ", ".join(values)
    return f"{values[0]}, {values[1]}, … {values[-1]} ({len(values)} values)"


def _notes(entry: KnownDetector) -> str:
    """Return the text above a built-in detector's code, or that of a plug-in's function."""
    score = entry.detector.score
    if entry.origin == BUILT_IN:
        module = sys.modules.get(entry.code[0])
        return inspect.cleandoc(module.__doc__ or "") if module else ""
    return inspect.getdoc(score) or ""
