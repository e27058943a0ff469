"""The unlearning methods by name, and their entries in experiment files.

A built-in method is the `METHOD` of a file in `train/unlearn/methods`, imported on demand; its
shipped hyper-parameters are `configs/unlearn/NAME.yaml`. Installed packages offer theirs under
`spikein.unlearning`; `FILE.py:NAME` names one of a file. Either may be an `UnlearningMethod`, or a
plain function from an `UnlearningBatch` to the loss of each text. Torch is not imported.
"""

import importlib
import itertools
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

import train.unlearn.methods
from inject.builtin_files import CONFIGS
from inject.errors import InputError, unknown_name
from inject.plugins import (
    FileReference,
    Group,
    Plugin,
    PluginKind,
    file_reference,
    installed_plugins,
    load_file,
    require_same_source,
)
from inject.settings import plain
from train.unlearn.method import MethodSettings, UnlearningMethod, method_of

RELEARNING = "relearn"
"""Learns the texts again (`train.unlearn.relearning`): only for jobs; it is not a method that
forgets."""
EXPECTED = PluginKind(
    noun="unlearning method",
    accepts=lambda value: (
        isinstance(value, UnlearningMethod) or (callable(value) and not isinstance(value, type))
    ),
    allowed="a spikein.UnlearningMethod, or a function from a spikein.UnlearningBatch to the loss "
    "of each text",
)
_GROUP: Group = "spikein.unlearning"
_OWN_KEYS = ("method", "name", "sweep", "plugin")
_WHERE = "unlearning.methods"
_IN_LABELS = r"[A-Za-z0-9._+]"


@dataclass(frozen=True, kw_only=True)
class KnownMethod:
    """A method, and its origin."""

    method: UnlearningMethod
    code: tuple[str, ...]
    """Modules of this project that it runs, for `Step.code`."""
    digest: str | None = None
    """Digest of a plug-in's source; None for a built-in one."""
    defaults: Mapping[str, Any]
    """Shipped hyper-parameters, which take precedence over those of its settings' class."""


@dataclass(frozen=True, kw_only=True)
class MethodSetting:
    """A method with its hyper-parameters, for one unlearned model."""

    known: KnownMethod
    settings: MethodSettings
    label: str
    """Unique among the entries of an experiment; not part of the identity."""
    reference: str
    """An entry's reference to the method: its name, or `FILE.py:NAME` with the full path."""

    @property
    def method(self) -> UnlearningMethod:
        """The method."""
        return self.known.method

    @property
    def code(self) -> tuple[str, ...]:
        """Modules of this project that it runs, for `Step.code`."""
        return self.known.code

    @property
    def needs_retain(self) -> bool:
        """Whether it requires a retain set."""
        return self.method.needs_retain(self.settings)

    def require_block(self, blocks: int) -> None:
        """Check that a model has the block whose output the loss uses.

        Args:
            blocks: number of blocks of the model.

        Raises:
            InputError: if it has fewer.
        """
        hidden = self.method.hidden_layer
        if hidden is not None and not 0 <= (layer := hidden(self.settings)) < blocks:
            raise InputError(
                f"block {layer} is set, but the model has {blocks}",
                where=f"{_WHERE}: {self.label}.layer",
                allowed=f"0 to {blocks - 1}",
            )

    def identity(self) -> dict[str, Any]:
        """Return the settings that determine the numbers, as plain JSON values."""
        record: dict[str, Any] = {"method": self.method.name, "settings": plain(self.settings)}
        return record if self.known.digest is None else {**record, "plugin": self.known.digest}

    def entry(self) -> dict[str, Any]:
        """Return an entry from which `parse_methods` restores exactly this setting, or raises.

        It may be read in another process, from another folder, and later: a file has its full path,
        and one that was edited since is rejected.
        """
        named = {"method": self.reference, "name": self.label, **plain(self.settings)}
        return named if self.known.digest is None else {**named, "plugin": self.known.digest}


def method_names() -> tuple[str, ...]:
    """Return the names of the built-in methods, sorted, without importing them."""
    modules = pkgutil.iter_modules(train.unlearn.methods.__path__)
    return tuple(sorted(module.name for module in modules))


def find_method(text: str) -> KnownMethod:
    """Return a method by its name or `FILE.py:NAME`.

    Raises:
        InputError: an unknown name, with suggestions; a plug-in that cannot be loaded.
    """
    reference = file_reference(text)
    if reference is not None:
        return _of_file(reference)
    requested = text.strip()
    name = requested.lower().replace("-", "_").replace(" ", "_")
    if name in method_names():
        return _built_in(f"{train.unlearn.methods.__name__}.{name}", _read_defaults(name))
    if requested == RELEARNING:
        return _built_in("train.unlearn.relearning", {})
    installed = installed_plugins(_GROUP)
    if requested in installed:
        return _of_plugin(installed[requested].load(EXPECTED), requested)
    names = [*method_names(), *installed, "FILE.py:NAME"]
    raise unknown_name(f"unknown unlearning method {requested!r}", name, names, where=_WHERE)


