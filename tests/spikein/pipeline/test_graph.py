"""Identity of steps, order, planning, and the in-process executor."""

import errno
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject.errors import InputError
from spikein.executors import RunReport, get_executor
from spikein.executors.in_process import InProcess
from spikein.pipeline.graph import Graph, Step, StepContext, plan
from spikein.progress import Silent
from spikein.store.store import Store


class Recorder(Silent):
    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def run_started(self, steps) -> None:
        pass

    def step_started(self, name: str, *, number: int, total: int) -> None:
        self.events.append(("started", name, number, total))

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        self.events.append(("advanced", name, done, total, unit, note))

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        self.events.append(("finished", name, built))


def step(label: str, calls: list[str] | None = None, /, *, value: object = None, **more) -> Step:
    inputs = {key: more.pop(key) for key in list(more) if isinstance(more[key], Step)}

    def build(context: StepContext) -> None:
        if calls is not None:
            calls.append(label)
        read = "".join(
            (context.inputs[name] / "text").read_text() for name in sorted(context.inputs)
        )
        context.report(1, 2, unit="things", note="n")
        (context.out / "text").write_text(f"({label}{read})")

    settings = {"label": label, "value": value}
    return Step(kind="k", label=label, settings=settings, inputs=inputs, build=build, **more)


def diamond(calls: list[str] | None = None) -> tuple[Step, ...]:
    a = step("a", calls)
    b, c = step("b", calls, x=a), step("c", calls, x=a)
    return a, b, c, step("d", calls, left=b, right=c)


def run(goals: tuple[Step, ...], root: Path, progress: Silent | None = None) -> RunReport:
    return InProcess().run(Graph(goals=goals), Store(root), progress or Silent())


def test_execution_label_cost_and_code_do_not_enter_the_identity():
    one = Step(kind="k", label="l", settings={"a": 1}, build=print, execution={"workers": 1})
    other = Step(
        kind="k",
        label="m",
        settings={"a": 1},
        build=repr,
        execution={"workers": 8},
        volatile=("log",),
        protected=True,
    )
    assert one.digest == other.digest


def test_a_changed_input_changes_everything_above():
    a = step("a", value=2)
    b, c = step("b", x=a), step("c", x=a)
    changed = step("d", left=b, right=c)
    assert changed.digest != diamond()[3].digest
    assert changed.digest != step("d", left=c, right=b).digest
    assert step("b", x=a).digest != step("b", y=a).digest


def test_libraries_enter_by_version(monkeypatch):
    import inject.step as module

    plain = Step(kind="k", label="l", settings={}, build=print)
    monkeypatch.setattr(module, "distribution_version", lambda name: "1.2+cpu")
    cpu = Step(kind="k", label="l", settings={}, build=print, libraries=("torch",))
    assert cpu.recipe.libraries == {"torch": "1.2"}
    monkeypatch.setattr(module, "distribution_version", lambda name: "1.2+cu130")
    gpu = Step(kind="k", label="l", settings={}, build=print, libraries=("torch",))
    assert plain.digest != cpu.digest == gpu.digest


def test_a_library_that_is_absent_is_named():
    absent = Step(kind="k", label="l", settings={}, build=print, libraries=("no-such-library",))
    with pytest.raises(InputError, match="no-such-library is not installed"):
        _ = absent.digest


@given(st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=12), st.randoms())
def test_the_order_puts_inputs_first_and_names_each_step_once(edges, random):
    nodes: list[Step] = []
    for index, chosen in enumerate(edges):
        inputs = {f"i{i}": nodes[one] for i, one in enumerate(chosen) if one < len(nodes)}
        nodes.append(step(str(index), **inputs))
    goals = tuple(random.sample(nodes, k=random.randint(1, len(nodes))))
    steps = Graph(goals=goals).steps
    place = {one.digest: index for index, one in enumerate(steps)}
    assert len(place) == len(steps)
    assert {goal.digest for goal in goals} <= set(place)
    for one in steps:
        assert all(place[given.digest] < place[one.digest] for given in one.inputs.values())


def test_equal_steps_are_one_step(tmp_path):
    calls: list[str] = []
    goals = (*diamond(calls), *diamond(calls))
    report = run(goals, tmp_path)
    assert calls == ["a", "b", "c", "d"]
    assert (report.artifact(goals[-1]) / "text").read_text() == "(d(b(a))(c(a)))"


def test_the_second_run_builds_nothing(tmp_path):
    calls: list[str] = []
    first = run(diamond(calls), tmp_path)
    again = run(diamond(calls), tmp_path)
    assert len(calls) == 4
    assert (first.built, again.built) == (4, 0)
    assert [one.artifact for one in again.outcomes] == [one.artifact for one in first.outcomes]


