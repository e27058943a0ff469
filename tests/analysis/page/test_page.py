import dataclasses
import re
import shutil
from html import unescape

import pytest

from analysis.page.content import build_page
from analysis.page.inputs import ModelStream, PageInputs, StepRecord
from analysis.page.parts import script_digest
from analysis.page.sections.detector import detector_notes
from analysis.page.streams import share_sentence, stream_audits, stream_listing, stream_sentences
from analysis.page.table import listing
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from detect.scores.table import read_scores, write_scores
from inject.examples.example import example_id, write_examples
from inject.stream.audit_report import AuditReport, write_audit
from inject.stream.exposures import CopyOutcomes
from tests.analysis.synthetic import make_arm, make_examples
from tests.pages import Page

FAST = AnalysisSettings(replicates=100)
EVIL = '<script>alert("x")</script>'


def step(name: str, tokens: int | None = None, seconds: float = 1.0, **more) -> StepRecord:
    plain = {"created": "2026-01-01T00:00:00+00:00", "code": "1.0", "machine": "x86_64"}
    return StepRecord(name=name, tokens=tokens, seconds=seconds, **{**plain, **more})


def page_of(arms, analysis, **more) -> str:
    """Return all pages of a run, joined."""
    inputs = {"name": "x", "experiment_yaml": "", "arms": arms, "analysis": analysis}
    return all_pages(PageInputs(**{**inputs, **more}))


def all_pages(inputs: PageInputs) -> str:
    page = build_page(inputs)
    return "\n".join([page.html, *page.siblings.values()])


def visible(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", html))


@pytest.fixture(scope="module")
def inputs(analysed) -> PageInputs:
    return PageInputs(
        name="copies-small",
        experiment_yaml="name: copies-small\n",
        arms=analysed.arms,
        analysis=analysed.analysis,
        audits={"": {"passed": True, "members": 120}},
        steps=[step("corpus", None, 3.0), step("model", 500_000, 75.0)],
        figure_links=True,
    )


@pytest.fixture(scope="module")
def pages(inputs) -> dict[str, str]:
    page = build_page(inputs)
    return {"report.html": page.html, **page.siblings}


@pytest.mark.parametrize("name", ["report.html", "results.html", "examples.html", "methods.html"])
def test_each_page_is_one_well_formed_file_that_loads_nothing(pages, name):
    page = Page(pages[name])
    assert page.unclosed == []
    tags = page.tags
    assert {tag for tag, _ in tags}.isdisjoint({"link", "iframe", "object", "base", "form"})
    scripts = [attributes for tag, attributes in tags if tag == "script"]
    assert scripts == ([] if name == "report.html" else [{}])
    for tag, attributes in tags:
        for key in ("src", "href", "xlink:href"):
            link = attributes.get(key) or "#"
            sibling = (
                tag == "a" and key == "href" and (link in pages or link.startswith("figures/"))
            )
            assert sibling or link.startswith(("#", "data:image/png")), (tag, link)
        assert not any(key.startswith("on") for key in attributes)
    policy = [a["content"] for t, a in tags if t == "meta" and "http-equiv" in a]
    allowed = f"script-src '{script_digest()}'; " if scripts else ""
    assert policy[0].startswith(f"default-src 'none'; {allowed}style-src")
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids)), "ids of inlined figures must not clash"


def test_answers_come_first_and_details_are_on_sibling_pages(inputs, pages):
    order = ("experiment", "detector", "copies", "rates", "checks")
    places = [pages["report.html"].index(f'<section id="{name}">') for name in order]
    assert places == sorted(places)
    html = "".join(pages.values())
    for name in ("copies", "detectors", "scores", "training"):
        assert html.count(f'<figure id="figure-{name}">') == 1, name
    assert "Its steps took 1 min 18 s of computing" in visible(pages["methods.html"])
    text = visible(pages["report.html"])
    assert "too few for 0.1 %, 1 %, 5 % or 10 %" in text
    assert "False-discovery-rate control" in text
    assert "non-members of the tuning split" in text
    assert "Every AUC of this run" not in text


