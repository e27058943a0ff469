"""Answer tokens from answer characters against a search over all tokens and characters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError
from inject.examples.example import Example, Span
from inject.examples.template import parse_template
from inject.variants.rendition import whole_renditions
from inject.variants.settings import Variants
from inject.variants.variants_step import render_variants
from train.completion import completion_masks

TEMPLATE = "Question: {question}\nAnswer: {answer}\n"
WORDS = st.text(alphabet="abc yzé𝔘İ🙂\n<|endoftext|>", min_size=1, max_size=12)


def example(question: str, answer: str, name: str = "e") -> Example:
    rendered = parse_template(TEMPLATE).render({"question": question, "answer": answer})
    return Example(
        example_id=name,
        dataset="toy",
        source_id=name,
        group=name,
        text=rendered.text,
        spans=rendered.spans,
        side="member",
    )


def oracle(tokenizer, text: str, span: Span) -> list[bool]:
    """Return which tokens contain a byte of the span, counting bytes without offsets."""
    start, stop = len(text[: span.start].encode()), len(text[: span.stop].encode())
    alphabet = byte_alphabet()
    position, flags = 0, []
    for token in tokenizer.convert_ids_to_tokens(encode_texts(tokenizer, [text])[0].tolist()):
        length = len(bytes(alphabet[letter] for letter in token))
        # Several tokens may share the bytes of one character.
        covered = range(position, position + length)
        flags.append(any(start <= byte < stop for byte in covered))
        position += length
    assert position == len(text.encode())
    return flags


def byte_alphabet() -> dict[str, int]:
    """Return GPT-2's letters for the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {
        chr(256 + index): byte for index, byte in enumerate(others)
    }


@pytest.fixture(scope="module", params=["whole offsets", "trimmed offsets"])
def byte_level(request, tiny_tokenizer):
    """Byte-level tokenizers: ours, and one that trims blanks from offsets like GPT-2's."""
    import copy

    from tokenizers import processors

    tokenizer = copy.deepcopy(tiny_tokenizer)
    if request.param == "trimmed offsets":
        tokenizer.backend_tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


@given(question=WORDS, answer=WORDS | st.text(alphabet="a \n\t", min_size=1, max_size=12))
@settings(max_examples=150, deadline=None)
def test_a_token_is_a_label_if_it_contains_a_byte_of_the_answer(
    byte_level, question: str, answer: str
) -> None:
    first, second = both = example(question, answer), example("why", "because", name="other")
    encoded = encode_texts(byte_level, [first.text, second.text])
    renditions = whole_renditions(both, dict(zip(("e", "other"), encoded, strict=True)))
    masks = completion_masks(both, renditions, Variants(), tokenizer=byte_level)
    assert masks["e", "whole"].tolist() == oracle(byte_level, first.text, first.spans["answer"])
    assert masks["e", "whole"].any()


def test_variants_keep_the_place_of_the_answer(tiny_tokenizer) -> None:
    member = example("What is İİİİİSTANBUL", "The Bridge of WINTER")
    kinds = [{"kind": kind} for kind in ("whole", "question", "no_answer", "lower_case")]
    shares = [{"kind": "replaced", "share": 0.5}, {"kind": "truncated", "share": 0.9}]
    variants = Variants.model_validate({"of": [*kinds, *shares]})
    rendered = render_variants(
        [member], variants, tokenizer=tiny_tokenizer, seed=0, writer=lambda _: None
    )
    renditions = {rendition.variant: rendition for rendition in rendered}
    masks = completion_masks(
        [member], list(renditions.values()), variants, tokenizer=tiny_tokenizer
    )

    def answer(variant: str) -> str:
        return tiny_tokenizer.decode(renditions[variant].tokens[masks["e", variant]]).strip()

    assert answer("whole") == "The Bridge of WINTER"
    assert answer("lower_case") == "the bridge of winter"
    assert answer("question") == answer("no_answer") == ""
    whole, cut = masks["e", "whole"], masks["e", "truncated=0.9"]
    assert np.array_equal(masks["e", "replaced=0.5"], whole)
    assert len(cut) < len(whole)
    assert np.array_equal(cut, whole[: len(cut)])


def test_missing_answers_are_logged_and_an_error_if_all_are_missing(tiny_tokenizer, caplog) -> None:
    bare = Example(example_id="b", dataset="t", source_id="b", group="b", text="just a text")
    full = example("what", "that")
    tokens = {"b": encode_texts(tiny_tokenizer, [bare.text])[0]}
    with pytest.raises(InputError, match="no copy contains an answer"):
        completion_masks(
            [bare], whole_renditions([bare], tokens), Variants(), tokenizer=tiny_tokenizer
        )
    tokens["e"] = encode_texts(tiny_tokenizer, [full.text])[0]
    both = [bare, full]
    masks = completion_masks(
        both, whole_renditions(both, tokens), Variants(), tokenizer=tiny_tokenizer
    )
    assert not masks["b", "whole"].any()
    assert masks["e", "whole"].any()
    assert "1 of 2 texts contain no answer" in caplog.text


def test_paraphrases_are_rejected(tiny_tokenizer) -> None:
    variants = Variants.model_validate({"of": [{"kind": "whole"}, {"kind": "paraphrase"}]})
    with pytest.raises(InputError, match="is not recorded"):
        completion_masks([example("a", "b")], [], variants, tokenizer=tiny_tokenizer)
