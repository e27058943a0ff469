"""What the sections on unlearned models are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.figures.unlearning.measured import Row
from analysis.page.unlearning.methods import UnlearningMethod


@dataclass(frozen=True, kw_only=True)
class UnlearningInputs:
    """The tables of an unlearning study, and the methods behind them."""

    measures: Sequence[Row]
    """Rows of `unlearning.parquet`."""
    verdicts: Sequence[Row]
    """Rows of `verdict.parquet`."""
    methods: Sequence[UnlearningMethod] = ()
