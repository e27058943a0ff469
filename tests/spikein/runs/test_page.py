"""The page of a real sweep, read as a sceptic reads it: every number against metrics.parquet, every
claim against the artifacts, on a screen, a phone and paper."""

import json
import platform
import re
from collections import Counter
from pathlib import Path

import pytest

from analysis.checks.validity import check_validity
from analysis.findings import read_table
from analysis.page.streams import audit_facts
from inject.plan.plan import read_plan
from spikein.config.load import read_experiment
from spikein.executors import get_executor
from spikein.pipeline.build_graph import build_graph
from spikein.progress import Progress
from spikein.runs.audit import audit_run
from spikein.runs.folder import linked_artifacts
from spikein.runs.index_page import INDEX, index_rows
from spikein.runs.page_inputs import audited_models
from spikein.store.environment import CODE, MACHINE, code_version, environment
from spikein.store.manifest import read_manifest
from spikein.store.store import Store
from tests.pages import Page, numbers_of, on_paper, overflow
from tests.spikein.store.damage import seal
from tests.spikein.tiny import run, write_tiny

SIZES = (40_000, 80_000)
INTERVAL = re.compile(r"\d\.\d\d–\d\.\d\d")


# The pages are those of an experiment that is run here.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Two sizes of the stream, two kinds of doses: four arms, four streams."""
    root = tmp_path_factory.mktemp("swept")
    write_tiny(root)
    sweep = f"sweep={{corpus.tokens: {list(SIZES)}, copies: [{{fixed: 2}}, {{poisson: 2}}]}}"
    result = run(root, sweep)
    return root, result


