"""The section on unlearned models: the table's numbers and their reference models."""

import dataclasses
import re

import pytest

from analysis.page.content import build_page
from analysis.page.inputs import PageInputs
from analysis.page.unlearning.audits import audit_tables
from analysis.page.unlearning.methods import MethodEntry, unlearning_paragraphs
from analysis.page.unlearning.sections import UnlearningInputs, unlearning_notes
from analysis.page.unlearning.study import UnlearningArm, by_arm, method_title
from analysis.page.unlearning.tables import NUMBER, SIGNED, steps_text
from analysis.page.unlearning.verdicts import leading_sentences
from analysis.references import bibliography
from scripts.pictures.page_measures import measure
from tests.analysis.unlearned import DOSES, METHODS, audit_rows, measured_rows, verdict_rows
from tests.pages import Page, chromium

EVIL = '<script>alert("x")</script>'
WARNING = "the denominator is small"


def render(inputs: PageInputs) -> str:
    return build_page(inputs).html


@pytest.fixture(scope="module")
def report(analysed):
    rows = measured_rows()
    warned = [row for row in rows if row["measure"] == "privleak"][:2]
    for row in warned:
        row["note"] = f"any seed; {WARNING}"
    return PageInputs(
        name="unlearning",
        arms=analysed.arms,
        analysis=analysed.analysis,
        experiment_yaml="name: unlearning\n",
        unlearning=UnlearningInputs(measures=rows, verdicts=verdict_rows()),
    )


@pytest.fixture(scope="module")
def page(report):
    return Page(render(report))


def test_verdicts_come_first_and_all_models_have_a_row(report, page):
    html = render(report)
    lead = html[html.index('<div id="first">') : html.index("<section")]
    assert (
        "Gradient ascent-once, Gradient difference, KL and 8 others brought the model near one "
        "that never saw the texts (within [−0.08, 0.32]); Gradient ascent ruined it (retained text "
        "−0.40 [−0.60, −0.20] nats per token)."
    ) in page.text("").replace("\N{NO-BREAK SPACE}", " ")
    badges = re.findall(r'<li class="(\w+)"><a href="#forgot">.*?<b>(.*?)</b><small>(.*?)<', lead)
    titles = [*map(method_title, METHODS[1:]), "Gradient ascent"]
    assert badges == [
        *(("passed", name, "closer to the retrained") for name in titles[:-1]),
        ("failed", "Gradient ascent", "ruined"),
    ]
    text = page.text("forgot").replace("\N{NO-BREAK SPACE}", " ")
    assert (
        "min_k distinguishes the forgotten texts from unseen ones with AUC 0.92 [0.87, 0.97] under "
        "the original model and 0.50 [0.45, 0.55] under the retrained model; after unlearning with "
    ) in text
    (forgetting,) = page.titled("Forgetting.")
    models = ["original model", "retrained model", *map(method_title, METHODS)]
    assert forgetting.column("Model") == models
    assert forgetting.column("AUC")[:2] == ["0.92 [0.87, 0.97]", "0.50 [0.45, 0.55]"]
    assert forgetting.column("Minus the retrained's")[1] == "–"
    assert forgetting.column("Minus the retrained's")[0] == "+0.42 [+0.36, +0.48]"
    assert forgetting.column("KS p")[0] == "0.020"
    counts = (
        "27 texts, 54 that no model saw, 81 different groups, 3 training seeds; texts are summed "
        "over seeds."
    )
    assert counts in forgetting.caption
    (back,) = page.titled("Effect of relearning")
    assert [place.text for place in back.heads] == [
        *("Model", "Before", "After 8", "After 8, minus the retrained's", "Steps to relearn")
    ]
    assert back.column("Model") == models[2:]
    assert back.column("After 8, minus the retrained's")[0] == "+0.85 [+0.65, +1.05]"
    (utility,) = page.titled("Utility")
    assert "General text: 81 documents, the same in all seeds. 27 texts" in utility.caption
    for title in ("Memorisation", "Utility"):
        (table,) = page.titled(title)
        assert table.column("Model") == models