def test_only_what_a_missing_goal_needs_is_built(tmp_path):
    calls: list[str] = []
    a, _, c, d = diamond(calls)
    run((a, d), tmp_path)
    store = Store(tmp_path)
    for gone in (a, c):
        store.remove(store.find(gone.digest).path, digest12=gone.digest[:12])
    calls.clear()
    assert [one.state for one in plan(Graph(goals=(d,)), store)] == [
        "unneeded",
        "stored",
        "unneeded",
        "stored",
    ]
    run((d,), tmp_path)
    assert calls == []
    store.remove(store.find(d.digest).path, digest12=d.digest[:12])
    report = run((d,), tmp_path)
    assert calls == ["a", "c", "d"]
    assert report.built == 3


def test_plan_builds_nothing(tmp_path):
    planned = plan(Graph(goals=diamond()), Store(tmp_path / "none"))
    assert [one.state for one in planned] == ["build"] * 4
    assert not (tmp_path / "none").exists()


def test_progress_counts_what_is_built(tmp_path):
    a, b, _, _ = diamond()
    run((a,), tmp_path)
    recorder = Recorder()
    run((a, b), tmp_path, recorder)
    assert recorder.events == [
        ("started", "k b", 1, 1),
        ("advanced", "k b", 1, 2, "things", "n"),
        ("finished", "k b", True),
    ]


@pytest.mark.parametrize("error", [RuntimeError("boom"), InputError("bad row", where="f:3")])
def test_an_error_names_its_step_and_keeps_what_was_done(tmp_path, error):
    def fail(context: StepContext) -> None:
        raise error

    calls: list[str] = []
    a = step("a", calls)
    bad = Step(kind="k", label="bad", settings={}, inputs={"x": a}, build=fail)
    with pytest.raises(type(error)) as caught:
        run((bad,), tmp_path)
    assert caught.value is error
    assert "step k bad. Finished steps are kept" in caught.value.__notes__[0]
    run((a,), tmp_path)
    assert calls == ["a"]


def test_a_full_disk_names_the_step(tmp_path):
    def fail(context: StepContext) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(InputError, match="disk is full") as caught:
        run((Step(kind="k", label="bad", settings={}, build=fail),), tmp_path)
    assert "k bad" in caught.value.__notes__[0]


def test_the_mark_of_protected_texts_is_inherited(tmp_path):
    a = step("a", protected=True)
    b = step("b", x=a)
    report = run((step("c", x=b), step("free")), tmp_path)
    marks = {one.step.label: one.artifact.manifest.protected for one in report.outcomes}
    assert marks == {"a": True, "b": True, "c": True, "free": False}


def test_executors_by_name():
    assert isinstance(get_executor("in-process"), InProcess)
    with pytest.raises(InputError, match="Did you mean 'in-process'"):
        get_executor("inprocess")


GRAPH = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from spikein.executors.in_process import InProcess
    from spikein.pipeline.graph import Graph, Step
    from spikein.progress import Silent
    from spikein.store.store import Store

    root, victim = Path(sys.argv[1]), sys.argv[2]
    # A shell's background jobs are started deaf to Ctrl-C, and hand that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def step(label, **inputs):
        def build(context):
            with (root / "builds.log").open("a") as log:
                log.write(label + "\\n")
            (context.out / "half").write_text(label)
            if label == victim:
                os.kill(os.getpid(), getattr(signal, sys.argv[3]))
            (context.out / "whole").write_text(label * 100)
        return Step(kind="k", label=label, settings={"l": label}, inputs=inputs, build=build)

    a = step("a")
    goal = step("d", x=step("b", x=a), y=step("c", x=a))
    try:
        report = InProcess().run(Graph(goals=(goal,)), Store(root / "store"), Silent())
    except KeyboardInterrupt:
        sys.exit(130)
    print(*[one.artifact.manifest.content for one in report.outcomes])
    """
)


def run_child(root: Path, victim: str, sent: str = "SIGKILL") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", GRAPH, str(root), victim, sent],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        timeout=60,
    )


def test_kill_9_in_every_step_then_nothing_is_built_twice(tmp_path):
    calm = tmp_path / "calm"
    calm.mkdir()
    expected = run_child(calm, "").stdout.split()
    for victim in "abcd":
        root = tmp_path / victim
        root.mkdir()
        assert run_child(root, victim).returncode == -signal.SIGKILL
        again = run_child(root, "")
        assert again.stdout.split() == expected, again.stderr
        built = (root / "builds.log").read_text().split()
        assert sorted(built) == sorted([*"abcd", victim])
        assert not list((root / "store").glob("*/.*.tmp"))


def test_ctrl_c_ends_cleanly_and_a_rerun_goes_on(tmp_path):
    assert run_child(tmp_path, "c", "SIGINT").returncode == 130
    store = tmp_path / "store"
    assert not list(store.glob("*/.*.tmp"))
    assert len(list(store.glob("k/*"))) == 2
    assert run_child(tmp_path, "").returncode == 0
    assert (tmp_path / "builds.log").read_text().split() == ["a", "b", "c", "c", "d"]
