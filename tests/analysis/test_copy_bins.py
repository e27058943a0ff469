import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.copy_bins import (
    copies_cells,
    copies_middle,
    copies_order,
    copies_start,
    is_dose,
    merge_bins,
)


def test_bins_are_single_counts_and_then_double():
    labels = [cell.label for cell in copies_cells(range(40), high_copies=4)]
    assert labels == ["all", "0", "1", "2", "3", "4", "5-8", "9-16", "17-32", "33-39", "4+"]


def test_bin_labels_use_the_counts_that_occur():
    """319 of 320 copies were read: 39 members have eight copies and one has seven."""
    labels = [cell.label for cell in copies_cells([8] * 39 + [7], high_copies=4)]
    assert labels == ["all", "7-8", "4+"]


def test_labels_of_one_bin_are_merged_under_the_occurring_bounds():
    bins = merge_bins(["16", "5-7", "1", "9-12", "6", "5-8"])
    assert bins == {"1": ["1"], "5-8": ["5-7", "5-8", "6"], "9-16": ["9-12", "16"]}
    assert [copies_middle(label) for label in ("4", "5-8")] == [4, 6.5]


@given(st.lists(st.integers(0, 200), min_size=1))
def test_counts_belong_to_one_dose_and_zero_is_excluded_from_all(counts):
    cells = copies_cells(counts, high_copies=4)
    array = np.array(counts)
    doses = [cell for cell in cells if is_dose(cell.label)]
    assert (sum(cell.holds(array).astype(int) for cell in doses) == 1).all()
    assert (cells[0].holds(array) == (array > 0)).all()
    for cell in doses:
        assert cell.holds(array).any()
        assert cell.low <= copies_start(cell.label) <= cell.high


def test_labels_sort_by_smallest_count_between_the_summary_rows():
    labels = ["4+", "17-32", "4", "all", "0", "5-8", "8"]
    assert sorted(labels, key=copies_order) == ["all", "0", "4", "5-8", "8", "17-32", "4+"]