def test_breakdowns_have_one_column_per_value(page):
    (copies,) = page.titled("By copies")
    assert [place.text for place in copies.heads] == [
        *("Model", "1 copy", "8 copies", "40 copies", "Trend")
    ]
    (lasting,) = page.titled("Does forgetting last?")
    assert [place.text for place in lasting.heads] == ["Model", "as it is", "4bit"]
    assert lasting.column("4bit")[0] == "–"
    assert lasting.column("4bit")[lasting.column("Model").index("NPO")] == "+0.12 [+0.06, +0.18]"


def test_pictures_contain_the_numbers_of_the_table(report):
    html = render(report).replace("\N{NO-BREAK SPACE}", " ")
    arm = UnlearningArm(found=by_arm(report.unlearning.measures)[""])

    def hovers(name: str) -> set[str]:
        figure = html[html.index(f'<figure id="figure-{name}"') :].partition("</figure>")[0]
        return {hover.partition(" ·")[0] for hover in re.findall(r"<title>(.*?)</title>", figure)}

    auc_hovers, copies_hovers = hovers("forgotten-auc"), hovers("unlearning-copies")
    for method in METHODS:
        title = method_title(method)
        for detector in arm.detectors:
            cell = arm.get("auc", method=method, detector=detector)
            assert f"{title}, {detector}: AUC {NUMBER.brief(cell)}" in auc_hovers
    for method in METHODS[:10]:
        for dose in DOSES:
            copies = "1 copy" if dose == "1" else f"{dose} copies"
            place = {"method": method, "detector": "min_k", "copies": dose}
            number = SIGNED.brief(arm.get("auc_difference", **place)).replace(
                " ", " AUC of min_k ", 1
            )
            assert f"{method_title(method)}, {copies}: {number}" in copies_hovers


def test_unlearning_sections_come_first_if_present(report):
    pages = build_page(report)
    order = ["experiment", "forgot", "left", "kept", "lasting", "before", "checks"]
    assert re.findall(r'<section id="(.*?)"', pages.html)[: len(order)] == order
    # Detectors have one section on a separate page.
    assert 'id="detector"' in pages.siblings["detectors.html"]
    assert 'id="detector"' not in pages.html
    assert "brought the model near" in pages.sentences[0]
    without = build_page(dataclasses.replace(report, unlearning=None))
    assert "unlearning" not in without.html.replace("name: unlearning", "").split("<main>")[1]
    assert "detectors.html" not in without.siblings


def test_audits_come_last_with_page_links_and_escaped_names(report):
    measures = measured_rows(methods=(EVIL,), axes={"train.lr": EVIL}, detectors=(EVIL,))
    measures[0]["note"] = EVIL
    audited = UnlearningInputs(
        measures=measures,
        verdicts=verdict_rows(methods=(EVIL,)),
        audits=audit_rows(methods=("npo", EVIL), seeds=2),
        audit_pages=["audits/npo-seed=0.html", f"audits/{EVIL}.html"],
    )
    html = render(dataclasses.replace(report, unlearning=audited))
    assert html.index('id="forgot"') < html.index('id="unlearning-audits"')
    assert '<a href="#unlearning-audits">' in html
    assert '<a href="audits/npo-seed%3D0.html">npo-seed=0</a>' in html
    assert EVIL not in html
    assert "&lt;script&gt;alert" in html
    seen = Page(html)
    pooled, rule = seen.titled("The ratio rule")
    assert pooled.column("Audit") == ["NPO", EVIL]
    assert pooled.column("False positives") == ["0.08 [0.00, 0.35]", "0.18 [0.00, 0.35]"]
    assert "48 texts per audit" in pooled.caption
    assert rule.column("Audit")[:3] == ["NPO, seed 0", "NPO, seed 1", f"{EVIL}, seed 0"]
    assert rule.column("False positives")[1] == "0.06 [0.00, 0.35]"
    (written,) = seen.titled("The rule, by copies")
    assert [place.text for place in written.heads] == ["Audit", "1 copy", "8 copies"]
    own = dict(zip(written.column("Audit"), written.column("8 copies"), strict=True))
    assert own["NPO, still written"] == "0.21 [0.00, 0.50]"
    (single,) = audit_tables(audit_rows(methods=("npo", EVIL), seeds=1))
    assert [single.title, single.rows[0][0]] == ["The ratio rule", "NPO, seed 0"]
    assert "missed: nothing is remembered" in seen.text("unlearning-audits")
    assert audit_tables([]) == []


