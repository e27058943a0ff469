"""The page of a real sweep, read as a sceptic reads it: every number against metrics.parquet, every
claim against the artifacts, on a screen, a phone and paper."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from analysis.arm_labels import arm_words
from analysis.checks.validity import check_validity
from analysis.findings import read_table
from analysis.page.streams import audit_facts
from detect.detector_table import describe_named
from detect.registry import detector_names
from inject.plan.plan import read_plan
from scripts.pictures.page_measures import measure
from spikein.config.load import read_experiment
from spikein.executors import get_executor
from spikein.pipeline.build_graph import build_graph
from spikein.progress import Progress
from spikein.runs.audit import audit_run
from spikein.runs.index_page import INDEX, index_rows
from spikein.runs.page_inputs import audited_models
from spikein.store.store import Store
from tests.pages import Page, chromium, overflow
from tests.spikein.store.damage import seal
from tests.spikein.tiny import run, write_tiny

SIZES = (20_000, 40_000)


# The pages belong to an experiment that is run here.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Two sizes of the stream, two rules of copies: four arms, four streams."""
    root = tmp_path_factory.mktemp("swept")
    write_tiny(root)
    sweep = f"sweep={{corpus.tokens: {list(SIZES)}, copies: [{{fixed: 2}}, {{poisson: 2}}]}}"
    result = run(root, sweep)
    return root, result