@pytest.fixture(scope="module")
def page(swept) -> Page:
    return Page(swept[1].report.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def metrics(swept) -> list[dict]:
    return read_table(swept[1].folder, "metrics").to_pylist()


def arm_name(row: dict) -> str:
    copies = row["sweep.copies"] if "sweep.copies" in row else row["copies"]
    return f"tokens {row['corpus.tokens']}, copies {copies}"


def arm_of(row: dict) -> str:
    if row["model"] != "contaminated":
        return f"{row['model']} model"
    return arm_name(row)


def rounded(row: dict) -> tuple[float, float, float]:
    return tuple(float(f"{row[name]:.2f}") for name in ("value", "low", "high"))


@pytest.mark.parametrize("selection", ["tuned", "default"])
def test_every_auc_of_the_tables_and_its_n_are_those_of_the_metrics(page, metrics, selection):
    wanted = {
        (arm_of(row), row["detector"]): row
        for row in metrics
        if (row["dataset"], row["copies"], row["variant"], row["metric"])
        == ("all", "all", "all", "auc")
        and row["selection"] == selection
    }
    shown = {}
    for table in page.titled(f"Detectors and arms, {selection} settings"):
        for row in table.rows[1:]:
            for head, place in zip(table.heads[1:], row[1:], strict=True):
                if "interval" in place.classes:
                    shown[head.text, row[0].text] = place, place.note or head.note
    assert shown.keys() == {key for key, row in wanted.items() if row["low"] == row["low"]}
    for key, (place, note) in shown.items():
        assert numbers_of(place) == pytest.approx(rounded(wanted[key]))
        counts = f"{wanted[key]['n_members']:,} + {wanted[key]['n_nonmembers']:,}"
        assert note.startswith(counts), key


def test_the_headline_is_the_bold_cell_of_its_arm(page):
    lead = next(text for _, text in page.paragraphs if "best likelihood detector" in text)
    arm, detector = re.search(
        r"In the arm (.*), the best likelihood detector, (\w+)", lead
    ).groups()
    bold = [
        (head.text, row[0].text, place)
        for table in page.titled("Detectors and arms, tuned settings")
        for row in table.rows[1:]
        for head, place in zip(table.heads[1:], row[1:], strict=True)
        if "best" in place.classes
    ]
    of_arm = [(name, place) for head, name, place in bold if head == arm]
    told = tuple(float(x) for x in re.search(r"AUC (\S+) \[(\S+), (\S+)\]", lead).groups())
    if told[1] <= 0.5:
        assert of_arm == []
        return
    assert [name for name, _ in of_arm] == [detector]
    assert numbers_of(of_arm[0][1]) == told
    assert told[1] == max(numbers_of(place)[1] for _, _, place in bold)


def test_the_rows_by_copies_are_those_of_the_metrics(page, metrics):
    tables = page.titled("By realised copies")
    arm = re.search(r"\((.*?)\)", tables[0].caption)[1]
    names = {"1 or more copies": "all", "4 or more copies": "4+", "1 copy": "1"}
    found = 0
    for table in tables:
        for row in table.rows[1:]:
            for head, place in zip(table.heads[1:], row[1:], strict=True):
                if "interval" not in place.classes:
                    continue
                label = names.get(head.text, head.text.removesuffix(" copies"))
                (wanted,) = [
                    one
                    for one in metrics
                    if arm_of(one) == arm
                    and (one["dataset"], one["copies"], one["variant"], one["metric"])
                    == ("all", label, "all", "auc")
                    and (one["detector"], one["selection"]) == (row[0].text, "tuned")
                ]
                assert numbers_of(place) == pytest.approx(rounded(wanted))
                counts = f"{wanted['n_members']:,} + {wanted['n_nonmembers']:,}"
                assert (place.note or head.note).startswith(counts)
                found += 1
    assert found > 10


def test_the_share_of_the_stream_that_is_copies_is_told_and_right(swept, page):
    root, result = swept
    table = page.titled("Training streams")[0]
    shares = dict(zip(table.column("Arm"), table.column("Share of copies"), strict=True))
    for path in (root / "store" / "plan").iterdir():
        plan = read_plan(path)
        payload = sum(plan.copies["payload_length"].to_pylist())
        share = payload / plan.facts.budget
        same = [
            text
            for arm, text in shares.items()
            if f"tokens {plan.facts.budget}," in arm and path.name.split("-")[0] in arm
        ]
        [text] = same
        assert float(text.removesuffix(" %")) / 100 == pytest.approx(share, rel=0.06)
    assert "of the tokens of a training stream" in page.text("experiment")
    assert "do not say how detectable a text is in a large corpus" in page.text("experiment")


def test_auc_against_the_size_of_the_corpus_is_drawn(page, metrics):
    assert ("figure", {"id": "sweep-corpus-tokens"}) in page.tags
    words = [
        attributes["aria-label"]
        for tag, attributes in page.tags
        if tag.endswith("svg") and "corpus.tokens" in (attributes.get("aria-label") or "")
    ]
    told = words[0]  # the curves; contrasts of its values come further down
    detector = re.search(r"copies \S+: (\w+) ", told)[1]
    for row in metrics:
        if (row["dataset"], row["copies"], row["metric"]) == ("all", "all", "auc") and (
            row["detector"], row["selection"], row["model"]
        ) == (detector, "tuned", "contaminated"):  # fmt: skip
            value, low, high = rounded(row)
            assert f"{value:.2f} ({low:.2f} to {high:.2f}) at" in told


def test_every_figure_has_words_with_numbers_in_its_place(page):
    figures = [a for t, a in page.tags if t.endswith("svg")]
    assert len(figures) >= 6
    for attributes in figures:
        assert attributes["role"] == "img"
        assert len(re.findall(r"\d", attributes["aria-label"])) > 3


def test_attributes_are_attributes(swept, page):
    """`class=&#34;decides&#34;` is a class of no rule."""
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert re.fullmatch(r"[A-Za-z:_-]+[A-Za-z0-9:_-]*", name), (tag, name)
            if name == "class":
                assert re.fullmatch(r"[\w -]*", value), (tag, value)
    classes = {name for _, a in page.tags for name in (a.get("class") or "").split()}
    assert {"decides", "rate"} <= classes
    style = re.search(r"<style>(.*?)</style>", swept[1].report.read_text(), re.S)[1]
    assert ".rate .bar" in style, "a rate has no tick at 0.5"


def test_the_page_says_when_with_what_code_and_on_what_machine_and_not_on_which_host(swept, page):
    facts = {}
    for table in page.tables:
        if table.section == "provenance":
            facts |= {row[0].text: row[1].text for row in table.rows}
    dates = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", facts["Steps computed"])
    created = sorted(read_manifest(path).created for path in linked_artifacts(swept[1].folder))
    assert dates[0].replace(" ", "T") in created[0]
    assert dates[-1].replace(" ", "T") in created[-1]
    assert facts["Page made by spikein"] == facts["Computed by spikein"] == code_version()
    machine = facts["Computed on"]
    assert re.search(r"\d+ cores?", machine)
    assert platform.system() in machine
    host = platform.node()
    assert not host or host not in " ".join(facts.values())
    manifest = read_manifest(next(iter(linked_artifacts(swept[1].folder))))
    assert set(manifest.environment) == {CODE, MACHINE} == set(environment())


def test_the_page_shows_every_audit_that_the_command_shows_and_fails_with_it(swept):
    root, result = swept
    experiment_graph = build_graph(read_experiment(result.folder / "experiment.yaml"))
    report = get_executor("in-process").run(
        experiment_graph.graph, Store(root / "store"), Progress()
    )
    models = audited_models(experiment_graph, report)
    shown = audit_facts(models, several_seeds=False)
    command = audit_run(result.folder, rules=None)
    assert len(shown) == len(command.streams) == 4, "two sizes and two kinds of doses"
    assert all(audit["passed"] for audit in shown.values())
    assert sorted(audit["tokens searched"] for audit in shown.values()) == sorted(
        audit.tokens_searched for audit in command.streams.values()
    )
    for step in {node.audit.digest: node.audit for node in experiment_graph.nodes}.values():
        folder = report.artifact(step).path
        kept = {name: (folder / name).read_bytes() for name in ("audit.json", "manifest.json")}
        try:
            falsify(folder)
            # A fresh look, as another process has: what was verified before is remembered.
            report = get_executor("in-process").run(
                experiment_graph.graph, Store(root / "store"), Progress()
            )
            models = audited_models(experiment_graph, report)
            check = check_validity([], audit_facts(models, several_seeds=False))[0]
            assert check.verdict == "failed"
            assert check.sentence.startswith("1 of 4 streams failed")
            assert not audit_run(result.folder, rules=None).clean
        finally:
            for name, content in kept.items():
                (folder / name).chmod(0o644)
                (folder / name).write_bytes(content)


def falsify(folder: Path) -> None:
    """Let an audit say that it failed, under a manifest that agrees."""
    path = folder / "audit.json"
    path.chmod(0o644)
    path.write_text(json.dumps({**json.loads(path.read_text()), "passed": False}, indent=1))
    seal(folder)


def test_a_run_lists_itself_in_the_page_of_all_runs(swept, tmp_path):
    root, result = swept
    (row,) = index_rows(root / "runs")
    assert row.name == f"{result.folder.parent.name}/{result.folder.name}"
    assert row.summary["sentences"][0] in result.summary
    lines = {f"{one['name']}: {one['verdict']}" for one in row.summary["checks"]}
    assert all(any(said.startswith(line) for said in result.summary) for line in lines)
    assert not overflow(root / "runs" / INDEX, 390, tmp_path)["wide"]


@pytest.mark.parametrize(("width", "figures_scroll"), [(1280, False), (390, True)])
def test_nothing_reaches_beyond_the_edge_of_a_screen(swept, tmp_path, width, figures_scroll):
    """Figures alone may be wider than a phone, in a frame that scrolls and says so."""
    found = overflow(swept[1].report, width, tmp_path, figures_scroll=figures_scroll)
    assert found["scroll"] <= found["client"]
    assert found["wide"] == []
    assert found["broken"] == [], "1,400,00 over 0 reads as another number"


def test_paper_shows_every_number_that_the_screen_shows(swept, page, tmp_path):
    text, beyond = on_paper(swept[1].report, tmp_path)
    assert beyond == []
    on_screen = Counter(
        interval
        for table in page.tables
        for row in table.rows
        for place in row
        for interval in INTERVAL.findall(place.text)
    )
    assert sum(on_screen.values()) > 100
    assert on_screen - Counter(INTERVAL.findall(text)) == Counter()
