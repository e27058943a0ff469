import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.digest import canonical, digest

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(), JSON))
def test_key_order_does_not_matter(value):
    assert digest(value) == digest(dict(reversed(value.items())))


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1, 2}, {1: 2}, np.float64(1), np.int64(1), object()]
)
def test_values_without_canonical_form_raise(value):
    with pytest.raises(TypeError, match=r"\$"):
        canonical({"key": value})


def test_int_and_float_are_different():
    assert digest(1) != digest(1.0)
    assert digest(True) != digest(1)