def test_verdicts_show_their_basis_and_warnings_appear_once(report, page):
    notes = unlearning_notes(report.unlearning.measures)
    assert notes == [f"{WARNING} (privleak; original model)"]
    assert WARNING in page.text("forgot")
    (basis,) = page.titled("Basis of the verdicts")
    assert basis.column("Measure")[:3] == [
        "AUC of min_k",
        "retained text, against the retrained",
        "retained text, against the original",
    ]
    assert basis.column("Position")[:2] == ["0.12 [−0.08, 0.32]", "–"]
    assert basis.column("Difference")[:2] == ["–", "−0.50 [−0.70, −0.30]"]


def test_interval_scope_names_seeds_and_never_a_caution():
    for seeds, scope in ((3, "any seed"), (1, "these models"), (2, None)):
        rows = measured_rows(seeds=seeds)
        for row in rows:
            row["note"] = "not to be trusted: 10 groups of members"
        text = leading_sentences([], rows)[1]
        assert text.partition("Intervals apply to ")[2] == (f"{scope}." if scope else "")


def test_unreached_steps_are_reported():
    nan = float("nan")
    assert steps_text({"value": 4.0, "note": "no interval: one of the steps looked at"}) == "4"
    assert steps_text({"value": nan, "note": "not back after 16 steps"}) == "not reached"
    assert steps_text({"value": nan, "note": "no value"}) == ""


def test_methods_text_names_all_settings_and_cites_all_methods():
    made = [
        MethodEntry("npo", "npo", {"lr": 1e-5, "beta": 0.1, "lora": None, "retain": True}),
        MethodEntry("mine", "mine.py:forget", {"betas": (0.9, 0.95)}),
    ]
    (text,) = unlearning_paragraphs(made)
    assert "negative preference optimisation (Zhang et al. 2024)" in text
    assert "mine.py:forget (no published source)" in text
    assert "npo: lr 1e-05, beta 0.1, retain yes; mine: betas 0.9/0.95." in text
    assert unlearning_paragraphs([]) == ()


def test_described_methods_have_a_bibliography_entry():
    from analysis.page.unlearning.methods import _WORDS

    cited = {purpose for entry in bibliography() for purpose in entry.cited_for}
    assert {
        purpose.partition(":")[2] for purpose in cited if purpose.startswith("unlearning:")
    } == set(_WORDS)


def test_page_of_twelve_methods_in_two_arms_keeps_the_layout_limits(report, tmp_path):
    made = {
        name: [row for lr in ("0.001", "0.01") for row in rows(axes={"train.lr": lr})]
        for name, rows in (("measures", measured_rows), ("verdicts", verdict_rows))
    }
    wide = UnlearningInputs(**made, audits=audit_rows(methods=METHODS, seeds=2))
    (tmp_path / "report.html").write_text(render(dataclasses.replace(report, unlearning=wide)))
    with chromium() as browser:
        assert measure(browser, tmp_path / "report.html")["broken"] == []


def test_representative_detector_is_the_first_of_a_fixed_list():
    def headline(*detectors: str) -> str:
        return UnlearningArm(found=by_arm(measured_rows(detectors=detectors))[""]).detector

    assert headline("zlib", "loss", "min_k") == "min_k"
    assert headline("zlib", "reference", "loss") == "loss"
    assert headline("my_own", "reference") == "my_own"
    assert UnlearningArm(found=by_arm([])[""]).detector == ""
