"""Identity of steps, order, planning, and the in-process executor."""

import json
import signal
import subprocess
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject import step as step_module
from inject.errors import InputError
from inject.step import Cost, InputProjection, Step
from spikein.executors import InProcess, RunReport
from spikein.pipeline.graph import Graph, plan
from spikein.progress import Progress
from spikein.store.store import Store
from tests.processes import python
from tests.spikein import step_functions
from tests.spikein.executors.graphs import events

WRITE = "tests.spikein.step_functions:write"


def step(label: str, trace: Path | None = None, /, *, value: object = None, **more) -> Step:
    execution = {"trace": str(trace)} if trace else {}
    return step_functions.step(
        label, "write", kind="k", settings={"value": value}, execution=execution, **more
    )


def diamond(trace: Path | None = None) -> tuple[Step, ...]:
    a = step("a", trace)
    b, c = step("b", trace, x=a), step("c", trace, x=a)
    return a, b, c, step("d", trace, left=b, right=c)


def plain(**more) -> Step:
    return Step(**{"kind": "k", "label": "l", "function": WRITE, "settings": {"a": 1}, **more})


def built(trace: Path) -> list[str]:
    return [event["step"] for event in events(trace)]


def run(goals: tuple[Step, ...], root: Path, progress: Progress | None = None) -> RunReport:
    return InProcess().run(Graph(goals=goals), Store(root), progress or Progress())


def test_execution_label_cost_and_file_rules_do_not_enter_the_identity():
    other = plain(
        label="m",
        execution={"workers": 8},
        volatile=("log",),
        protected=True,
        processes=2,
        cost=Cost(seconds=3),
        reads={"x": InputProjection("head")},
        facets={"head": "tests.spikein.step_functions:first_letter"},
    )
    assert plain().digest == other.digest


def test_the_function_its_code_and_code_chosen_by_name_enter_the_identity(monkeypatch):
    functions = [plain(), plain(function=WRITE.replace("write", "join"))]
    chosen = [plain(code=("inject.keyed",)), plain(code=("inject.model_folder",))]
    assert len({variant.digest for variant in (*functions, *chosen)}) == 4
    before = plain().digest
    monkeypatch.setattr(step_module, "source_digest", lambda roots: f"another of {roots}")
    assert plain().digest != before


@pytest.mark.parametrize("part", ["settings", "execution"])
def test_a_function_gets_plain_json_in_any_process(tmp_path, part):
    with pytest.raises(TypeError, match=rf"k l: {part}\.a\.b: PosixPath has no canonical form"):
        plain(**{part: {"a": {"b": tmp_path}}}).json_values()
    node = plain(**{part: {"z": (1, 2), "a": None}})
    values = node.json_values()[part == "execution"]
    assert json.dumps(values) == '{"z": [1, 2], "a": null}'
    assert values["z"] == [1, 2]


def test_a_changed_input_changes_all_later_steps():
    a = step("a", value=2)
    b, c = step("b", x=a), step("c", x=a)
    changed = step("d", left=b, right=c)
    assert changed.digest != diamond()[3].digest
    assert changed.digest != step("d", left=c, right=b).digest
    assert step("b", x=a).digest != step("b", y=a).digest


def test_libraries_enter_by_version(monkeypatch):
    monkeypatch.setattr(step_module, "distribution_version", lambda name: "1.2+cpu")
    cpu = plain(libraries=("torch",))
    assert cpu.recipe.libraries == {"torch": "1.2"}
    monkeypatch.setattr(step_module, "distribution_version", lambda name: "1.2+cu130")
    gpu = plain(libraries=("torch",))
    assert plain().digest != cpu.digest == gpu.digest


@given(st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=12), st.randoms())
def test_the_order_puts_inputs_first_and_names_each_step_once(edges, random):
    nodes: list[Step] = []
    for index, chosen in enumerate(edges):
        inputs = {f"i{i}": nodes[source] for i, source in enumerate(chosen) if source < len(nodes)}
        nodes.append(step(str(index), **inputs))
    goals = tuple(random.sample(nodes, k=random.randint(1, len(nodes))))
    steps = Graph(goals=goals).steps
    place = {node.digest: index for index, node in enumerate(steps)}
    assert len(place) == len(steps)
    assert {goal.digest for goal in goals} <= set(place)
    for node in steps:
        assert all(place[before.digest] < place[node.digest] for before in node.inputs.values())


