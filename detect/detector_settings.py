"""How users specify detectors and their parameters.

`min_k:k=0.2,surp:entropy=2.0:k=40` requests two detectors with parameters, `all` every built-in one
with its paper's, `my_detector.py:score:k=3` one from a file. The name ends at the first colon after
it, and each `KEY=VALUE` after a further colon is a parameter. A setting's canonical text lists its
numbers in the order of their declaration (`entropy=2.0:k=40`), and its options (words, switches,
and numbers marked `OPTION`) only if they differ from the default; `-` if nothing remains.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from detect.detector import Detector
from detect.evidence.needs import Need
from detect.registry import ALL, KnownDetector, detector_names, get_detector
from detect.settings import detector_parts
from inject.errors import InputError, unknown_name
from inject.plugins import file_reference
from inject.settings import Settings

NO_PARAMETERS = "-"
CONTROL = "blind"


@dataclass(frozen=True, kw_only=True)
class DetectorSetting:
    """A detector with one choice of its parameters."""

    known: KnownDetector
    parameters: Settings
    named: bool = True
    """Whether a user named the detector; False if it is included by `all`."""

    @property
    def detector(self) -> Detector:
        """The detector."""
        return self.known.detector

    @property
    def name(self) -> str:
        """The detector's name."""
        return self.detector.name

    @property
    def needs(self) -> tuple[Need, ...]:
        """Its needs."""
        return self.detector.needs_with(self.parameters)

    @property
    def text(self) -> str:
        """The canonical text of the parameters, such as `entropy=2.0:k=40`, or `-`."""
        return setting_text(self.parameters)


def parse_detectors(detectors: str | Iterable[str]) -> list[DetectorSetting]:
    """Return the settings that a user requested, each once, in the order given.

    Args:
        detectors: `all`, `min_k:k=0.2,surp:entropy=2.0:k=40`, or a list of such parts.

    Raises:
        InputError: unknown detector or parameter, or a value that does not fit; nothing named; two
            plug-ins with one name.
    """
    parts = detector_parts(detectors)
    if not parts:
        raise InputError(
            "no detector is named", allowed=", ".join([ALL, *detector_names(), "FILE.py:NAME"])
        )
    settings: dict[tuple[str, str], DetectorSetting] = {}
    origins: dict[str, KnownDetector] = {}
    for part in parts:
        named = part.lower() != ALL
        for name in (part,) if named else detector_names():
            setting = replace(_parse(name), named=named)
            first = origins.setdefault(setting.name, setting.known)
            if (first.digest, first.code) != (setting.known.digest, setting.known.code):
                raise InputError(
                    f"the name {setting.name!r} is already used by {first.origin}",
                    where=setting.known.origin,
                    hint="Give one Detector another `name`, or one file another name.",
                )
            key = setting.name, setting.text
            if named or key not in settings:
                settings[key] = setting
    return list(settings.values())


def with_control(settings: Sequence[DetectorSetting]) -> list[DetectorSetting]:
    """Return the settings, and `blind` if it is not among them.

    It reads no model, costs next to nothing, and shows whether the other detectors'
    results are meaningful.
    """
    has_control = any(setting.name == CONTROL for setting in settings)
    return [*settings, *([] if has_control else parse_detectors(CONTROL))]


def repeated_detectors(detectors: str | Iterable[str]) -> tuple[str, ...]:
    """Return a note if a user names a detector with the same parameters again."""
    parts = [part for part in detector_parts(detectors) if part.lower() != ALL]
    counts = Counter((setting.name, setting.text) for part in parts for setting in [_parse(part)])
    return tuple(
        f"{name} ({text}) is named {count} times, and scored once"
        for (name, text), count in counts.items()
        if count > 1
    )


def with_grids(settings: Sequence[DetectorSetting]) -> list[DetectorSetting]:
    """Return the settings followed by the rest of each detector's grid, each once.

    Detectors included by `all`, and those with the user's own parameters, add only grid settings
    without further needs. A grid over shots or samples costs passes of a model for each setting, so
    it runs only if the user names the detector without parameters.
    """
    by_name = {(setting.name, setting.text): setting for setting in settings}
    for setting in settings:
        bound = not setting.named or setting.parameters != setting.detector.parameters()
        for parameters in setting.detector.grid:
            other = DetectorSetting(known=setting.known, parameters=parameters)
            if not (bound and set(other.needs) - set(setting.needs)):
                by_name.setdefault((other.name, other.text), other)
    return list(by_name.values())


def needs_of(settings: Sequence[DetectorSetting]) -> tuple[Need, ...]:
    """Return the union of the detectors' needs, each once, in their order."""
    return tuple(dict.fromkeys(need for setting in settings for need in setting.needs))


def plugin_digests(settings: Sequence[DetectorSetting]) -> dict[str, str]:
    """Return the digest of each plug-in's source, by the detector's name."""
    return {
        setting.name: setting.known.digest
        for setting in settings
        if setting.known.digest is not None
    }


def setting_text(parameters: Settings) -> str:
    """Return the canonical text of parameters (see the module docstring)."""
    parts = []
    for name, field in type(parameters).model_fields.items():
        value = getattr(parameters, name)
        extra = field.json_schema_extra
        marked = isinstance(extra, dict) and bool(extra.get("option"))
        if (marked or isinstance(value, bool)) and value == field.default:
            continue
        if isinstance(value, Decimal | int | float) or value != field.default:
            parts.append(f"{name}={value_text(value)}")
    return ":".join(parts) or NO_PARAMETERS


def value_text(value: Any) -> str:
    """Return a parameter's value as text: decimal numbers without an exponent."""
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def _parse(part: str) -> DetectorSetting:
    reference = file_reference(part)
    if reference is None:
        name, *pairs = part.split(":")
    else:
        name, pairs = str(reference), reference.rest.split(":") if reference.rest else []
    entry = get_detector(name)
    detector = entry.detector
    fields = detector.parameters.model_fields
    values: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = (piece.strip() for piece in pair.partition("="))
        if key not in fields:
            problem = f"{detector.name} has no parameter {key!r}"
            raise unknown_name(problem, key, fields, where=part, none="no parameters")
        if not separator or not value:
            raise InputError(f"{key} has no value", where=part, allowed=f"{key}=VALUE")
        if key in values:
            raise InputError(f"{key} is given twice", where=part)
        values[key] = value
    try:
        return DetectorSetting(known=entry, parameters=detector.parameters.model_validate(values))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"{first['loc'][0]}: {first['msg']} (given {first['input']!r})", where=part
        ) from error
