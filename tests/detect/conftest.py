"""Properties are checked without a time limit on each example: a busy machine is not a defect."""

import pytest
from hypothesis import settings

from tests.detect.memorised import Memorised, memorised

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session", name="memorised")
def memorised_texts(tiny_tokenizer) -> Memorised:
    """A tiny model that has memorised twelve texts; takes seconds, once."""
    return memorised(tiny_tokenizer)
