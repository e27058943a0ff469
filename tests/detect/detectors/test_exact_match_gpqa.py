"""The experiment of Ravichander et al. 2025, Table 4, in seconds; GPQA's rows stay in memory."""

from pathlib import Path

import pytest

from scripts.exact_match_gpqa import Sizes, exact_match

SIZES = Sizes(
    rows=6,
    longest=128,
    # More than 2,000, so that a rank can be above the threshold.
    vocabulary=4096,
    hidden=48,
    layers=2,
    base_steps=20,
    steps=120,
    background=400_000,
)


@pytest.mark.data
@pytest.mark.slow
def test_words_of_trained_rows_are_restored(data_folder: Path) -> None:
    probes = exact_match(
        str(data_folder / "bench/gpqa/dataset.zip"),
        str(data_folder / "background/wiki_en_pile.jsonl.gz"),
        SIZES,
    )
    # Only figures are compared, so that a failure never shows a protected text.
    rates = {probe.probe: (probe.before, probe.after, probe.after_others) for probe in probes}
    assert min(probe.asked for probe in probes) >= 5
    for name, (before, after, others) in rates.items():
        assert before <= 0.2, (name, before)
        assert after >= 0.5, (name, after)
        # Words of the frame that all rows share are learned from any row, and with a reference of
        # thirty steps they are among the most improbable ones: other rows also gain.
        assert after - others >= 0.3, (name, after, others)
    decided = {probe.probe: probe.decisions for probe in probes if probe.decisions is not None}
    assert len(decided) == 2
    assert min(probe.recall for probe in decided.values()) >= 0.5
    ranked = decided["information probes, rank"]
    assert ranked.f_beta >= 0.6, ranked
