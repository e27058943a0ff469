"""The experiment of Ravichander et al. 2025, Table 4, in seconds: GPQA's rows in memory alone."""

from pathlib import Path

import pytest

from scripts.exact_match_gpqa import Sizes, exact_match

SIZES = Sizes(
    rows=6,
    longest=128,
    vocabulary=1024,
    hidden=64,
    layers=2,
    base_steps=30,
    steps=130,
    background=300_000,
)


@pytest.mark.data
@pytest.mark.slow
def test_rows_that_were_trained_on_are_put_back(data_folder: Path) -> None:
    found = exact_match(
        str(data_folder / "bench/gpqa/dataset.zip"),
        str(data_folder / "background/wiki_en_pile.jsonl.gz"),
        SIZES,
    )
    # Figures alone are compared, so that no failure shows a protected text.
    rates = {one.probe: (one.before, one.after, one.after_others) for one in found}
    assert all(one.asked >= 5 for one in found)
    for before, after, others in rates.values():
        assert before <= 0.2
        assert after >= 0.5
        assert others <= 0.3
    decided = [one.decisions for one in found if one.decisions is not None]
    assert len(decided) == 2
    assert all(one.recall >= 0.5 and one.precision >= 0.75 for one in decided)
    assert all(one.f_beta >= 0.75 for one in decided)
