"""Columns of a design by arm, and claims of more columns than its arms can separate."""

from types import SimpleNamespace

from spikein.config.design_rows import column_problems, design_rows, log_columns
from tests.spikein.samples import SAMPLE, read_checked

ARMS = (
    SAMPLE
    + """\
arms:
  a: {placement.between: [0.0, 0.5]}
  b: {corpus.tokens: 200_000, placement.between: [0.0, 0.5]}
  c: {train.batch_tokens: 4096, placement.between: [0.0, 0.75]}
  d: {corpus.tokens: 200_000, train.batch_tokens: 4096}
"""
)


def test_columns_are_axes_and_numbers_that_follow_from_the_settings():
    rows = design_rows(read_checked(text=ARMS).arms)
    assert list(rows) == ["a", "b", "c", "d"]
    parameters = rows["a"].pop("parameters")
    assert parameters > 500_000
    assert rows["a"] == {
        "placement.between": "0-0.5",
        "corpus.tokens": 50_000,
        "train.batch_tokens": 1024,
        "steps": 49,
        "batch": 1024,
        # 781 windows of 64 tokens, copies in the first 390.
        "tail": 391 * 64,
        "unique": 50_000,
        "members": 20,
    }
    assert (rows["d"]["steps"], rows["d"]["tail"]) == (49, 0)
    logs = log_columns(rows)
    assert logs["c"]["batch"] == 12.0
    assert "tail" not in logs["d"]
    assert "placement.between" not in logs["a"]


def test_a_stretch_and_a_repeated_background_are_counted_in_tokens():
    stretch = "arms={a: {corpus.repeat: 4}, b: {placement.stretch: 6_400, placement.tail: 3_200}}"
    rows = design_rows(read_checked(stretch).arms)
    assert [row["unique"] for row in rows.values()] == [12_500, 50_000]
    assert [row["tail"] for row in rows.values()] == [0, 3_200]


def test_arms_of_a_sweep_go_by_their_labels():
    text = SAMPLE + "sweep: {train.lr: [1e-3, 2e-3]}\n"
    assert list(design_rows(read_checked(text=text).arms)) == ["lr 0.001", "lr 0.002"]


def column_problem(columns: list[str], arms: tuple[str, ...] = ()) -> str:
    effect = SimpleNamespace(columns=columns, arms=arms)
    claims = {"x": SimpleNamespace(effect=effect), "no line": SimpleNamespace(effect=None)}
    reported = list(column_problems(claims, read_checked(text=ARMS).arms))
    assert len(reported) <= 1
    return "".join(f"{'.'.join(map(str, path))}: {problem}" for path, problem in reported)


def test_more_columns_than_the_rank_are_refused():
    assert not column_problem(["corpus.tokens", "batch"])
    assert not column_problem(["corpus.tokens", "tail"], ("a", "b", "c"))
    assert column_problem(["corpus.tokens", "batch", "steps"]) == (
        "claims.x: claims.x: the arms have rank 3 for 4 columns (intercept, corpus.tokens, batch, "
        "steps): steps is a combination of corpus.tokens, batch. Leave steps or one of these out "
        "of columns, or add arms that separate them."
    )
    assert "members is a combination of intercept" in column_problem(["batch", "members"])
    # Only the arms of the claim count.
    assert "rank 2 for 3" in column_problem(["corpus.tokens", "tail"], ("a", "b"))


def test_unknown_columns_and_columns_without_a_logarithm_are_refused():
    assert "no column is called 'step'. Did you mean 'steps'?" in column_problem(["step"])
    assert "tail is 0 in d" in column_problem(["tail"])
    assert "placement.between is 0-0.5 in a" in column_problem(["placement.between"])
