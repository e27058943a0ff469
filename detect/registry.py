"""The detectors by name, and how a user writes which ones run with which parameters.

`min_k:k=0.2,surp:entropy=2.0:k=40` asks for two detectors with parameters, `all` for every one
with its paper's. A setting's canonical text lists its numbers in the order of their declaration
(`entropy=2.0:k=40`) and its options only where they differ from the default; `-` where that
leaves nothing. A detector's module is imported when the detector is asked for.
"""

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from pydantic import ValidationError

from detect.evidence import Detector
from inject.errors import InputError, did_you_mean
from inject.settings import Settings

ALL = "all"
NO_PARAMETERS = "-"

_MODULES = {
    "loss": "loss",
    "zlib": "zlib_ratio",
    "lowercase": "lowercase",
    "reference": "reference",
    "min_k": "min_k",
    "min_k_plus_plus": "min_k_plus_plus",
    "surp": "surp",
    "dc_pdd": "dc_pdd",
    "lira": "lira",
    "blind": "blind",
}
_ALIASES = {
    "ppl": "loss",
    "perplexity": "loss",
    "lower": "lowercase",
    "ref": "reference",
    "mink": "min_k",
    "mink++": "min_k_plus_plus",
    "min_k++": "min_k_plus_plus",
    "min_k_prob": "min_k",
    "minkprob": "min_k",
    "minkplusplus": "min_k_plus_plus",
    "dcpdd": "dc_pdd",
}


@dataclass(frozen=True, kw_only=True)
class DetectorSetting:
    """A detector with one choice of its parameters."""

    detector: Detector
    parameters: Settings

    @property
    def name(self) -> str:
        """The detector's name."""
        return self.detector.name

    @property
    def text(self) -> str:
        """The canonical text of the parameters, such as `entropy=2.0:k=40`, or `-`."""
        return setting_text(self.parameters)


class TableRow(NamedTuple):
    """One detector as `spikein detectors` lists it."""

    name: str
    summary: str
    parameters: str
    """Defaults, then how many settings are tuned over."""
    needs: str
    source: str


def detector_names() -> tuple[str, ...]:
    """Return the names of all detectors, in the order of tables."""
    return tuple(_MODULES)


def get_detector(name: str) -> Detector:
    """Return a detector by its name or an alias (`ppl`, `min-k`, `mink++` …).

    Raises:
        InputError: for an unknown name, with what was perhaps meant.
    """
    plain = name.strip().lower().replace("-", "_").replace("%", "")
    known = _ALIASES.get(plain, plain)
    if known not in _MODULES:
        raise InputError(
            f"no detector is called {name!r}.{did_you_mean(plain, [*_MODULES, *_ALIASES])}",
            allowed=f"{ALL}, {', '.join(_MODULES)}",
        )
    module = importlib.import_module(f"detect.detectors.{_MODULES[known]}")
    detector: Detector = module.DETECTOR
    return detector


def detector_code(name: str) -> str:
    """Return where a detector's code begins, as `inject.source_digest` names it."""
    return f"detect.detectors.{_MODULES[name]}:DETECTOR"


def parse_detectors(given: str | Iterable[str]) -> list[DetectorSetting]:
    """Return the settings that a user asked for, each once, in the order given.

    Args:
        given: `all`, `min_k:k=0.2,surp:entropy=2.0:k=40`, or a list of such parts.

    Raises:
        InputError: unknown detector or parameter, or a value that does not fit; nothing named.
    """
    parts = [given] if isinstance(given, str) else list(given)
    asked = [part.strip() for text in parts for part in text.split(",") if part.strip()]
    if not asked:
        raise InputError("no detector is named", allowed=f"{ALL}, {', '.join(_MODULES)}")
    settings: dict[tuple[str, str], DetectorSetting] = {}
    for part in asked:
        names = _MODULES if part.lower() == ALL else (part,)
        for name in names:
            setting = _parse(name)
            settings.setdefault((setting.name, setting.text), setting)
    return list(settings.values())


def names_all(given: str | Iterable[str]) -> bool:
    """Return whether `all` was asked for, so that detectors without their needs may be left out."""
    parts = [given] if isinstance(given, str) else given
    return any(part.strip().lower() == ALL for text in parts for part in text.split(","))


def with_grids(settings: Sequence[DetectorSetting]) -> list[DetectorSetting]:
    """Return the settings followed by the rest of each detector's grid, each once."""
    found = {(setting.name, setting.text): setting for setting in settings}
    for setting in settings:
        for parameters in setting.detector.grid:
            other = DetectorSetting(detector=setting.detector, parameters=parameters)
            found.setdefault((other.name, other.text), other)
    return list(found.values())


def default_setting(detector: Detector) -> DetectorSetting:
    """Return the detector with its paper's parameters."""
    return DetectorSetting(detector=detector, parameters=detector.parameters())


def setting_text(parameters: Settings) -> str:
    """Return the canonical text of parameters (see the module's first lines)."""
    parts = []
    for name, field in type(parameters).model_fields.items():
        value = getattr(parameters, name)
        if isinstance(value, Decimal):
            parts.append(f"{name}={value.normalize():f}")
        elif isinstance(value, int | float) or value != field.default:
            parts.append(f"{name}={value}")
    return ":".join(parts) or NO_PARAMETERS


def detector_table() -> list[TableRow]:
    """Return one row a detector for `spikein detectors`."""
    rows = []
    for name in _MODULES:
        detector = get_detector(name)
        text = setting_text(detector.parameters())
        grid = f" (tuned over {len(detector.grid)})" if detector.grid else ""
        needs = ", ".join(
            type(need).__name__.lower()
            + (f" {named}" if (named := getattr(need, "name", "")) else "")
            for need in detector.needs
        )
        rows.append(TableRow(name, detector.summary, text + grid, needs, detector.source))
    return rows


def _parse(part: str) -> DetectorSetting:
    name, *pairs = part.split(":")
    detector = get_detector(name)
    fields = detector.parameters.model_fields
    values: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = (piece.strip() for piece in pair.partition("="))
        if key not in fields:
            raise InputError(
                f"{detector.name} has no parameter {key!r}.{did_you_mean(key, fields)}",
                where=part,
                allowed=", ".join(fields) or "no parameters",
            )
        if not separator or not value:
            raise InputError(f"{key} has no value", where=part, allowed=f"{key}=VALUE")
        if key in values:
            raise InputError(f"{key} is given twice", where=part)
        values[key] = value
    try:
        return DetectorSetting(
            detector=detector, parameters=detector.parameters.model_validate(values)
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"{first['loc'][0]}: {first['msg']} (given {first['input']!r})", where=part
        ) from error
