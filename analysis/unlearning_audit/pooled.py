"""The audits of one method over the training seeds: every share again, over seeds and by copies.

An audit speaks of one model. Here a share is the mean over the seeds that have one, with the
study's intervals (`analysis.intervals`): rows by group, and from three seeds on what training
differs by. What is remembered was decided in each audit by itself, against its own retrained
model. How often the intervals hold the truth: docs/unlearning-audit.md.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.copy_bins import ALL, EVERY_MEMBER, CopiesCell, copies_cells, is_dose
from analysis.intervals.bounds import LEAST_GROUPS, Scale, find_interval
from analysis.intervals.clustered import Weighted, cluster
from analysis.metrics import Floats
from analysis.unlearning.numbers import mean_sample
from analysis.unlearning.rows import warning_of
from analysis.unlearning_audit.estimates import CONFIDENCE
from analysis.unlearning_audit.forgotten import HOLDOUT_FILE
from analysis.unlearning_audit.ratio import Band, Mask
from analysis.unlearning_audit.report import AUDIT_FILE, CHUNKS_FILE
from inject.tables import read_parquet


class AuditedSeed(NamedTuple):
    """One seed's audit of a method, text by text; arrays of one length."""

    groups: tuple[str, ...]
    copies: npt.NDArray[np.int64]
    """That the original saw."""
    flagged: Floats
    """1 where the rule flags a text, 0 where not; NaN without a ratio."""
    false_alarm: Floats
    """The same of the retrained model."""
    remembered: dict[str, Mask]
    """By model: `original`, `unlearned`."""
    holdout_groups: tuple[str, ...]
    """Of the texts that no model saw."""
    holdout_flagged: Floats


class Counted(NamedTuple):
    """What a share is counted over in one seed."""

    values: Floats
    """1 or 0; NaN for a text that does not count."""
    groups: tuple[str, ...]
    copies: npt.NDArray[np.int64]


def read_seed(folder: Path) -> AuditedSeed:
    """Return one seed's audit from its artifact.

    Raises:
        InputError: naming the file that is missing or damaged.
    """
    chunks = read_parquet(folder / CHUNKS_FILE).to_pylist()
    holdout = read_parquet(folder / HOLDOUT_FILE).to_pylist()
    record = json.loads((folder / AUDIT_FILE).read_text(encoding="utf-8"))["findings"]
    band = Band(*record["band"])
    ratios = [
        np.array([_number(row[name]) for row in chunks]) for name in ("ratio", "retrained_ratio")
    ]
    outside = np.array([_number(row["ratio"]) for row in holdout])
    return AuditedSeed(
        groups=tuple(row["group"] for row in chunks),
        copies=np.array([row["copies"] for row in chunks], dtype=np.int64),
        flagged=_flags(ratios[0], band),
        false_alarm=_flags(ratios[1], band),
        remembered={
            # What had no control nobody remembers.
            "original": np.array([bool(row["remembered_original"]) for row in chunks]),
            "unlearned": np.array([bool(row["remembered"]) for row in chunks]),
        },
        holdout_groups=tuple(row["group"] for row in holdout),
        holdout_flagged=_flags(outside, band),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _flags(ratios: Floats, band: Band) -> Floats:
    return np.where(np.isfinite(ratios), band.holds(ratios), np.nan)


def pooled_rows(seeds: Sequence[AuditedSeed]) -> list[dict[str, Any]]:
    """Return the shares over all seeds, and those of each number of copies.

    Args:
        seeds: two or more, of one method.
    """
    counts = [count for one in seeds for count in one.copies.tolist()]
    found = copies_cells(counts, high_copies=1 << 62)
    doses = [cell for cell in found if is_dose(cell.label)]
    cells = [EVERY_MEMBER, *doses] if len(doses) > 1 else [EVERY_MEMBER]
    rows = []
    for quantity, of_seed in _shares(seeds).items():
        wanted = [EVERY_MEMBER] if quantity == "flagged_holdout" else cells
        rows += [{"quantity": quantity, **one} for one in share_rows(of_seed, wanted)]
    return rows


def _shares(seeds: Sequence[AuditedSeed]) -> dict[str, list[Counted]]:
    found: dict[str, list[Counted]] = {}
    for one in seeds:
        flagged = one.flagged == 1
        known = one.remembered["unlearned"]
        own = {
            "flagged": one.flagged,
            "false_alarms": one.false_alarm,
            **{f"remembered_{model}": mask.astype(float) for model, mask in one.remembered.items()},
            "missed": np.where(known & np.isfinite(one.flagged), ~flagged, np.nan),
            "wrong": np.where(flagged, ~known, np.nan),
        }
        for quantity, values in own.items():
            found.setdefault(quantity, []).append(Counted(values, one.groups, one.copies))
        nothing = np.ones(len(one.holdout_groups), dtype=np.int64)
        found.setdefault("flagged_holdout", []).append(
            Counted(one.holdout_flagged, one.holdout_groups, nothing)
        )
    return found


def share_rows(seeds: Sequence[Counted], cells: Sequence[CopiesCell]) -> list[dict[str, Any]]:
    """Return a share of each number of copies over all seeds; none where nothing counts.

    A number of copies with fewer than three groups in every seed has no row.
    """
    names = {name: at for at, name in enumerate(sorted({g for one in seeds for g in one.groups}))}
    parts, texts = [], np.zeros(len(cells), dtype=np.int64)
    for one in seeds:
        there = np.flatnonzero(np.isfinite(one.values))
        within = np.array([cell.holds(one.copies[there]) for cell in cells])
        groups = np.array([names[one.groups[place]] for place in there], dtype=np.int64)
        texts += within.sum(axis=1)
        sample = mean_sample(one.values[there], groups, within, len(names))
        weight = within.sum(axis=1).astype(np.float64)
        parts.append([Weighted("texts", sample, weight)] if len(there) else [])
    if not any(parts):
        return []
    found = cluster(parts)
    interval = find_interval(found, Scale.TPR, confidence=CONFIDENCE)
    return [
        {
            "copies": cell.label,
            "value": float(found.value[k]),
            "low": float(interval.low[k]),
            "high": float(interval.high[k]),
            "chunks": int(texts[k]),
            "seeds": int(found.seeds[k]),
            "note": warning_of(interval.about[k]),
        }
        for k, cell in enumerate(cells)
        if np.isfinite(found.value[k])
        and (cell.label == ALL or found.smaller_groups[k] >= LEAST_GROUPS)
    ]
