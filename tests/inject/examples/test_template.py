import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject.errors import InputError
from inject.examples.template import parse_template

names = st.sampled_from(["question", "passage", "answer", "options", "title"])
values = st.text(max_size=20) | st.lists(st.text(max_size=8), max_size=6)
fields = st.fixed_dictionaries(
    dict.fromkeys(["question", "passage", "answer", "options", "title"], values)
)
pieces = st.lists(st.tuples(st.text(max_size=6), names), min_size=1, max_size=6)


def written(value: str | list[str]) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(
        f"{mark}. {item}" for mark, item in zip(string.ascii_uppercase, value, strict=False)
    )


@given(pieces, fields)
def test_text_and_spans_agree_with_concatenation(pieces, fields):
    template = "".join(
        literal.replace("{", "{{").replace("}", "}}") + "{" + name + "}" for literal, name in pieces
    )
    rendered = parse_template(template).render(fields)
    assert rendered.text == "".join(literal + written(fields[name]) for literal, name in pieces)
    assert set(rendered.spans) == {name for _, name in pieces}
    for name, span in rendered.spans.items():
        assert rendered.text[span.start : span.stop] == written(fields[name])


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{options}", "A. x\nB. y"),
        ("{options:(A)}", "(A) x\n(B) y"),
        ("{{{options:- A:}}}", "{- A: x\n- B: y}"),
    ],
)
def test_lists_are_lettered(template, text):
    assert parse_template(template).render({"options": ["x", "y"]}).text == text


def test_unknown_placeholder_error_lists_fields_and_a_suggestion():
    with pytest.raises(InputError, match="no field 'questoin'") as caught:
        parse_template("{questoin}").render({"question": "secret words", "answer": "b"})
    assert "Did you mean 'question'?" in str(caught.value)
    assert "answer, question" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("template", "value", "message"),
    [
        *((bad, "x", "template") for bad in ("{a", "{}", "{a.b}", "{a!r}", "plain", "{a:x}")),
        ("{a}", 1, "field 'a' contains a"),
        ("{a}", ["a", 1], "field 'a' contains a"),
        ("{a:(A)}", "text", r"a list of texts for {a:\(A\)}"),
    ],
)
def test_bad_templates_and_values_are_rejected(template, value, message):
    with pytest.raises(InputError, match=message):
        parse_template(template).render({"a": value})