def read(swept, name: str) -> Page:
    return Page((swept[1].folder / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(swept) -> Page:
    return read(swept, "report.html")


@pytest.fixture(scope="module")
def metrics(swept) -> list[dict]:
    return read_table(swept[1].folder, "metrics").to_pylist()


@pytest.fixture(scope="module")
def titles() -> dict[str, str]:
    return {name: describe_named(name).title for name in detector_names()}


def rounded(row: dict) -> tuple[float, float, float]:
    return tuple(float(f"{row[name]:.2f}") for name in ("value", "low", "high"))


def pooled_aucs(metrics: list[dict], **filters: str) -> list[dict]:
    filters = {"dataset": "all", "copies": "all", "variant": "all", "metric": "auc", **filters}
    return [row for row in metrics if all(row[key] == value for key, value in filters.items())]


def test_the_headline_and_its_chosen_detector_match_the_metrics(page, metrics, titles):
    lead = next(text for _, text in page.paragraphs if "from unseen text" in text)
    chosen = next(text for _, text in page.paragraphs if "the chosen detector" in text)
    name = next(key for key, title in titles.items() if chosen.startswith(f"{title}, "))
    aucs = [
        rounded(row)
        for row in metrics
        if (row["detector"], row["metric"], row["model"]) == (name, "auc", "contaminated")
    ]
    intervals = [tuple(map(float, interval)) for interval in
            re.findall(r"(\d\.\d\d)\s\[(\d\.\d\d),\s(\d\.\d\d)\]", lead)]  # fmt: skip
    assert intervals
    assert set(intervals) <= set(aucs)
    best = max(
        pooled_aucs(metrics, metric="tune_auc", selection="tuned", model="contaminated"),
        key=lambda row: row["value"],
    )
    assert best["detector"] == name, "bounds are not candidates"
    (board,) = [table for table in page.tables if table.heads[1].text == "AUC, tuning split"][:1]
    (row,) = [row for row in board.rows[1:] if row[0].text == titles[name]]
    assert row[1].text == f"{best['value']:.2f}"
    assert "strong" in row[1].classes


def test_numbers_in_the_auc_pictures_match_the_metrics(page, metrics, titles):
    """Hover texts have the detector, the arm, value, interval and n."""
    hovers = [text for text in page.hovers if ": AUC " in text]
    assert len(hovers) > 20
    points = {
        (titles[row["detector"]], *rounded(row), row["n_members"], row["n_nonmembers"])
        for row in metrics
        if row["metric"] == "auc"
    }
    pattern = re.compile(
        r"(.*?)[,:] .*AUC (\S+) \[(\S+), (\S+)\] · ([\d,]+) members, ([\d,]+) non-members"
    )
    for hover in hovers:
        name, *numbers, members, others = pattern.fullmatch(hover).groups()
        if name in titles.values():
            point = (name, *map(float, numbers), int(members), int(others))
            assert point in points, hover


def test_factors_and_checks_on_the_first_screen_match_the_findings(swept):
    """With the headline these are the answers: effects of copies and settings, and validity."""
    folder = swept[1].folder
    html = unescape((folder / "report.html").read_text(encoding="utf-8"))
    first = html.split('<div id="first">')[1].split("<section")[0].replace("\u00a0", " ")
    rows = [row for row in read_table(folder, "factors").to_pylist() if row["dataset"] == "all"]
    key = ("loss", "auc", "all")
    rows += [row for row in read_table(folder, "differences").to_pylist()
             if (row["reference"], row["metric"], row["copies"]) == key]  # fmt: skip
    intervals = {tuple(f"{100 * row[name]:+.1f}".replace("-", "−") for name in ("low", "high"))
             for row in rows if row["value"] == row["value"]}  # fmt: skip
    gains = re.findall(r"<li( class=\"sure\")?><strong>(.*?)<small>.*?<p>(.*?)</p>", first)
    assert len(gains) == 3
    for sure, number, sentence in gains:
        low, high = re.search(r"\[(\S+), (\S+)\]", sentence).groups()
        assert (low, high) in intervals
        least, most = (float(end.replace("−", "-")) for end in (low, high))
        assert least - 0.5 <= float(number.replace("−", "-")) <= most + 0.5
        assert bool(sure) == (not least <= 0 <= most)
    checks = [row for row in read_table(folder, "checks").to_pylist() if row["verdict"]]
    badges = re.findall(r"<li class=\"(\w+)\"><a href.*?<b>.*?</b>(.*?)</span>", first)
    assert len(badges) == len(checks)
    for (look, lines), row in zip(badges, checks, strict=True):
        verdict = row["verdict"]
        assert look == (verdict if verdict in ("passed", "failed") else "open")
        number = f"{row['total'] - row['n_failed']:,} of {row['total']:,}"
        if row["low"] is not None and row["low"] == row["low"]:
            number = f"{row['low']:.2f}–{row['high']:.2f}"
        elif row["check"] == "background":
            number = f"{row['n_failed']:,} of {row['total']:,}"
        assert f"<small>{verdict}: {number}</small>" in lines or verdict == "not measured"


def test_the_share_of_copies_in_the_stream_is_correct(swept, page):
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
            if arm
            == arm_words(
                [("corpus.tokens", str(plan.facts.budget)), ("copies", path.name.split("-")[0])]
            )
        ]
        [text] = same
        assert float(text.removesuffix(" %")) / 100 == pytest.approx(share, rel=0.06)
    assert "not measure how detectable a text is in a large corpus" in page.text("checks")


def test_attribute_names_and_classes_are_valid(page):
    """`class=&#34;decides&#34;` would match no rule."""
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert re.fullmatch(r"[A-Za-z:_-]+[A-Za-z0-9:_-]*", name), (tag, name)
            if name == "class":
                assert re.fullmatch(r"[\w -]*", value), (tag, value)
    classes = {name for _, a in page.tags for name in (a.get("class") or "").split()}
    assert {"chosen", "strong", "badges", "wide", "phone"} <= classes


def test_the_page_and_the_command_show_the_same_audits_and_failures(swept):
    root, result = swept
    experiment_graph = build_graph(read_experiment(result.folder / "experiment.yaml"))
    report = get_executor("in-process").run(
        experiment_graph.graph, Store(root / "store"), Progress()
    )
    models = audited_models(experiment_graph, report)
    audits = audit_facts(models, several_seeds=False)
    command = audit_run(result.folder, rules=None)
    assert len(audits) == len(command.streams) == 4, "two sizes and two rules of copies"
    assert all(audit["passed"] for audit in audits.values())
    assert sorted(audit["tokens searched"] for audit in audits.values()) == sorted(
        audit.tokens_searched for audit in command.streams.values()
    )
    for step in {node.audit.digest: node.audit for node in experiment_graph.nodes}.values():
        folder = report.artifact(step).path
        originals = {name: (folder / name).read_bytes() for name in ("audit.json", "manifest.json")}
        try:
            falsify(folder)
            # A new `Store`, as in another process, since a store remembers verified artifacts.
            report = get_executor("in-process").run(
                experiment_graph.graph, Store(root / "store"), Progress()
            )
            models = audited_models(experiment_graph, report)
            check = check_validity([], audit_facts(models, several_seeds=False))[0]
            assert check.verdict == "failed"
            assert check.sentence.startswith("1 of 4 streams failed")
            assert not audit_run(result.folder, rules=None).clean
        finally:
            for name, content in originals.items():
                (folder / name).chmod(0o644)
                (folder / name).write_bytes(content)


def falsify(folder: Path) -> None:
    """Make an audit record a failure, with a matching manifest."""
    path = folder / "audit.json"
    path.chmod(0o644)
    path.write_text(json.dumps({**json.loads(path.read_text()), "passed": False}, indent=1))
    seal(folder)


def test_a_run_lists_itself_in_the_page_of_all_runs(swept):
    root, result = swept
    (row,) = index_rows(root / "runs")
    assert row.name == f"{result.folder.parent.name}/{result.folder.name}"
    assert row.summary["sentences"][0] in result.summary
    lines = {f"{check['name']}: {check['verdict']}" for check in row.summary["checks"]}
    assert all(any(sentence.startswith(line) for sentence in result.summary) for line in lines)
    assert not overflow(root / "runs" / INDEX, 390)["wide"]


@pytest.mark.parametrize(("width", "figures_scroll"), [(1280, False), (390, True)])
def test_the_page_fits_the_width_of_a_screen(swept, width, figures_scroll):
    """Only figures may be wider than a phone, in a frame that visibly scrolls."""
    measured = overflow(swept[1].report, width, figures_scroll=figures_scroll)
    assert measured["scroll"] <= measured["client"]
    assert measured["wide"] == []
    assert measured["broken"] == [], "1,400,00 over 0 reads as another number"


def test_the_page_keeps_its_limits_and_texts_do_not_overlap(swept):
    """Bytes, screens, sheets, tables, texts over one another, links: `scripts.pictures`."""
    with chromium() as started:
        for name in ("report.html", "results.html", "examples.html", "methods.html"):
            measured = measure(started, swept[1].folder / name)
            # Companion pages may fill as many sheets as they have rows.
            broken = [problem for problem in measured["broken"] if "sheets" not in problem]
            assert broken == [], name
            if name == "report.html":
                assert broken == measured["broken"]
                assert measured["first_screen"] <= 800