def test_the_second_run_builds_nothing(tmp_path):
    trace = tmp_path / "trace"
    goals = (*diamond(trace), *diamond(trace))
    first = run(goals, tmp_path / "store")
    assert (first.artifact(goals[-1]) / "value").read_text() == "(d(b(a))(c(a)))"
    again = run(goals, tmp_path / "store")
    assert built(trace) == ["a", "b", "c", "d"]
    assert (first.built, again.built) == (4, 0)
    assert [entry.artifact for entry in again.outcomes] == [
        entry.artifact for entry in first.outcomes
    ]


def test_only_needed_inputs_of_a_missing_goal_are_built(tmp_path):
    trace, root = tmp_path / "trace", tmp_path / "store"
    a, _, c, d = diamond(trace)
    run((a, d), root)
    store = Store(root)
    for gone in (a, c):
        store.remove(store.find(gone.digest).path, digest12=gone.digest[:12])
    trace.unlink()
    assert [entry.state for entry in plan(Graph(goals=(d,)), store)] == [
        "unneeded",
        "stored",
        "unneeded",
        "stored",
    ]
    run((d,), root)
    assert built(trace) == []
    store.remove(store.find(d.digest).path, digest12=d.digest[:12])
    report = run((d,), root)
    assert built(trace) == ["a", "c", "d"]
    assert report.built == 3


def failing(error: str, **inputs: Step) -> Step:
    settings = {"error": error}
    return step_functions.step("bad", "fail_by_name", kind="k", settings=settings, **inputs)


@pytest.mark.parametrize("error", ["RuntimeError", "InputError"])
def test_an_error_names_its_step_and_keeps_finished_steps(tmp_path, error):
    trace = tmp_path / "trace"
    a = step("a", trace)
    raised = step_functions.ERRORS[error]
    with pytest.raises(type(raised)) as caught:
        run((failing(error, x=a),), tmp_path / "store")
    assert caught.value is raised
    assert "step k bad. Finished steps are kept" in caught.value.__notes__[0]
    run((a,), tmp_path / "store")
    assert built(trace) == ["a"]


def test_a_full_disk_names_the_step(tmp_path):
    with pytest.raises(InputError, match="disk is full") as caught:
        run((failing("OSError"),), tmp_path)
    assert "k bad" in caught.value.__notes__[0]


def test_the_mark_of_protected_texts_is_inherited(tmp_path):
    a = step("a", protected=True)
    b = step("b", x=a)
    report = run((step("c", x=b), step("free")), tmp_path)
    marks = {outcome.step.label: outcome.artifact.manifest.protected for outcome in report.outcomes}
    assert marks == {"a": True, "b": True, "c": True, "free": False}


GRAPH = textwrap.dedent(
    """
    import signal, sys
    from pathlib import Path
    from spikein.executors import InProcess
    from spikein.pipeline.graph import Graph
    from spikein.progress import Progress
    from spikein.store.store import Store
    from tests.spikein.step_functions import step

    root, victim = Path(sys.argv[1]), sys.argv[2]
    # A shell's background jobs ignore Ctrl-C, and so do their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def one(label, **inputs):
        sent = sys.argv[3] if label == victim else None
        execution = {"trace": str(root / "trace"), "signal": sent}
        return step(label, "be_stopped_halfway", kind="k", execution=execution, **inputs)

    a = one("a")
    goal = one("d", x=one("b", x=a), y=one("c", x=a))
    try:
        report = InProcess().run(Graph(goals=(goal,)), Store(root / "store"), Progress())
    except KeyboardInterrupt:
        sys.exit(130)
    print(*[one.artifact.manifest.content for one in report.outcomes])
    """
)


def run_child(root: Path, victim: str, sent: str = "SIGKILL") -> subprocess.CompletedProcess[str]:
    return python("-c", GRAPH, root, victim, sent)


def test_after_kill_9_in_any_step_nothing_is_built_twice(tmp_path):
    calm = tmp_path / "calm"
    calm.mkdir()
    expected = run_child(calm, "").stdout.split()
    for victim in "abcd":
        root = tmp_path / victim
        root.mkdir()
        assert run_child(root, victim).returncode == -signal.SIGKILL
        again = run_child(root, "")
        assert again.stdout.split() == expected, again.stderr
        assert sorted(built(root / "trace")) == sorted([*"abcd", victim])
        assert not list((root / "store").glob("*/.*.tmp"))


def test_ctrl_c_ends_cleanly_and_a_rerun_resumes(tmp_path):
    assert run_child(tmp_path, "c", "SIGINT").returncode == 130
    store = tmp_path / "store"
    assert not list(store.glob("*/.*.tmp"))
    assert len(list(store.glob("k/*"))) == 2
    assert run_child(tmp_path, "").returncode == 0
    assert built(tmp_path / "trace") == ["a", "b", "c", "c", "d"]
