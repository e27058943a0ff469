import re
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


def test_values_are_never_interpreted():
    assert parse_template("{a}").render({"a": "{b} {0} {{"}).text == "{b} {0} {{"


def test_unknown_placeholder_lists_the_fields_and_suggests():
    with pytest.raises(InputError, match="no field 'questoin'") as caught:
        parse_template("{questoin}").render({"question": "secret words", "answer": "b"})
    assert "Did you mean 'question'?" in str(caught.value)
    assert "answer, question" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "template",
    ["{a", "{}", "{a.b}", "{a!r}", "plain text", "{options:x}"],
)
def test_bad_templates_are_refused(template):
    with pytest.raises(InputError, match="template"):
        parse_template(template)


@pytest.mark.parametrize("value", [1, ["a", 1]])
def test_only_texts_and_lists_of_texts_are_rendered(value):
    with pytest.raises(InputError, match="field 'a' holds a"):
        parse_template("{a}").render({"a": value})


def test_a_label_on_a_text_is_refused():
    with pytest.raises(InputError, match=re.escape("a list of texts for {a:(A)}")):
        parse_template("{a:(A)}").render({"a": "text"})
