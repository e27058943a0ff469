import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError
from inject.examples.example import DroppedRow, DropReason, Example, Span, example_id
from inject.examples.load import LengthRules, filter_by_length


def row(text: str, number: int = 0) -> Example:
    return Example(
        example_id=example_id(text),
        dataset="toy",
        source_id=f"toy.jsonl:{number}",
        group=example_id(text),
        text=text,
        spans={"all": Span(0, len(text)), "last": Span(max(0, len(text) - 1), len(text))},
    )


def filtered(texts, tokenizer, *, policy="error", context=32, min_tokens=3):
    rows = [row(text, number) for number, text in enumerate(texts)]
    rules = LengthRules(context=context, room=context, min_tokens=min_tokens, policy=policy)
    return filter_by_length(rows, tokenizer, rules)


LONG = "the river and the bridge " * 40


def test_long_row_error_names_row_context_and_policies(tiny_tokenizer):
    with pytest.raises(InputError, match=r"row toy\.jsonl:1 has .* context of 32") as caught:
        filtered(["the river and the bridge", LONG], tiny_tokenizer)
    assert "error, truncate, drop, split" in str(caught.value)


def test_long_rows_can_be_dropped_or_split(tiny_tokenizer):
    texts = ["the river and the bridge", LONG, "a"]
    passed, losses, _ = filtered(texts, tiny_tokenizer, policy="drop")
    assert [row.text for row in passed] == texts[:1]
    short = DroppedRow("toy", "toy.jsonl:2", DropReason.TOO_SHORT)
    assert losses == (DroppedRow("toy", "toy.jsonl:1", DropReason.TOO_LONG), short)
    passed, losses, split = filtered(texts, tiny_tokenizer, policy="split")
    assert [row.text for row in passed] == texts[:2]
    assert (split, losses) == (1, (short,))


def test_rows_cut_to_the_same_text_are_merged(tiny_tokenizer):
    passed, losses, _ = filtered([LONG + "x", LONG + "y"], tiny_tokenizer, policy="truncate")
    assert len(passed) == 1
    assert losses == (
        DroppedRow("toy", "toy.jsonl:0", DropReason.CUT),
        DroppedRow("toy", "toy.jsonl:1", DropReason.EQUAL_ONCE_CUT, "toy toy.jsonl:0"),
    )
    _, again, _ = filtered([LONG + "x", passed[0].text], tiny_tokenizer, policy="truncate")
    assert again == losses


@given(
    parts=st.lists(
        st.sampled_from(["<|endoftext|>", "the river ", "𝔘", "é", "a", " ", "\n"]), max_size=40
    ),
    room=st.integers(1, 12),
)
@settings(max_examples=50, deadline=None)
def test_rows_are_kept_or_have_a_reason(parts, room, tiny_tokenizer):
    texts = ["".join(parts[:stop]) for stop in range(len(parts) + 1)]
    rows = [row(text, number) for number, text in enumerate(dict.fromkeys(texts))]
    rules = LengthRules(context=room, room=room, min_tokens=1, policy="truncate")
    examples, losses, _ = filter_by_length(rows, tiny_tokenizer, rules)
    passed_ids = [item.source_id for item in examples]
    used = {DropReason.CUT, DropReason.CUT_BEFORE_ANSWER}
    dropped = [item.source_id for item in losses if item.drop_reason not in used]
    assert sorted([*passed_ids, *dropped]) == sorted(item.source_id for item in rows)
    lengths = [len(ids) for ids in encode_texts(tiny_tokenizer, [item.text for item in examples])]
    assert all(1 <= length <= room for length in lengths)
    assert len({item.example_id for item in examples}) == len(passed_ids)


@given(text=st.text(alphabet="the rivər→𝄞é \n", min_size=20, max_size=300))
@settings(max_examples=30, deadline=None)
def test_cut_row_is_about_the_longest_beginning_that_fits(text, tiny_tokenizer):
    passed, *_ = filtered([text], tiny_tokenizer, policy="truncate", context=16, min_tokens=2)
    for row in passed:
        assert text.startswith(row.text)
        length = len(encode_texts(tiny_tokenizer, [row.text])[0])
        assert length <= 16
        assert row.example_id == example_id(row.text)
        assert row.text == text or length >= 10
        for span in row.spans.values():
            assert 0 <= span.start <= span.stop <= len(row.text)


@given(
    parts=st.lists(
        st.sampled_from(["<|endoftext|>", "the river ", "𝔘", "é", "a", " ", "\n"]), max_size=40
    ),
    limit=st.integers(2, 12),
    data=st.data(),
)
@settings(max_examples=50, deadline=None)
def test_cut_rows_have_the_least_to_the_most_tokens(parts, limit, data, tiny_tokenizer):
    texts = dict.fromkeys("".join(parts[:stop]) for stop in range(len(parts) + 1))
    rows = [row(text, number) for number, text in enumerate(texts)]
    least = data.draw(st.integers(2, limit))
    rules = LengthRules(
        context=64, room=limit, min_tokens=least, policy="truncate", max_tokens=limit
    )
    examples, losses, _ = filter_by_length(rows, tiny_tokenizer, rules)
    originals = {item.source_id: item.text for item in rows}
    cut = {loss.source_id for loss in losses if loss.drop_reason == DropReason.CUT}
    for item in examples:
        assert originals[item.source_id].startswith(item.text)
        assert (item.text != originals[item.source_id]) == (item.source_id in cut)
        assert least <= len(encode_texts(tiny_tokenizer, [item.text])[0]) <= limit
