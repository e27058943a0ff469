"""The section `unlearning` of an experiment file: what is forgotten, by which methods.

The names and parameters of methods are looked up when the parts of an experiment are held against
each other (`spikein.config.cross_checks`), as those of detectors are.
"""

from typing import Annotated, Any

from pydantic import Field

from analysis.unlearning.settings import MeasureSettings
from inject.examples.forget_set import ForgetSet, RetainSet
from inject.settings import Settings

SECTION = "unlearning"


class UnlearningSection(Settings):
    """Models that are to forget some members, beside one that was trained without them."""

    forget: ForgetSet
    """The members that are to be forgotten; the retrained model never sees them."""
    retain: RetainSet = RetainSet()
    """The other members that methods hold on to; without a rule, all of them."""
    methods: Annotated[tuple[str | dict[str, Any], ...], Field(min_length=1)]
    """Methods by name, by `FILE.py:NAME`, or as a mapping of `method`, `name`, `sweep` and the
    method's own settings; each makes a model for each value that its `sweep` names."""
    measures: MeasureSettings = MeasureSettings()
    """Margins and tests behind what is said of them."""
    general_tokens: Annotated[int, Field(ge=0, le=10**9)] = 20_000
    """Tokens of background that lie behind the corpus, on which it is measured what unlearning
    costs elsewhere; 0 for none. With an imported corpus there are none."""
