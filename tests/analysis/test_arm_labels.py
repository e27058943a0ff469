import pytest

from analysis.arm_labels import arm_words

WORDS = [
    ("train.lr", "0.0015", "learning rate 0.0015"),
    ("train.lr", "1e-05", "learning rate 1e-5"),
    ("copies", "fixed=1", "1 copy"),
    ("copies", "poisson=2.5", "2.5 copies on average (Poisson)"),
    ("copies", "levels=1-4-8", "1, 4 or 8 copies"),
    ("copies", "levels=4", "4 copies"),
    ("copies.levels", "1-2", "1 or 2 copies"),
    ("copies", "levels=0x2-1x3-2", "0, 1 or 2 copies (2:3:1)"),
    ("copies.levels", "0-0-1", "0 or 1 copies (2:1)"),
    ("placement.stretch", "300000", "copies within 300,000 tokens"),
    ("placement.stretch", "none", "copies throughout the training"),
    ("placement.tail", "40000", "copies end before the last 40,000 tokens"),
    ("corpus.repeat", "4", "background laid out 4 times"),
    ("pool.max_tokens", "64", "texts of up to 64 tokens"),
    ("corpus.tokens", "2600000", "trained on 2,600,000 tokens"),
    ("train.epochs", "1", "1 epoch"),
    ("train.mode", "continue", "continued pretraining"),
    ("train.mode", "another", "another"),
    ("placement.between", "0-1", "copies throughout the training"),
    ("placement.between", "0.8-1", "copies from 0.8 to 1 of the training"),
    ("model.shape", "../configs/models/llama-1m.yaml", "shape llama-1m"),
    ("model.pretrained", "EleutherAI/pythia-70m", "model EleutherAI/pythia-70m"),
    ("audit.ngram", "13", "ngram 13"),
]


@pytest.mark.parametrize(("key", "value", "words"), WORDS)
def test_an_axis_is_described_in_words(key, value, words):
    assert arm_words([(key, value)]) == words


def test_an_arm_is_described_by_its_axes_and_seed():
    axes = [("train.lr", "0.001"), ("copies", ""), ("a.size", "1"), ("b.size", "2")]
    assert arm_words(axes, 3) == "learning rate 0.001, a.size 1, b.size 2, seed 3"
    assert arm_words([]) == ""
