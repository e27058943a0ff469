"""An old key is refused with the new one, on the command line, too."""

import pytest

from inject.errors import InputErrors
from spikein.config.renamed_keys import new_key
from tests.spikein.samples import SAMPLE, line_of, read


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("variants.dealt=copies", "variants.dealt is now called assign_by"),
        ("train.checkpoints={most: 3}", "train.checkpoints.most is now called max_kept"),
        ("analysis.most_unscored=0.2", "analysis.most_unscored is now called max_unscored"),
        ("analysis.most_unscored_tune=0.2", "is now called max_unscored_tune"),
        ("analysis.least_members=3", "analysis.least_members is now called min_members"),
    ],
)
def test_an_old_name_is_refused_with_the_new_one(override, said):
    with pytest.raises(InputErrors) as caught:
        read(override)
    (problem,) = caught.value.problems
    assert said in problem
    assert "override" in problem


def test_an_old_key_of_the_file_is_named_with_its_line():
    text = SAMPLE + "variants: {of: [{kind: whole}], dealt: copies}\n"
    with pytest.raises(InputErrors) as caught:
        read(text=text)
    assert caught.value.problems == (
        f"small.yaml:{line_of('dealt', text)}: variants.dealt is now called assign_by. "
        "Write assign_by.",
    )


@pytest.mark.parametrize(
    "override", ["variants.assign_by=copies", "train.checkpoints={max_kept: 3}"]
)
def test_the_new_names_are_accepted(override):
    read(override)


def test_other_names_are_not_renamed():
    assert new_key(("train", "most")) is None


def test_a_kind_that_is_gone_is_refused_with_those_that_are_left():
    with pytest.raises(InputErrors) as caught:
        read("corpus={tokens: 50_000, imported: {kind: index_only, path: a.idx}}")
    (problem,) = caught.value.problems
    assert "corpus.imported.kind: 'index_only' is none of them" in problem
    assert "megatron, olmo, datasets" in problem
