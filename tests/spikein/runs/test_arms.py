"""A run of named arms that form no product: its axes, its comparisons and its record."""

import shutil

import pytest

import spikein
from spikein.api.comparison import compare_runs
from tests.spikein.tiny import LIGHT, run, write_tiny

pytestmark = pytest.mark.slow
ARMS = (
    "arms={plain: {train.epochs: 1}, long: {corpus.tokens: 60_000}, fixed: {copies: {fixed: 2}}, "
    "few: {contaminants.0.members: 8}}"
)
MEMBERS = "contaminants.0.members"
BOTH = {"member", "nonmember"}


def test_a_run_of_named_arms_compares_those_that_differ_in_one_axis(tmp_path):
    write_tiny(tmp_path)
    result = run(tmp_path, *LIGHT, ARMS)
    finished = spikein.load_run(result.folder)
    # All arms have one epoch, so epochs are not an axis.
    assert finished.axes == ("corpus.tokens", "copies", MEMBERS)
    arms = [
        (row["corpus.tokens"], row["sweep.copies"], row[MEMBERS])
        for row in finished.models.to_pylist()
        if row["role"] == "contaminated"
    ]
    assert arms == [
        ("40000", "poisson=2", "24"),
        ("60000", "poisson=2", "24"),
        ("40000", "fixed=2", "24"),
        ("40000", "poisson=2", "8"),
    ]
    contrasts = {
        (row["factor"], row["versus"], row["level"])
        for row in finished.factors.to_pylist()
        if row["kind"] == "contrast"
    }
    assert contrasts == {
        ("corpus.tokens", "40000", "60000"),
        ("copies", "poisson=2", "fixed=2"),
        (MEMBERS, "8", "24"),
    }
    page = result.report.read_text(encoding="utf-8")
    assert "60,000 tokens" in page
    assert all(page.count(f">{name}<") > 1 for name in ("plain", "long", "fixed", "few"))
    again = spikein.plan(result.folder / "experiment.yaml", store=tmp_path / "store")
    assert again.arms == 4
    assert all(row.stored for row in again.rows)
    check_sides(finished, arms)
    copy = shutil.copytree(result.folder, tmp_path / "copy", symlinks=True)
    numbers = compare_runs(result.folder, copy).metrics.numbers.rows
    counts = {
        (row["label"], row["run"]): row["n_members"]
        for row in numbers
        if (row["metric"], row["model"], row["dataset"]) == ("auc", "contaminated", "all")
    }
    assert len(counts) == 3 * len(arms)
    for (label, run_name), members in counts.items():
        assert members == counts[label, "first"], (label, run_name)


def check_sides(finished, arms):
    """Of each arm the table of examples has the pool: what was spiked in is a member there."""
    sides = {}
    for row in finished.examples.to_pylist():
        assert sides.setdefault((row[MEMBERS], row["example_id"]), row["side"]) == row["side"]
    for members in ("24", "8"):
        pool = [side for (arm, _), side in sides.items() if arm == members]
        assert (pool.count("member"), pool.count("nonmember")) == (int(members), 24)
    exposures = finished.exposures.to_pylist()
    assert {row[MEMBERS] for row in exposures} == {arm[2] for arm in arms}
    assert all(sides[row[MEMBERS], row["example_id"]] == "member" for row in exposures)
    # The claim is not empty: a text is on different sides in two arms.
    texts = {example for _, example in sides}
    assert any({sides.get((arm, text)) for arm in ("24", "8")} >= BOTH for text in texts)
