"""The costs of the tests: measured by `make durations`, read by `make test-quick`.

`pytest -p tests.costs` runs as always and records each test: seconds (its fixtures included), and
whether it started a process. When a whole run has ended, `tests/not_quick.txt` lists what
`make test-quick` skips in addition to the tests marked `slow`: tests of more than `QUICK_SECONDS`,
tests that share an expensive fixture, and tests that start a process. Under pytest-xdist each
process records its own tests and hands them to the one that started it.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).with_name("not_quick.txt")
QUICK_SECONDS = 0.05
SHARED_SECONDS = 0.5
"""Shared fixtures may take longer unless all tests that use them would be skipped."""
MARK = "thorough"
HEAD = f"""\
# What `make test-quick` skips in addition to tests marked slow; written by `make durations`.
# Tests of more than {QUICK_SECONDS} s on two cores, with seconds; tests that start a process.
"""
_STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})


@dataclass
class Cost:
    """The cost of one test."""

    seconds: float = 0.0
    process: bool = False
    slow: bool = False
    shared: float = 0.0
    """Seconds of the fixtures that it shares, whichever test used them first."""


_costs: dict[str, Cost] = {}
_fixtures: dict[tuple[str, str], float] = {}
_asked: dict[str, list[tuple[str, str]]] = {}
_started: list[str] = []


def function_of(nodeid: str) -> str:
    """A test's name without its parameters."""
    return nodeid.split("[", 1)[0]


def listed(text: str) -> dict[str, str]:
    """The tests that a list names, each with its reason."""
    rows = (line.split("  ", 1) for line in text.splitlines() if line and line[0] != "#")
    return {name: why for why, name in rows}


def list_of(costs: Mapping[str, Cost]) -> str:
    """The list of tests that are not quick; a parametrised test has its highest cost."""
    function_costs: dict[str, Cost] = {}
    for nodeid, cost in costs.items():
        dear = cost.seconds > QUICK_SECONDS or cost.shared > SHARED_SECONDS
        if cost.slow or not (cost.process or dear):
            continue
        total = function_costs.setdefault(function_of(nodeid), Cost())
        total.seconds = max(total.seconds, cost.seconds, cost.shared)
        total.process |= cost.process
    lines = [
        f"{f'{cost.seconds:.2f} s' if cost.seconds > QUICK_SECONDS else 'process'}  {name}"
        for name, cost in sorted(function_costs.items())
    ]
    return HEAD + "".join(f"{line}\n" for line in lines)


def pytest_configure() -> None:
    """Record started processes; an audit hook cannot be removed."""
    sys.addaudithook(lambda event, _: _started.append(event) if event in _STARTS else None)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[object]:
    """Time a fixture that several tests share."""
    began = time.perf_counter()
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            name = (fixturedef.baseid, fixturedef.argname)
            _fixtures[name] = max(_fixtures.get(name, 0.0), time.perf_counter() - began)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Time one test with its fixtures."""
    _started.clear()
    children = os.times()
    began = time.perf_counter()
    result = yield
    now = os.times()
    process = bool(_started) or now.children_user > children.children_user
    _costs[item.nodeid] = Cost(
        seconds=time.perf_counter() - began,
        process=process,
        slow=item.get_closest_marker("slow") is not None,
    )
    fixture_info = getattr(item, "_fixtureinfo", None)
    _asked[item.nodeid] = [
        (definition.baseid, definition.argname)
        for definitions in (fixture_info.name2fixturedefs.values() if fixture_info else ())
        for definition in definitions
    ]
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Merge the records of a process of pytest-xdist."""
    for nodeid, cost in getattr(node, "workeroutput", {}).get("costs", {}).items():
        _costs[nodeid] = Cost(**cost)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the list if the whole suite was run."""
    for nodeid, names in _asked.items():
        _costs[nodeid].shared = sum(_fixtures.get(name, 0.0) for name in names)
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["costs"] = {nodeid: asdict(cost) for nodeid, cost in _costs.items()}
        return
    if session.testscollected != len(_costs) or session.config.option.markexpr:
        return
    LIST.write_text(list_of(_costs), encoding="utf-8")
