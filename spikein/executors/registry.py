"""Executors by name: built-in ones, those of installed packages, and those in the user's files.

Installed packages offer executors under the entry point group `spikein.executors`; `FILE.py:NAME`
names one in a file. The source of an executor enters no identity: it determines where steps are
built, not what they write.
"""

import inspect
from collections.abc import Callable
from typing import Final, NamedTuple

from inject.errors import InputError, unknown_name
from inject.plugins import Plugin, PluginKind, find_plugin, installed_plugins, load_installed
from spikein.config.executor_settings import AnyExecutor, InProcessSettings
from spikein.executors.graph_run import InProcess
from spikein.executors.pools.local import Local
from spikein.executors.pools.ray_cluster import Ray
from spikein.executors.pools.slurm import Slurm
from spikein.executors.protocol import Executor

_BY_POOL: dict[str, Callable[..., Executor]] = {"local": Local, "ray": Ray, "slurm": Slurm}
_OWN: dict[str, Callable[[], Executor]] = {"in-process": InProcess, **_BY_POOL}
_GROUP: Final = "spikein.executors"
_EXPECTED = PluginKind(
    noun="executor",
    accepts=lambda value: callable(getattr(value, "run", None)),
    allowed="an object, or a class without constructor arguments, with a method "
    "run(graph, store, progress)",
)


class ExecutorRow(NamedTuple):
    """One executor in a list."""

    name: str
    description: str
    """The first line of its docstring."""
    origin: str
    """`spikein`, or a distribution and its version."""


def get_executor(name: str) -> Executor:
    """Return the executor `name`: built in, installed, or `FILE.py:NAME`.

    Raises:
        InputError: for an unknown name, one that cannot be loaded or created, or that is not an
            executor.
    """
    if name in _OWN:
        return _OWN[name]()
    if plugin := find_plugin(name, _GROUP, _EXPECTED, hint="An executor takes no parameters."):
        return _make_executor(plugin)
    names = [*_OWN, *installed_plugins(_GROUP)]
    allowed = f"{', '.join(names)}, or FILE.py:NAME"
    raise unknown_name(f"no executor is called {name!r}", name, names, allowed=allowed)


def executor_of(settings: AnyExecutor) -> Executor:
    """Return the executor that an experiment sets under `executor`."""
    if isinstance(settings, InProcessSettings):
        return InProcess()
    return _BY_POOL[settings.kind](settings)


def list_executors() -> tuple[list[ExecutorRow], tuple[str, ...]]:
    """Return all executors by name, and warnings; imports the packages that offer some."""
    taken = dict.fromkeys(_OWN, "by spikein itself")
    plugins, warnings = load_installed(_GROUP, _EXPECTED, taken=taken)
    rows = [ExecutorRow(name, _first_line(make), "spikein") for name, make in _OWN.items()]
    rows += [
        ExecutorRow(name, _first_line(plugin.value), plugin.origin)
        for name, plugin in plugins.items()
    ]
    return rows, warnings


def _make_executor(plugin: Plugin) -> Executor:
    """Return the executor of a plug-in: the object itself, or a new instance of a class.

    Raises:
        InputError: for a class that needs arguments, or a `run` with other parameters.
    """
    executor = plugin.value
    if isinstance(executor, type):
        try:
            executor = executor()
        except Exception as error:
            raise InputError(
                f"cannot be created without arguments: {type(error).__name__}: {error}",
                where=plugin.origin,
                allowed=_EXPECTED.allowed,
            ) from error
    try:
        inspect.signature(executor.run).bind(None, None, None)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"its method run does not take graph, store and progress: {error}",
            where=plugin.origin,
            allowed=_EXPECTED.allowed,
        ) from None
    return executor


def _first_line(value: object) -> str:
    """Return the first docstring line of an executor; empty if it has none."""
    described = value if isinstance(value, type) else type(value)
    return (described.__doc__ or "").strip().partition("\n")[0]
