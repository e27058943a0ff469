"""Named arms: their axes, overrides, places of problems, and refusals."""

import pytest

from inject.errors import InputErrors
from inject.reading.former_names import FormerNameWarning
from spikein.config.load import check_document, read_experiment, resolved_yaml
from spikein.config.yaml_document import parse_document
from tests.spikein.samples import SAMPLE, line_of, problems, read, read_checked

ARMS = (
    SAMPLE
    + """\
arms:
  short: {}
  long: {corpus.tokens: 90_000, train.epochs: 1}
  large-batch:
    train.batch_tokens: 2048
    copies: {fixed: 3}
"""
)


def test_arms_are_the_experiment_with_their_values_in_the_order_of_the_file():
    arms = read_checked(text=ARMS).arms
    assert [(arm.name, arm.seed) for arm in arms[::2]] == [
        ("short", 0),
        ("long", 0),
        ("large-batch", 0),
    ]
    for at, overrides in enumerate(
        (
            [],
            ["corpus.tokens=90_000"],
            ["train.batch_tokens=2048", "copies={poisson: null, fixed: 3}"],
        )
    ):
        assert arms[2 * at].experiment == read(*overrides, "seeds=[0]")


def test_axes_are_the_keys_in_which_arms_differ():
    arms = read_checked(text=ARMS).arms
    assert arms[0].axes == {
        "corpus.tokens": 50_000,
        "train.batch_tokens": 1024,
        "copies": {"poisson": 2.0},
    }
    assert arms[2].labels == {
        "corpus.tokens": "90000",
        "train.batch_tokens": "1024",
        "copies": "poisson=2",
    }
    assert (arms[5].label, arms[5].words) == ("large-batch, seed 1", "large-batch, seed 1")


def test_arms_survive_the_resolved_file():
    checked = read_checked(text=ARMS)
    again = check_document(parse_document(resolved_yaml(checked.experiment), name="again"))
    assert again == checked


def test_a_key_may_be_given_only_by_the_arms():
    text = ARMS.replace("copies: {poisson: 2}\n", "").replace(
        "short: {}", "short: {copies.fixed: '${n}'}"
    )
    text = text.replace("copies: {fixed: 3}", "copies.fixed: 3")
    text = text.replace("epochs: 1}", "epochs: 1, copies.fixed: 2}").replace(
        "{data: files}", "{data: files, n: 1}"
    )
    assert [arm.experiment.copies.fixed for arm in read_checked(text=text).arms[::2]] == [1, 2, 3]


def test_overrides_set_add_and_remove_arms():
    checked = read_checked("arms.long.corpus.tokens=80_000", "arms.long.train.lr=2e-3", text=ARMS)
    assert checked.arms[2].axes["corpus.tokens"] == 80_000
    assert checked.arms[2].axes["train.lr"] == 2e-3
    checked = read_checked("arms.short=null", "arms.new={train.lr: 1}", text=ARMS)
    assert list(checked.experiment.arms) == ["long", "large-batch", "new"]
    assert len(read_checked("arms=null", text=ARMS).arms) == 2
    # A key that only some arms set keeps its meaning for the others.
    checked = read_checked("corpus.tokens=60_000", text=ARMS)
    assert [arm.axes["corpus.tokens"] for arm in checked.arms[::2]] == [60_000, 90_000, 60_000]


def test_an_extending_file_changes_adds_and_removes_arms(tmp_path):
    (tmp_path / "parent.yaml").write_text(ARMS)
    child = tmp_path / "child.yaml"
    child.write_text(
        "extends: parent.yaml\narms:\n  short: null\n  long: {train.lr: 2e-3}\n  more: {seed: 1}\n"
    )
    with pytest.raises(InputErrors) as caught:
        read_experiment(child)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{child}:5 (arms: more): seed: no such key. Did you mean 'seeds'")
    child.write_text(child.read_text().replace("{seed: 1}", "{}"))
    checked = read_experiment(child)
    assert [arm.name for arm in checked.arms[::2]] == ["long", "large-batch", "more"]
    assert [arm.axes["train.lr"] for arm in checked.arms[::2]] == [2e-3, 1e-3, 1e-3]


def test_keys_of_version_0_1_are_read_in_arms():
    text = SAMPLE + "arms: {a: {train.clip: 0.5}, b: {}}\n"
    with pytest.warns(FormerNameWarning, match=r"arms\.a\.train\.clip"):
        checked = read_checked("arms.b.train.clip=0.25", text=text)
    assert [arm.axes for arm in checked.arms[::2]] == [
        {"train.max_grad_norm": 0.5},
        {"train.max_grad_norm": 0.25},
    ]


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ("{train.lr: 0}", "(arms: more): train.lr: is the number 0"),
        ("{train.lrr: 1}", "(arms: more): train.lrr: no such key. Did you mean 'lr'?"),
        ("{copies: {fixd: 1}}", "(arms: more): copies.fixd: no such key"),
        ("{corpus.tokens: 10}", "(arms: more): corpus.tokens: 10 tokens do not"),
        ("{seeds: [3]}", "arms.more.seeds: cannot be swept"),
        ("{claims: {}}", "arms.more.claims: cannot be swept"),
        ("{unlearning.forget.share: 0.5}", "arms.more.unlearning.forget.share: cannot be swept"),
        ("{contaminants.3.members: 1}", "it has no item 3"),
        ("{copies.fixed: 1}", "arms.more.copies.fixed: is part of arms.large-batch.copies"),
        ("{base: {tokens: 1}, base.lr: 1}", "is part of arms.more.base"),
        ("{copies: {poisson: 2}}", "arms.more: has the same values as arms.short"),
        ("null", "arms.more: must be a mapping of dotted keys to values"),
        ("5", "arms.more: must be a mapping of dotted keys to values"),
    ],
)
def test_a_bad_arm_is_refused_with_its_line(arm, message):
    text = f"{ARMS}  more: {arm}\n"
    reported = problems(text=text)
    matching = [problem for problem in reported if message in problem]
    assert matching, reported
    assert f"small.yaml:{line_of('more:', text)}" in matching[0]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["sweep={train.lr: [1, 2]}"], "arms and sweep: are both given"),
        (["arms={a b: {}}"], "'a b' is not a name"),
        (["arms={a.b: {}}"], "'a.b' is not a name"),
        (["arms=[1]"], "arms: must be a mapping of names"),
        (["arms.shrot.train.lr=1"], "the experiment has no arm 'shrot'. Did you mean 'short'?"),
        (["arms.shrot=null"], "the experiment has no arm 'shrot'. Did you mean 'short'?"),
        (["arms={a: {train.lr: 1}, b: {train.lr: 2}}", "train.lr=3"], "is set by every arm"),
        (
            [f"arms={{{', '.join(f'a{at}: {{train.lr: {at + 1}}}' for at in range(1001))}}}"],
            "1,001",
        ),
        (["arms.long.base={tokens: 9_000}", "arms.long.base.lr=1"], "is part of arms.long.base"),
    ],
)
def test_bad_arms_are_refused(overrides, message):
    reported = problems(*overrides, text=ARMS)
    assert any(message in problem for problem in reported), reported


def test_a_key_without_a_place_in_another_arm_is_refused():
    text = SAMPLE + "arms: {a: {}, b: {train.checkpoints.every: 2}}\n"
    (problem,) = problems(text=text)
    assert "arms.a: has no train.checkpoints.every, which another arm sets" in problem
