"""What differs between two results of one name: settings, or what they were made from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from inject.errors import InputError
from spikein.config.yaml_document import read_document
from spikein.config.yaml_text import flow_text
from spikein.runs.publication import PublishedRun
from spikein.runs.record import RunRecord, read_record

MAX_CHANGES = 8
_ABSENT = "absent"


def result_changes(published: PublishedRun, file: str) -> list[str]:
    """Return how results differ from those of the run before; [] where they do not.

    Args:
        published: the run.
        file: the name of the experiment file in it.
    """
    if published.earlier is None:
        return []
    earlier = read_record(published.earlier)
    differences = describe_changes(
        changed_settings(published.earlier / file, published.folder / file),
        changed_kinds(earlier, published.record),
    )
    when = earlier.finished.removesuffix("+00:00").replace("T", " ")
    return [
        f"Other results than those of {when} UTC ({published.earlier}): {differences}",
    ]


class SettingChange(NamedTuple):
    """A setting that differs between two experiments."""

    key: str
    """Dotted."""
    old: str
    """The value as YAML writes it; `absent` where there is none."""
    new: str

    def __str__(self) -> str:
        return f"{self.key}: {self.old} → {self.new}"


def changed_settings(earlier: Path, now: Path) -> list[str]:
    """Return the settings that differ between two experiment files, as `key: old → new`."""
    return [str(one) for one in setting_changes(earlier, now)]


def setting_changes(earlier: Path, now: Path) -> list[SettingChange]:
    """Return the settings that differ between two experiment files."""
    old, new = (dict(_flat(_read(path))) for path in (earlier, now))
    keys = [*new, *(key for key in old if key not in new)]
    return [
        SettingChange(key, old.get(key, _ABSENT), new.get(key, _ABSENT))
        for key in keys
        if old.get(key, _ABSENT) != new.get(key, _ABSENT)
    ]


def changed_kinds(earlier: RunRecord, now: RunRecord) -> list[str]:
    """Return the kinds of artifacts that differ, in the order of names."""
    differing = set(earlier.artifacts) ^ set(now.artifacts)
    return sorted({name.partition("/")[0] for name in differing})


def describe_changes(settings: list[str], kinds: list[str]) -> str:
    """Return one sentence on what differs.

    Args:
        settings: from `changed_settings`.
        kinds: from `changed_kinds`.
    """
    if not settings:
        return (
            "No setting differs; data, code or libraries do, which made other artifacts of "
            f"{', '.join(kinds)}."
        )
    shown = "; ".join(settings[:MAX_CHANGES])
    more = len(settings) - MAX_CHANGES
    return shown + (f"; and {more} more." if more > 0 else ".")


def _read(path: Path) -> Any:
    try:
        return read_document(path).values
    except InputError:
        return {}


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted keys and values as text; a list is one value unless it holds mappings."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _flat(below, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for number, below in enumerate(value):
            yield from _flat(below, f"{prefix}.{number}")
    else:
        yield prefix, flow_text(value)
