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
    audits: Sequence[Row] = ()
    """Rows of `unlearning_audits.parquet`; empty where no model was audited."""
    audit_pages: Sequence[str] = ()
    """The audits' pages, relative to the run's page; empty where they do not lie beside it."""
