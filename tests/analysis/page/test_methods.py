"""The methods section of a paper: all values of the run, and only those."""

import re

import pytest

from analysis.page.inputs import NamedArtifact, PageInputs
from analysis.page.methods import describe_methods, methods_section, write_methods
from analysis.page.parts import render_page
from analysis.references import _parse_entries
from analysis.settings import AnalysisSettings
from detect.detector_table import describe_named
from tests.analysis.page.test_content import arm
from train.settings import BaseSettings


def methods(arms, **more):
    defaults = {
        "name": "study",
        "settings": arms,
        "seeds": (0, 1, 2),
        "detectors": [describe_named(name) for name in ("loss", "min_k", "lira")],
        "analysis_settings": AnalysisSettings(),
        "artifacts": [NamedArtifact("results", "ab" * 32, "cd" * 32)],
        "code": "0.1.0 (abc)",
        "libraries": {"torch": "2.13.0"},
    }
    return describe_methods(
        PageInputs(experiment_yaml="", arms=[], analysis=None, **{**defaults, **more})
    )


@pytest.fixture(scope="module")
def two():
    base = BaseSettings(tokens=4_000, lr=0.002, seed=7)
    return [arm(40_000, 0.001, base=base), arm(80_000, 0.01, base=base)]


def test_methods_text_contains_all_settings_and_swept_values(two):
    data, streams, models, detectors, statistics, software = methods(two).paragraphs
    assert "fictional: 1,200 members and 30 non-members" in data
    assert "25 % of the rows" in data
    assert "40,000 and 80,000 tokens" in streams
    assert "Copies of each member: poisson=2" in streams
    assert "The pretrained model some/model" in models
    assert "4,000 clean tokens (seed 7: AdamW, learning rate 0.002, schedule cosine" in models
    assert "AdamW, learning rate 0.001 and 0.01, schedule constant, warm-up over no st" in models
    assert "tokens per step 1,024, weight decay 0.1, betas 0.9/0.95" in models
    assert "with the seeds 0, 1, 2" in models
    assert "min_k (Shi et al. 2024 (Min-K% Prob), equation 1; k=0.2; tuned over" in detectors
    assert detectors.startswith("Detectors. A higher score means more likely a member. 3 detectors")
    assert "95 % intervals" in statistics
    assert "the 3 training seeds are readers" in statistics
    assert software.startswith("Software. spikein 0.1.0 (abc) with torch 2.13.0.")
    assert "results abababababab" in software


def test_methods_text_follows_the_analysis_settings(two):
    analysis_settings = AnalysisSettings(
        confidence=0.9, false_positive_rates=(0.05,), dataset_detectors=(), zero_copies="nonmember"
    )
    described = methods(two, analysis_settings=analysis_settings, seeds=(4,))
    statistics = described.paragraphs[4]
    assert "90 % intervals" in statistics
    assert "false-positive rates 5 % if" in statistics
    assert "one training seed an interval applies to this model" in statistics
    assert "are non-members." in statistics
    assert "Holm" not in statistics
    assert "holm1979simple" not in {reference.key for reference in described.references}
    assert "two training seeds" in methods(two, seeds=(1, 2)).paragraphs[4]


def test_cited_authors_are_in_the_references(two):
    described = methods(two)
    cited = " ".join(
        reference.fields["author"] + reference.fields["year"] for reference in described.references
    )
    named = re.findall(r"([A-Z][A-Za-z]+) (?:et al\. |and [A-Z][a-z]+ |\()?\(?((?:19|20)\d\d)",
                       " ".join(described.paragraphs))  # fmt: skip
    sources = {"Newcombe", "Hillis", "DeRouen", "Rosner", "Hsu", "Price"}
    assert sources <= {name for name, _ in named}
    assert {"DeLong", "Obuchowski", "Shi", "Yeom", "Carlini", "Smyth"} <= {
        name for name, _ in named
    }
    for name, year in named:
        assert name in cited, name
        assert year in cited, (name, year)


def test_methods_files_match_the_page_and_markup_is_escaped(two, tmp_path):
    described = methods(two, name="</script><b>")
    write_methods(tmp_path, described)
    text = (tmp_path / "methods.md").read_text(encoding="utf-8")
    assert all(paragraph in text for paragraph in described.paragraphs)
    entries = _parse_entries((tmp_path / "references.bib").read_text(encoding="utf-8"))
    assert [entry.key for entry in entries] == [reference.key for reference in described.references]
    assert len(entries) > 10
    html = render_page("report", "x", [], [methods_section(described, linked=False)], script=False)
    assert "4,000 clean tokens (seed 7" in html
    assert "@misc{shi2024detecting," in html
    assert 'href="methods.md"' not in html, "the page links to a file that does not exist"
    assert "<b>" not in html.split('id="methods"')[1].split("</section>")[0]
