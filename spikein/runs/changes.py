"""What differs between two results of one name: settings, or what they were made from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from inject.errors import InputError
from spikein.config.yaml_document import read_document
from spikein.config.yaml_text import flow_text
from spikein.runs.publication import PublishedRun
from spikein.runs.record import read_record

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
    changes = setting_changes(published.earlier / file, published.folder / file)
    if changes:
        more = len(changes) - MAX_CHANGES
        differences = "; ".join(map(str, changes[:MAX_CHANGES]))
        differences += f"; and {more} more." if more > 0 else "."
    else:
        differing = set(earlier.artifacts) ^ set(published.record.artifacts)
        kinds = sorted({name.partition("/")[0] for name in differing})
        differences = (
            "No setting differs; data, code or libraries do, which made other artifacts of "
            f"{', '.join(kinds)}."
        )
    when = earlier.finished.removesuffix("+00:00").replace("T", " ")
    return [f"Other results than those of {when} UTC ({published.earlier}): {differences}"]


class SettingChange(NamedTuple):
    """A setting that differs between two experiments."""

    key: str
    """Dotted."""
    old: str
    """The value as YAML writes it; `absent` where there is none."""
    new: str

    def __str__(self) -> str:
        return f"{self.key}: {self.old} → {self.new}"


def setting_changes(earlier: Path, now: Path) -> list[SettingChange]:
    """Return the settings that differ between two experiment files."""
    old, new = (dict(_flat(_read(path))) for path in (earlier, now))
    keys = [*new, *(key for key in old if key not in new)]
    return [
        SettingChange(key, old.get(key, _ABSENT), new.get(key, _ABSENT))
        for key in keys
        if old.get(key, _ABSENT) != new.get(key, _ABSENT)
    ]


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