def test_a_single_page_links_only_to_itself(inputs):
    single = build_page(dataclasses.replace(inputs, figure_links=False)).html
    links = [a["href"] for tag, a in Page(single).tags if tag == "a"]
    assert links
    assert all(link.startswith("#") for link in links)


def test_all_texts_are_escaped(tmp_path):
    arm = make_arm(
        tmp_path,
        axes={"train.lr": EVIL},
        seed=0,
        effect=1.0,
        datasets=(EVIL, "news"),
        unscored={"surp": 3},
        n=40,
    )
    analysis = analyse([arm], FAST)
    html = page_of(
        [arm],
        analysis,
        name=EVIL,
        experiment_yaml=f"name: {EVIL}",
        audits={EVIL: {"passed": False, EVIL: EVIL}},
        steps=[step(EVIL, 1, code=EVIL, machine=EVIL)],
        libraries={EVIL: EVIL},
        notes=[EVIL],
    )
    tags = Page(html).tags
    assert [tag for tag, _ in tags].count("script") == 3, (
        "only our own scripts on the sibling pages"
    )
    text = visible(html)
    assert text.count(EVIL) > 20
    assert "<b>a text & its facts</b>" not in html
    assert "<b>a text & its facts</b>" in text


def test_protected_texts_are_hidden_unless_requested(tmp_path):
    pool = []
    for example in make_examples(0, n=40):
        hidden = example.dataset == "news"
        text = f"{'CANARY' if hidden else 'open'} {example.text}"
        pool.append(
            dataclasses.replace(example, text=text, example_id=example_id(text), protected=hidden)
        )
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, examples=pool)
    write_examples(arm.examples, pool)
    analysis = analyse([arm], FAST)
    hidden = page_of([arm], analysis)
    assert "CANARY" not in hidden
    assert "Protected: the text is not shown." in hidden
    assert "open fictional" in hidden
    assert "CANARY" in page_of([arm], analysis, show_protected=True)


def test_a_page_without_results_is_still_made():
    text = visible(page_of([], analyse([], FAST)))
    assert "nothing to conclude" in text
    assert "not measured" in text


def test_a_value_on_its_own_rows_is_marked_and_never_best(tmp_path):
    """surp scores a third of the members; its numbers are in the same table as the others."""
    unscored = {"surp": 60}
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), unscored=unscored)
    analysis = analyse([arm], FAST)
    page = Page(page_of([arm], analysis))
    expected = {
        row["detector"]: f"{row['n_members']:,} + {row['n_nonmembers']:,}"
        for row in analysis.metrics.to_pylist()
        if (row["dataset"], row["copies"], row["metric"], row["selection"])
        == ("all", "all", "auc", "tuned")
    }
    assert expected["surp"] != expected["loss"]
    table = page.titled("By realised copies")[0]
    notes = {row[0].text: row[1].note or table.heads[1].note for row in table.rows[1:]}
    del expected["blind"]
    assert {name: note.split(",")[0] for name, note in notes.items()} == expected
    board = next(grid for grid in page.tables if grid.heads[1].text == "AUC, tuning split")
    for grid in (table, board):
        (surp,) = [row for row in grid.rows if row[0].text == "surp"]
        assert not any("strong" in place.classes for place in surp)
    assert "on its own rows" in surp[0].note


def test_rates_that_no_detector_supports_have_no_column(tmp_path):
    for n, lacking in ((160, "0.1 %, 1 % or 5 %"), (40, "0.1 %, 1 %, 5 % or 10 %")):
        arm = make_arm(tmp_path / str(n), axes={}, seed=0, effect=1.0, datasets=("news",), n=n)
        page = Page(page_of([arm], analyse([arm], FAST)))
        tables = page.titled("True-positive rate")
        heads = [[head.text for head in table.heads] for table in tables]
        assert heads == ([["Detector", "at 10 % false positives"]] if n == 160 else [])
        assert f"too few for {lacking}." in page.text("rates")


