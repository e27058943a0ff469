"""An audit's page starts with still-written texts and hides protected ones."""

import json
import re
from html import unescape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.findings import write_findings
from analysis.page.unlearning.audit_page import write_audit_page
from analysis.unlearning_audit.audit import AUDIT_FILE, CHUNKS, CHUNKS_FILE
from analysis.unlearning_audit.evidence import CONTINUATIONS
from detect.generation.continuations import CONTINUATIONS_FILE
from scripts.pictures.page_measures import measure
from tests.pages import Page, chromium

EVIL = '<script>alert("x")</script>'
NUMBERS = {
    "remembered_original": (0.9, 0.68, 0.98),
    "remembered_unlearned": (0.5, 0.3, 0.7),
    "flagged": (0.25, 0.1, 0.4),
    "false_alarms": (0.05, 0.01, 0.2),
    "missed": (0.6, 0.3, 0.8),
    "working": (0.02, -0.01, 0.05),
    "knew": (-1.2, -1.5, -0.9),
    "level": (-0.4, -0.6, -0.2),
    "rouge_l_unlearned": (0.3, float("nan"), float("nan")),
}
CHECKS = {"working": "yes", "knew": "yes", "level": "likelier", "weights": "cannot be told"}


def words(model: str, chunk: int) -> float:
    return {"original": 20.0, "unlearned": 12.0 - chunk, "retrained": 2.0}[model]


@pytest.fixture
def artifact(tmp_path):
    """An audit of ten texts of which the last is protected."""
    folder = tmp_path / "audit"
    folder.mkdir()
    chunks, written = [], []
    for chunk in range(10):
        text = f"{EVIL} beginning of text {chunk}" if chunk < 9 else None
        chunks.append({
            **dict.fromkeys(CHUNKS.names), "chunk": chunk, "part": "audited",
            "text_id": f"id-{chunk}", "group": str(chunk), "start": 0, "stop": 90,
            "prompt_stop": 40, "ratio": 1.0 + chunk,
            "suspicious": chunk < 2, "continued": True, "remembered": words("unlearned", chunk) > 7,
            "remembered_original": True, "prompt": text, "truth": text and f"truth {chunk}",
        })  # fmt: skip
        for model in ("original", "unlearned", "retrained"):
            for sample in range(2):
                written.append({
                    "chunk": chunk, "model": model, "sample": sample,
                    "text": text and f"{model} wrote {chunk}", "rouge_l": 0.5,
                    "longest_common_substring": words(model, chunk) - sample,
                })  # fmt: skip
    for rows, schema, name in (
        (chunks, CHUNKS, CHUNKS_FILE),
        (written, CONTINUATIONS, CONTINUATIONS_FILE),
    ):
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / name)
    ends = ("value", "low", "high")
    rows = [{"seed": None, "method": "npo", "copies": "all", "quantity": name,
             **dict(zip(ends, number, strict=True)), "chunks": 10, "seeds": 1, "note": ""}
            for name, number in NUMBERS.items()]  # fmt: skip
    write_findings(folder, {"unlearning_audits": pa.Table.from_pylist(rows)})
    record = {
        "settings": {"audit": {"band": [0.87, 1.15]}}, "verdict": "still written",
        "levels": {"original": 7.0, "unlearned": 7.0}, "levels_of": "the retrained model",
        "headline": "What the headline says. Still written: more than chance explains.",
        "checks": {name: {"question": name, "answer": answer, "about": ""}
                   for name, answer in CHECKS.items()},
        "control": "the retrained model on the same chunks", "notes": ["a note"],
    }  # fmt: skip
    (folder / AUDIT_FILE).write_text(json.dumps(record))
    return folder


def page_of(artifact, **options) -> str:
    path = artifact / "page.html"
    write_audit_page(path, artifact, title="Audit", about={"Unlearned": EVIL}, **options)
    return path.read_text().replace("\N{NO-BREAK SPACE}", " ")


def test_still_written_texts_come_first_with_a_picture(artifact):
    html = page_of(artifact)
    first = html[html.index('<div id="first">') : html.index("<section")]
    assert (
        '<p class="lead">The unlearned model still writes 50 % [30, 70] of the texts, the original '
        "90 % [68, 98]. Verdict: still written.</p>"
    ) in first
    assert "Written: 7 true words in a row is the most that the control writes" in first
    assert "Still written: more than chance explains. 10 texts audited" in first
    for name in ("still-written", "shares", "losses"):
        assert f'<figure id="figure-{name}">' in first
    hovers = re.findall(r"<title>(.*?)</title>", first)
    run_hovers = [hover for hover in hovers if "true words in a row" in hover]
    models = ("original", "unlearned", "retrained")
    # In both sizes: the best of two samples, longest first.
    runs = [f"{words(model, chunk):g}" for chunk in range(10) for model in models]
    assert [re.search(r"writes (\d+) true", hover)[1] for hover in run_hovers] == [*runs, *runs]
    assert "Unlearned: 0.50 [0.30, 0.70]" in hovers
    badges = re.findall(r'<li class="(.*?)"><a href="#checks">', first)
    assert badges == ["passed", "passed", "failed", "open"]
    # The rule follows with its error rates.
    rule = Page(html).text("rule")
    assert "Classified as not forgotten: a share of 0.25 [0.10, 0.40] of the texts" in rule
    assert "it misses 0.60 [0.30, 0.80]" in rule
    assert html.index('id="texts"') < html.index('id="rule"')


def test_tables_match_the_artifact_and_texts_are_escaped(artifact):
    html = page_of(artifact)
    page = Page(html)
    assert EVIL not in html
    assert EVIL in unescape(html)
    (first,) = page.titled("Text by text")
    (further,) = page.titled("Further texts")
    named = [*first.column("Text"), *further.column("Text")]
    assert named == [f"id-{chunk}, characters 0 to 90" for chunk in range(10)]
    assert first.column("Words, unlearned") == [f"{12 - chunk}" for chunk in range(6)]
    assert first.column("Written") == ["yes"] * 5 + ["no"]
    assert "| truth 0" in first.rows[1][-1].text
    assert first.rows[1][-1].note.split(": ")[1] == "original wrote 0 Unlearned"
    assert further.rows[-1][-1].text == "Protected: the text is not shown."
    hidden = page_of(artifact, hide_texts=True)
    assert "beginning of text" not in hidden
    assert "wrote 0" not in hidden
    assert "id-0" in hidden


def test_page_without_a_control_shows_the_headline_but_no_shares(artifact):
    nothing = dict.fromkeys(("value", "low", "high"), float("nan"))
    rows = [{"seed": None, "method": "npo", "copies": "all", "quantity": name, **nothing,
             "chunks": 10, "seeds": 1, "note": "there is no control"}
            for name in NUMBERS]  # fmt: skip
    write_findings(artifact, {"unlearning_audits": pa.Table.from_pylist(rows)})
    record = json.loads((artifact / AUDIT_FILE).read_text())
    (artifact / AUDIT_FILE).write_text(
        json.dumps({**record, "levels": dict.fromkeys(record["levels"])})
    )
    html = page_of(artifact)
    assert 'id="figure-still-written"' in html
    assert "Dashed" not in html
    assert '<p class="lead">What the headline says. Verdict: still written.</p>' in html
    assert 'id="figure-shares"' not in html
    assert "Classified as not forgotten" not in html


def test_audit_page_keeps_the_layout_limits(artifact):
    page_of(artifact)
    with chromium() as browser:
        assert measure(browser, artifact / "page.html")["broken"] == []
