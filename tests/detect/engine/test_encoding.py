import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.engine.encoding import encode, windows
from detect.settings import ScoringPolicy
from inject.errors import InputError
from tests.detect.models import with_start_token


@given(length=st.integers(0, 200), context=st.integers(2, 40))
def test_windows_score_each_token_once_with_the_longer_history(length, context):
    policy = ScoringPolicy()
    history: dict[int, int] = {}
    for window in windows(length, context, policy, place="text"):
        assert window.stop - window.start <= context
        for position in range(window.first, window.stop):
            assert position not in history
            history[position] = position - window.start
    assert sorted(history) == list(range(1, length))
    stride = max(1, context // 2)
    for position, length_of_history in history.items():
        longest = max(
            position - start
            for start in range(0, max(length, 1), stride)
            if start < position < start + context
        )
        assert length_of_history == longest


@pytest.fixture
def adding_tokenizer(tiny_tokenizer):
    return with_start_token(tiny_tokenizer)


def test_start_tokens_follow_the_policy_and_have_no_offset(tiny_tokenizer, adding_tokenizer):
    plain = tiny_tokenizer("the river")["input_ids"]
    for policy, of_plain, of_adding in (
        (ScoringPolicy(), 0, 1),
        (ScoringPolicy(bos="always"), 1, 1),
        (ScoringPolicy(bos="never"), 0, 0),
        (ScoringPolicy(score_first="start_token"), 1, 1),
    ):
        for tokenizer, starts in ((tiny_tokenizer, of_plain), (adding_tokenizer, of_adding)):
            (encoding,) = encode(tokenizer, ["the river"], policy)
            np.testing.assert_array_equal(encoding.ids, [0] * starts + plain)
            assert encoding.offsets[:starts].tolist() == [[-1, -1]] * starts
            assert (encoding.offsets[starts][0], encoding.offsets[-1][1]) == (0, len("the river"))


def test_special_token_in_a_text_is_read_as_letters(tiny_tokenizer, adding_tokenizer):
    text = "the<|endoftext|> river"
    for tokenizer, starts in ((tiny_tokenizer, []), (adding_tokenizer, [0])):
        ids = encode(tokenizer, [text], ScoringPolicy())[0].ids.tolist()
        assert ids[: len(starts)] == starts
        assert 0 not in ids[len(starts) :]
        assert tokenizer.decode(ids[len(starts) :]) == text


def test_missing_start_token_is_rejected_if_required(tiny_tokenizer):
    import copy

    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.bos_token = None
    for policy in (ScoringPolicy(bos="always"), ScoringPolicy(score_first="start_token")):
        with pytest.raises(InputError, match="needs a start token"):
            encode(tokenizer, ["the"], policy)
    assert len(encode(tokenizer, ["the"], ScoringPolicy())) == 1


def test_tokenizer_without_offset_mapping_gives_no_offsets(tiny_tokenizer):
    class Slow:
        """A tokenizer written in Python, without offsets."""

        bos_token_id = 0

        def encode(self, text, **options):
            return tiny_tokenizer.encode(text, **options)

    (encoding,) = encode(Slow(), ["the river"], ScoringPolicy())
    assert len(encoding.ids) == len(encoding.offsets) > 0
    assert (encoding.offsets == -1).all()


@pytest.mark.parametrize("betas", [(0.0,), (-1.0,), (float("inf"),), (2.0, 2.0)])
def test_inverse_temperatures_are_positive_and_distinct(betas):
    with pytest.raises(InputError, match="numbers above 0, each once"):
        ScoringPolicy(inverse_temperatures=betas)
