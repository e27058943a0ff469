"""A validation as plain JSON values; what could not be measured is null."""

from dataclasses import asdict
from math import isfinite
from typing import Any

from analysis.metrics_table import Cell
from analysis.validate.ranking import Difference, Ranked
from analysis.validate.validation import Judged, Validation


def plain_validation(found: Validation) -> dict[str, Any]:
    """Return everything that a validation says."""
    return {
        "experiment": found.name,
        "source": found.source,
        "content": found.content or None,
        "provenance": {**asdict(found.provenance), "artifacts": list(found.provenance.artifacts)},
        "arm": found.arm,
        "arms": list(found.arms),
        "confidence": found.settings.confidence,
        "ranking": [_line(one) for one in found.ranking.lines],
        "metrics": [_finite(row) for row in found.ranking.metrics.to_pylist()],
        "differences": [_difference(one) for one in found.ranking.differences],
        "detectors": [_judged(one) for one in found.judged],
        "refused": [asdict(one) for one in found.refused],
    }


def _line(one: Ranked) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "detector": one.detector,
        "setting": one.setting,
        "selection": one.selection,
        "judged": one.judged,
        "role": one.role or None,
        "own_rows": one.own_rows,
        "auc": _cell(one.auc),
        "tpr": {f"{rate:g}": _cell(cell) for rate, cell in one.tpr.items()},
    }


def _judged(one: Judged) -> dict[str, Any]:
    return {
        "detector": one.name,
        "given": one.candidate.given,
        "takes": one.candidate.takes,
        "seconds_per_thousand_rows": one.seconds,
        "findings": [asdict(finding) for finding in one.findings],
        "arms": {arm: _cell(cell) for arm, cell in one.arms},
        "notes": list(one.notes),
    }


def _difference(one: Difference) -> dict[str, Any]:
    plain = one._asdict()
    estimate = plain.pop("estimate")
    return {**plain, **_finite(estimate._asdict())}


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    return None if cell is None else _finite(asdict(cell))


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in values.items()
    }
