"""A section's layout: columns, open and folded rows, and that no rows are lost."""

import pytest

from analysis.page.drawing.elements import Drawing
from analysis.page.drawing.picture import Picture
from analysis.page.parts import HALF, Columns, Fold, Note, answer
from analysis.page.table import Table, TableColumn

TITLES = ("anchor", "Short", "A question?")


def table(rows: int) -> Table:
    return Table(
        title="T", columns=(TableColumn("X"),), rows=tuple((f"{at}",) for at in range(rows))
    )


def drawn(width: float) -> Picture:
    return Picture("p", "P", "", Drawing("", ""), [], width)


@pytest.mark.parametrize("width", [HALF, HALF + 1])
def test_a_wide_picture_has_its_table_below_it(width):
    picture, numbers = drawn(width), table(2)
    section = answer(*TITLES, "So.", picture, numbers)
    layout = [Columns([picture, numbers], "answer")] if width <= HALF else [picture, numbers]
    assert section.parts == [Note("So.", "say"), *layout]


def test_further_rows_are_folded_below_the_notes_without_loss():
    whole, note = table(5), Note("loud")
    section = answer(*TITLES, "", whole, note, extra=["more", None], open_rows=3, others="things")
    columns, below, fold, more = section.parts
    assert (below, more) == (note, "more")
    assert isinstance(fold, Fold)
    assert fold.title == "The other 2 things"
    assert (*columns.parts[0].rows, *fold.parts[0].rows) == whole.rows
    assert answer(*TITLES, "", whole, open_rows=5).parts == [Columns([whole], "answer")]


def test_an_empty_section_is_omitted():
    assert answer(*TITLES, "", None, extra=[None]) is None
