"""The section on score correction says what is removed, by what, and where there is nothing."""

from analysis.page.parts import Columns, Note, pictures_in
from analysis.page.sections.correction import correction_section
from analysis.page.table import Table
from analysis.results import analyse
from tests.analysis.correction.made import answered, without
from tests.analysis.synthetic import FAST, make_arm
from tests.analysis.viewing import view_of


WHOLE = FAST.model_copy(update={"min_members": 1000})
"""Without rows by copies, which take most of the time."""


def section_of(tmp_path, *, names=(), settings=WHOLE, **more):
    arm = make_arm(tmp_path / "arm", axes={}, seed=0, effect=1.5, datasets=("fictional",))
    arm = without(answered(arm, tmp_path / "answers", **more), *names)
    analysis = analyse([arm], settings)
    return correction_section(analysis.tables["correction"], [], view_of([arm], analysis))


def sentence(section) -> str:
    return next(part.text for part in section.parts if isinstance(part, Note))


def tables(section) -> list[Table]:
    parts = [
        p for part in section.parts for p in (part.parts if isinstance(part, Columns) else [part])
    ]
    return [part for part in parts if isinstance(part, Table)]


def test_it_names_inflation_best_corrector_and_best_auc(tmp_path):
    section = section_of(tmp_path, gain=0.8)
    text = sentence(section)
    assert text.startswith("fictional, 30% contaminated, 100 items of known membership")
    assert "the score minus the clean twin's is +" in text
    assert "of the inflation" in text
    assert "best AUC" in text
    (table,) = tables(section)
    assert table.heads == ("Detector", "Weighted", "Hard", "Largest gain", "Combined")
    assert len(table.rows) == 4
    (picture,) = pictures_in(section.parts)
    lines = dict.fromkeys(row["estimator"] for row in picture.rows)
    assert [*lines][:5] == ["Naive", *(f"{name} {DETECTOR}" for name in table.heads[1:])]
    assert len(lines) == 15
    assert {row["calibration_items"] for row in picture.rows} == {"10", "20", "50", "100"}
    # The number at which nothing is found has a line of its own.
    assert '"ch"' in picture.drawing.wide


def test_a_target_from_the_base_model_is_announced(tmp_path):
    section = section_of(tmp_path, names=("twin_answers",))
    assert "the base model's, which lacks the background" in sentence(section)


def test_an_accuracy_at_chance_is_reported_without_a_table(tmp_path):
    section = section_of(tmp_path, clean=0.25)
    assert sentence(section).startswith("Clean accuracy is within noise of chance")
    assert sentence(section).endswith("fictional.")
    assert tables(section) == []


def test_without_answers_there_is_no_section(tmp_path):
    assert section_of(tmp_path, names=("answers",)) is None


def test_errors_by_copies_are_a_table_with_members_and_the_best_detector(tmp_path):
    table = tables(section_of(tmp_path, settings=FAST, gain=0.8))[-1]
    assert table.title == "Error by copies of the members"
    assert table.heads[:4] == ("Copies", "Naive", "Imputed", "Oracle")
    heads = [str(row[0]) for row in table.rows]
    assert heads[0].startswith("1 or more copies (")
    assert any(head.startswith("4 copies (") for head in heads)
