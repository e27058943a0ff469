"""The section on claims."""

from math import nan

from analysis.findings import question_table
from analysis.page.parts import pictures_in
from analysis.page.sections.claims import claims_section
from analysis.page.table import Table

ROW = {
    "claim": "tail",
    "kind": "effect",
    "comparison": "tail × 10",
    "detector": "min_k",
    "copies": "all",
    "measure": "probit",
    "verdict": "both",
    "value": -0.021,
    "low": -0.029,
    "high": -0.013,
    "margin": 0.03,
    "members_per_seed": 60,
    "nonmembers_per_seed": 450,
    "n_seeds": 8,
    "hypothesis": "A longer tail lowers AUC.",
    "note": "",
}
OPEN = {
    **ROW,
    "claim": "dose",
    "measure": "dose75",
    "verdict": "not answered",
    "value": nan,
    "low": nan,
    "high": nan,
    "note": "small: more than 32 copies",
}


def test_section_shows_hypothesis_verdict_effect_and_rows_per_seed():
    section = claims_section(question_table("claims", [], [ROW, OPEN]), "ab" * 32, {})
    sentence, _, table = section.parts
    [[effect]] = [picture.rows for picture in pictures_in(section.parts)]
    assert (effect["claim"], effect["detector"], effect["high"]) == ("tail", "min_k", -0.013)
    assert "2 verdicts" in sentence.text
    assert "digest abababababab" in sentence.text
    assert isinstance(table, Table)
    texts = [[str(cell) for cell in row] for row in table.rows]
    assert texts[0] == [
        "tail (A longer tail lowers AUC.)",
        "min_k",
        "both",
        "tail × 10 (AUC at 0.70)",
        "−0.021 [−0.029, −0.013] (margin 0.03, 8 seeds, 60 + 450 rows each)",
    ]
    assert texts[1][2] == "not answered (small: more than 32 copies)"


def test_run_without_claims_has_no_section():
    assert claims_section(None, "", {}) is None
    assert claims_section(question_table("claims", [], []), "", {}) is None
