import dataclasses
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from analysis.figures.figures_step import results_figures
from analysis.figures.report_figure import write_figures
from analysis.page.examples import shorten
from analysis.page.notes import detector_notes
from analysis.page.render import render, write_report
from analysis.page.report import CostRow, Fact, Report
from analysis.page.streams import Stream, stream_rows, stream_sentences
from analysis.page.svg import inline_svg
from analysis.page.tables.listing import listing
from analysis.page.template import page_script
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from detect.scores.table import read_scores, write_scores
from inject.errors import SpikeinError
from inject.examples.example import example_id, write_examples
from inject.stream.exposures import CopyOutcomes
from tests.analysis.synthetic import make_arm, make_examples
from tests.pages import Page

FAST = AnalysisSettings(replicates=100)
EVIL = '<script>alert("x")</script>'
VOID = {"meta", "br", "img", "hr"}


class Outline(HTMLParser):
    """Tags that are not closed in order, all tags, and the visible text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text, self.ids = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for key, value in attrs if key == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def report(drawn):
    return Report(
        name="copies-small",
        arms=drawn.arms,
        analysis=drawn.analysis,
        experiment_yaml="name: copies-small\n",
        audits={"": {"passed": True, "members": 120}},
        figures=drawn.figures,
        setup=[Fact("Model", "LLaMA")],
        cost=[CostRow("corpus", None, 3.0), CostRow("model", 500_000, 75.0)],
        provenance=[Fact("torch", "2.13.0")],
    )


def test_the_page_is_one_well_formed_file_that_loads_nothing(report, tmp_path):
    path = write_report(tmp_path, report)
    outline = Outline(path.read_text(encoding="utf-8"))
    assert outline.open == []
    names = {tag for tag, _ in outline.tags}
    assert names.isdisjoint({"link", "iframe", "object", "base", "form"})
    assert [attributes for tag, attributes in outline.tags if tag == "script"] == [{}]
    for tag, attributes in outline.tags:
        for key in ("src", "href", "xlink:href"):
            link = attributes.get(key) or "#"
            beside = tag == "a" and key == "href" and link.startswith("figures/")
            assert beside or link.startswith(("#", "data:image/png")), (tag, link)
        assert not any(key.startswith("on") for key in attributes)
    policy = [a["content"] for t, a in outline.tags if t == "meta" and "http-equiv" in a]
    digest = page_script().digest
    assert policy[0].startswith(f"default-src 'none'; script-src '{digest}'; style-src")
    assert len(outline.ids) == len(set(outline.ids)), "ids of inlined figures must not clash"
    assert list(tmp_path.iterdir()) == [path]


def test_validity_stands_before_results_and_every_figure_is_there(report):
    html = render(report)
    assert html.index('id="validity"') < html.index('id="experiment"') < html.index('id="results"')
    for figure in report.figures:
        assert f'<figure id="{figure.name}">' in html
    text = " ".join(Outline(html).text)
    assert "Its steps took 1 min 18 s of computing" in text
    assert "n is too small for 0.1 %, 1 %, 5 %, 10 % FPR" in text


def test_every_text_is_escaped(tmp_path):
    arms = [
        make_arm(
            tmp_path,
            axes={"train.lr": EVIL},
            seed=0,
            effect=1.0,
            datasets=(EVIL, "news"),
            unscored={"surp": 3},
            n=40,
        )
    ]
    analysis = analyse(arms, FAST)
    html = render(
        Report(
            name=EVIL,
            arms=arms,
            analysis=analysis,
            experiment_yaml=f"name: {EVIL}",
            description=EVIL,
            setup=[Fact(EVIL, EVIL)],
            audits={EVIL: {"passed": False, EVIL: EVIL}},
            figures=write_figures(tmp_path, results_figures(arms, analysis, FAST)),
            cost=[CostRow(EVIL, 1, 1.0)],
            provenance=[Fact(EVIL, EVIL)],
            notes=[EVIL],
        )
    )
    outline = Outline(html)
    assert [tag for tag, _ in outline.tags].count("script") == 1, "our own"
    assert "b" not in {t for t, a in outline.tags if t == "b" and "style" not in a}
    text = "".join(outline.text)
    assert text.count(EVIL) > 20
    assert "<b>a text & its facts</b>" in text


def test_protected_texts_stay_out_unless_asked_for(tmp_path):
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
    report = Report(name="p", arms=[arm], analysis=analysis, experiment_yaml="")
    hidden = render(report)
    assert "CANARY" not in hidden
    assert "Protected: the text is not shown." in hidden
    assert "open fictional" in hidden
    assert "CANARY" in render(dataclasses.replace(report, show_protected=True))


def test_a_report_without_results_still_renders():
    html = render(Report(name="empty", arms=[], analysis=analyse([], FAST), experiment_yaml=""))
    text = " ".join(Outline(html).text)
    assert "nothing to conclude" in text
    assert "not measured" in text


def test_a_control_character_in_a_swept_text_costs_no_page(tmp_path):
    # Matplotlib writes what it draws into comments as it stands.
    svg = tmp_path / "f.svg"
    svg.write_bytes(b'<svg xmlns="http://www.w3.org/2000/svg"><!-- a\x07b\x00 --><g/></svg>')
    assert "<g" in inline_svg(svg, "f", "a \x07 b")


def test_a_foreign_svg_is_refused(tmp_path):
    path = tmp_path / "x.svg"
    for body in (
        "<script>1</script>",
        '<path onclick="1"/>',
        '<image xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="http://x/y.png"/>',
        "<foreignObject/>",
    ):
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{body}</svg>')
        with pytest.raises(SpikeinError, match="refused"):
            inline_svg(path, "f", "a figure")


def test_a_value_on_rows_of_its_own_says_so_and_is_no_best(tmp_path):
    """surp scores a third of the members: its numbers stand beside those of the others."""
    unscored = {"surp": 60}
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), unscored=unscored)
    analysis = analyse([arm], FAST)
    figures = write_figures(tmp_path, results_figures([arm], analysis, FAST))
    page = Page(render(Report(name="n", arms=[arm], analysis=analysis, experiment_yaml="",
                              figures=figures)))  # fmt: skip
    wanted = {
        row["detector"]: f"{row['n_members']:,} + {row['n_nonmembers']:,}"
        for row in analysis.metrics.to_pylist()
        if (row["dataset"], row["copies"], row["metric"], row["selection"])
        == ("all", "all", "auc", "tuned")
    }
    assert wanted["surp"] != wanted["loss"]
    for title in ("Detectors and arms, tuned", "By realised copies"):
        table = page.titled(title)[0]
        shown = {row[0].text: row[1].note or table.heads[1].note for row in table.rows[1:]}
        assert {name: note.split(",")[0] for name, note in shown.items()} == wanted
        (surp,) = [row for row in table.rows if row[0].text == "surp"]
        assert not any("best" in place.classes for place in surp)
    members, nonmembers = wanted["surp"].split(" + ")
    for name in ("detectors", "roc"):
        caption = next(figure.caption for figure in figures if figure.name == name)
        assert f"On rows of their own: surp {members} and {nonmembers}" in caption
    detectors = next(figure.caption for figure in figures if figure.name == "detectors")
    assert f"surp (default) {members} and {nonmembers}" in detectors, "hollow marks count, too"


def test_rates_that_no_detector_supports_have_no_column(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=160)
    analysis = analyse([arm], FAST)
    page = Page(render(Report(name="r", arms=[arm], analysis=analysis, experiment_yaml="")))
    (table,) = page.titled("True-positive rate")
    assert [head.text for head in table.heads] == ["Detector", "10 % FPR"]
    assert "n is too small for 0.1 %, 1 %, 5 % FPR" in table.caption


def test_without_any_supported_rate_a_sentence_takes_the_place_of_the_table(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=40)
    analysis = analyse([arm], FAST)
    page = Page(render(Report(name="r", arms=[arm], analysis=analysis, experiment_yaml="")))
    assert page.titled("True-positive rate") == []
    text = page.text("results")
    assert "True-positive rate at a fixed false-positive rate." in text
    assert "n is too small for 0.1 %, 1 %, 5 %, 10 % FPR." in text
    assert "Under each detector" not in text


def test_listings_leave_out_columns_that_say_nothing():
    found = listing(
        "T", ("Arm", "Model", "Seed", "Note"), [("a", "m", "0", ""), ("b", "m", "1", "")]
    )
    assert found.columns == ("Arm", "Seed")
    assert found.caption == "Model in all rows: m."
    single = listing("T", ("Arm", "Model", "Note"), [("a", "m", "")])
    assert single.columns == ("Arm", "Model")
    assert listing("T", ("Arm",), []) is None


def test_a_copy_that_was_not_read_is_explained():
    copies = CopyOutcomes(planned=320, whole=319, altered=0, partly=1, never=0, first_altered=())
    stream = Stream(axes={}, model="contaminated", seed=0, tokens=1000, payload=520, copies=copies)
    first, second = stream_sentences([stream])
    assert "Of 320 planned copies 319 were read whole: 1 cut by the end of" in first
    assert second.startswith("Copies make up 52 % of the tokens")
    (row,) = stream_rows([stream])
    assert (row.planned, row.read, row.share) == ("320", "319", "52 %")
    sparse = Stream(axes={}, model="contaminated", seed=0, tokens=10**6, payload=1200,
                    copies=copies._replace(whole=320, partly=0))  # fmt: skip
    assert stream_sentences([sparse]) == [
        "Copies make up 0.12 % of the tokens of a training stream."
    ]


def test_long_texts_are_clipped_to_one_line():
    assert shorten("a\n b") == "a b"
    assert len(shorten("word " * 200)) <= 280
    assert shorten("word " * 200).endswith("…")


@pytest.mark.slow
def test_a_browser_draws_the_page(report, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    path = write_report(tmp_path, report)
    shot = tmp_path / "shot.png"
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    quiet = "--disable-background-networking --disable-component-update --disable-sync"
    subprocess.run(
        [
            browser,
            *flags.split(),
            *quiet.split(),
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1200,3000",
            f"--screenshot={shot}",
            path.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    from matplotlib.image import imread

    pixels = imread(shot)[..., :3]
    assert pixels.shape[:2] == (3000, 1200)
    assert pixels.std() > 0.05, "the page is not blank"


def test_decisions_with_a_bound_stand_on_the_page(report):
    found = report.analysis.flagged.to_pylist()
    assert {row["model"] for row in found} >= {"contaminated"}
    html = render(report)
    assert "Decisions with a bound on their errors" in html
    assert "non-members of the tune split" in html


def test_notes_of_detectors_stand_on_the_page_escaped_and_once(report, tmp_path):
    arms = []
    for at, arm in enumerate(report.arms):
        shutil.copytree(arm.scores, tmp_path / str(at))
        notes = [
            f"loss: {EVIL}",
            "zlib: shown elsewhere",
            *(["loss: only here"] if at == 0 else []),
        ]
        write_scores(tmp_path / str(at), read_scores(arm.scores), record={"notes": notes})
        arms.append(dataclasses.replace(arm, scores=tmp_path / str(at)))
    notes = detector_notes(arms, besides={"zlib: shown elsewhere"})
    assert notes[0] == f"loss: {EVIL}"
    assert notes[1].startswith("loss: only here (contaminated")
    assert len(notes) == 2
    html = render(dataclasses.replace(report, detector_notes=notes))
    assert "Notes of detectors: 2" in html
    assert EVIL not in html
    assert html.count("&lt;script&gt;alert") == 1
    assert "Notes of detectors" not in render(report)