def test_listings_omit_uninformative_columns():
    rows = [("a", "m", "0", ""), ("b", "m", "1", "")]
    table = listing("T", ("Arm", "Model", "Seed", "Note"), rows)
    assert table.heads == ("Arm", "Seed")
    assert [column.right for column in table.columns] == [False, True]
    assert table.caption == "Model in all rows: m."
    single = listing("T", ("Arm", "Model", "Note"), [("a", "m", "")])
    assert single.heads == ("Arm", "Model")
    assert listing("T", ("Arm",), []) is None


def test_a_copy_that_was_not_read_is_explained():
    copies = CopyOutcomes(planned=320, whole=319, altered=0, partly=1, never=0, first_altered=())
    stream = ModelStream(
        axes={}, model="contaminated", seed=0, tokens=1000, payload=520, copies=copies
    )
    (first,) = stream_sentences([stream])
    assert "Of 320 planned copies 319 were read whole: 1 cut by the end of" in first
    assert share_sentence([stream]).startswith("Copies are 52 % of the training tokens")
    assert stream_listing([stream]).rows[0][-3:] == ("320", "319", "52 %")
    sparse = dataclasses.replace(
        stream, tokens=10**6, payload=1200, copies=copies._replace(whole=320, partly=0)
    )
    assert stream_sentences([sparse]) == []
    assert share_sentence([sparse]) == ""
    assert stream_listing([sparse]).rows[0][-1] == "0.12 %"


def test_detector_notes_appear_once_and_escaped(inputs, pages, tmp_path):
    arms = []
    for at, arm in enumerate(inputs.arms):
        shutil.copytree(arm.scores, tmp_path / str(at))
        extra = ["loss: only here"] if at == 0 else []
        notes = [f"loss: {EVIL}", "zlib: shown elsewhere", *extra]
        write_scores(tmp_path / str(at), read_scores(arm.scores), record={"notes": notes})
        arms.append(dataclasses.replace(arm, scores=tmp_path / str(at)))
    notes = detector_notes(arms, besides={"zlib: shown elsewhere"})
    assert notes[0] == f"loss: {EVIL}"
    assert notes[1].startswith("loss: only here (contaminated")
    assert len(notes) == 2
    noted = build_page(dataclasses.replace(inputs, arms=arms, notes=["zlib: shown elsewhere"])).html
    assert "Notes of detectors: 2" in noted
    assert EVIL not in noted
    assert noted.count("&lt;script&gt;alert") == 1
    assert "Notes of detectors" not in pages["report.html"]


def test_streams_with_one_label_are_distinguished_and_shared_ones_shown_once(tmp_path):
    """Models trained for other experiments keep the labels of those experiments."""
    for digest, passed in (("a" * 12, True), ("b" * 12, False)):
        folder = tmp_path / f"poisson=2-splice-seed0-{digest}"
        folder.mkdir()
        report = AuditReport(
            passed=passed, members=1, nonmembers=1, zero_copy_members=0, copies_expected=1,
            copies_found=1, displaced=(), wrong_counts=(), nonmembers_found=(),
            background_hits=(), tokens_searched=1,
        )  # fmt: skip
        write_audit(folder, report)
    good, bad = sorted(tmp_path.iterdir())
    for order in ((good, bad), (bad, good)):
        audits = stream_audits([("seed=0", path) for path in order])
        assert [audit.passed for audit in audits.values()] == [path == good for path in order]
        assert all("seed=0 (audit " in name for name in audits)
    shared = stream_audits([("lr=1,seed=0", good), ("lr=2,seed=0", good)])
    assert list(shared) == ["lr=1,seed=0; lr=2,seed=0"]