def parse_methods(
    entries: Sequence[str | Mapping[str, Any]], *, of_job: bool = False
) -> list[MethodSetting]:
    """Return the settings of entries, those of a sweep one after the other.

    Args:
        entries: one name each, or `{method: NAME, name: label, sweep: {key: [values]},
            **settings}`.
        of_job: whether a job calls: its entries may relearn; experiments set that elsewhere.

    Raises:
        InputError: an unknown method or setting, values that are not allowed, two entries with one
            label, or no entry.
    """
    settings = [setting for entry in entries for setting in _of_entry(entry, of_job)]
    if not settings:
        raise InputError("no method is named", where=_WHERE, allowed=", ".join(method_names()))
    labels = [setting.label for setting in settings]
    duplicate = next((label for label in labels if labels.count(label) > 1), None)
    if duplicate is not None:
        raise InputError(
            f"two entries have the name {duplicate!r}",
            where=_WHERE,
            hint="Give them different `name`s; these distinguish the results.",
        )
    return settings


def _of_entry(entry: str | Mapping[str, Any], of_job: bool) -> Iterator[MethodSetting]:
    fields: dict[str, Any] = {"method": entry} if isinstance(entry, str) else dict(entry)
    reference = fields.get("method")
    if not isinstance(reference, str):
        raise InputError(
            "the entry names no method",
            where=_WHERE,
            allowed="a name, or {method: NAME, name: label, sweep: {key: [values]}, …settings}",
        )
    if reference.strip().lower() == RELEARNING and not of_job:
        raise InputError(
            f"{RELEARNING} is not an unlearning method: it trains on the forgotten texts again",
            where=_WHERE,
            allowed=", ".join([*method_names(), *installed_plugins(_GROUP), "FILE.py:NAME"]),
            hint="Use unlearning.relearn, which relearns every model that is made to forget.",
        )
    registered = find_method(reference)
    place = f"{_WHERE}: {fields.get('name') or reference}"
    name = _name(registered.method.name if fields.get("name") is None else fields["name"])
    require_same_source(registered.digest, fields.get("plugin", registered.digest), label=reference)
    own = {key: value for key, value in fields.items() if key not in _OWN_KEYS}
    for point in _points(fields.get("sweep"), place):
        settings = _validate(registered, {**own, **dict(point)}, place)
        yield MethodSetting(
            known=registered,
            settings=settings,
            label=_label(name, point),
            reference=_resolve_reference(reference),
        )


def _resolve_reference(reference: str) -> str:
    """Return a reference to a file with its full path; a name unchanged."""
    file = file_reference(reference)
    if file is None:
        return reference
    return f"{Path(file.file).expanduser().resolve()}:{file.name}"


def _points(sweep: Any, place: str) -> list[tuple[tuple[str, Any], ...]]:
    """Return the points of a sweep: every value of each key with every value of the others."""
    if sweep is None:
        return [()]
    if not isinstance(sweep, Mapping) or not all(
        isinstance(values, list | tuple) and values for values in sweep.values()
    ):
        raise InputError(
            "a sweep is a list of values for each key",
            where=f"{place}.sweep",
            allowed="{lr: [1e-5, 1e-4], beta: [0.1, 1.0]}",
        )
    axes = [[(str(key), value) for value in values] for key, values in sweep.items()]
    return list(itertools.product(*axes))


def _name(name: Any) -> str:
    """Return the name of an entry, which must contain characters of labels.

    Raises:
        InputError: if it is not a text, or has none of the characters of labels.
    """
    if isinstance(name, str) and re.search(_IN_LABELS, name):
        return name
    raise InputError(
        f"{name!r} is not a name that distinguishes results",
        where=f"{_WHERE}.name",
        allowed="a text with at least one of A-Z a-z 0-9 . _ +",
    )


def _label(name: str, point: Sequence[tuple[str, Any]]) -> str:
    parts = [name, *(f"{key}-{_format_value(value)}" for key, value in point)]
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", "-".join(parts)).strip("-")


def _format_value(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _validate(registered: KnownMethod, values: Mapping[str, Any], location: str) -> MethodSettings:
    allowed = registered.method.settings.model_fields
    unknown = next((key for key in values if key not in allowed), None)
    if unknown is not None:
        problem = f"the method {registered.method.name} has no setting {unknown!r}"
        raise unknown_name(problem, str(unknown), allowed, where=location)
    try:
        return registered.method.settings.model_validate({**registered.defaults, **values})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(
            f"{problem} (given: {first['input']!r})" if place else problem,
            where=f"{location}.{place}" if place else location,
        ) from None


def _built_in(module: str, defaults: Mapping[str, Any]) -> KnownMethod:
    return KnownMethod(
        method=importlib.import_module(module).METHOD,
        code=(module,),
        defaults=defaults,
    )


@cache
def _read_defaults(name: str) -> Mapping[str, Any]:
    path = CONFIGS / "unlearn" / f"{name}.yaml"
    return YAML(typ="safe").load(path.read_text(encoding="utf-8")) or {}


def _of_file(reference: FileReference) -> KnownMethod:
    plugin = load_file(reference._replace(rest=""), EXPECTED)
    stem = re.sub(r"[^A-Za-z0-9_+-]", "_", PurePath(reference.file).stem)
    registered = _of_plugin(plugin, None, function_name=f"{stem}.{plugin.name}")
    if registered.method.name in (*method_names(), *installed_plugins(_GROUP)):
        raise InputError(
            f"the name {registered.method.name!r} is already used",
            where=plugin.origin,
            hint="Give the method another `name`.",
        )
    return registered


def _of_plugin(plugin: Plugin, name: str | None, *, function_name: str = "") -> KnownMethod:
    value: Any = plugin.value
    if not isinstance(value, UnlearningMethod):
        value = method_of(value, name or function_name)
    elif name is not None:
        value = replace(value, name=name)
    return KnownMethod(method=value, code=plugin.code, digest=plugin.digest, defaults={})
