"""The section on score correction says what is removed, by what, and where there is nothing."""

from analysis.page.parts import Columns, Note
from analysis.page.sections.correction import correction_section
from analysis.page.table import Table
from analysis.results import analyse
from tests.analysis.correction.made import answered, without
from tests.analysis.synthetic import FAST, make_arm
from tests.analysis.viewing import view_of


def section_of(tmp_path, *, names=(), **more):
    arm = make_arm(tmp_path / "arm", axes={}, seed=0, effect=1.5, datasets=("fictional",))
    arm = without(answered(arm, tmp_path / "answers", **more), *names)
    analysis = analyse([arm], FAST)
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
