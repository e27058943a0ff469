"""The audits of one method over the training seeds: every share again, over seeds and by copies.

An audit speaks of one model. Here a share is the mean over the seeds that have one, with the
study's intervals (`analysis.intervals`): rows by group, and from three seeds on what training
differs by. What is remembered was decided in each audit by itself, against its own retrained
model. How often the intervals hold the truth: docs/unlearning-audit.md.
"""

import json
import math
from collections.abc import Mapping, Sequence
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
from analysis.unlearning_audit.audit import AUDIT_FILE, CHUNKS_FILE
from analysis.unlearning_audit.estimates import CONFIDENCE
from analysis.unlearning_audit.ratio import Band
from inject.tables import read_parquet


class Counted(NamedTuple):
    """What a share is counted over in one seed."""

    values: Floats
    """1 or 0; NaN for a text that does not count."""
    groups: tuple[str, ...]
    copies: npt.NDArray[np.int64]


AuditedSeed = dict[str, Counted]
"""One seed's audit of a method: what each share is counted over."""


def read_seed(folder: Path) -> AuditedSeed:
    """Return one seed's audit from its artifact.

    Raises:
        InputError: naming the file that is missing or damaged.
    """
    record = json.loads((folder / AUDIT_FILE).read_text(encoding="utf-8"))
    band = Band(*record["settings"]["audit"]["band"])
    rows = read_parquet(folder / CHUNKS_FILE).to_pylist()
    audited = [row for row in rows if row["part"] == "audited"]
    outside = [row for row in rows if row["part"] == "holdout"]
    flagged = _flags(audited, "ratio", band)
    # What had no control nobody remembers.
    known = np.array([bool(row["remembered"]) for row in audited])
    before = np.array([bool(row["remembered_original"]) for row in audited])
    shares = {
        "flagged": flagged,
        "false_alarms": _flags(audited, "retrained_ratio", band),
        "remembered_original": before.astype(float),
        "remembered_unlearned": known.astype(float),
        "missed": np.where(known & np.isfinite(flagged), flagged == 0, np.nan),
        "wrong": np.where(flagged == 1, ~known, np.nan),
    }
    return {
        **{name: _counted(values, audited) for name, values in shares.items()},
        "flagged_holdout": _counted(_flags(outside, "ratio", band), outside),
    }


def _counted(values: Floats, rows: Sequence[Mapping[str, Any]]) -> Counted:
    copies = [1 if row["copies"] is None else row["copies"] for row in rows]
    return Counted(values, tuple(row["group"] for row in rows), np.array(copies, dtype=np.int64))


def _flags(rows: Sequence[Mapping[str, Any]], column: str, band: Band) -> Floats:
    """Return 1 where the rule flags a chunk, 0 where not; NaN without a ratio."""
    ratios = [math.nan if row[column] is None else row[column] for row in rows]
    values = np.array(ratios, dtype=np.float64)
    return np.where(np.isfinite(values), band.holds(values), np.nan)


def pooled_rows(seeds: Sequence[AuditedSeed]) -> list[dict[str, Any]]:
    """Return the shares over all seeds, and those of each number of copies.

    Args:
        seeds: two or more, of one method.
    """
    counts = [count for seed in seeds for count in seed["flagged"].copies.tolist()]
    doses = [cell for cell in copies_cells(counts, high_copies=1 << 62) if is_dose(cell.label)]
    cells = [EVERY_MEMBER, *doses] if len(doses) > 1 else [EVERY_MEMBER]
    rows = []
    for quantity in seeds[0]:
        wanted = [EVERY_MEMBER] if quantity == "flagged_holdout" else cells
        of_seed = [seed[quantity] for seed in seeds]
        rows += [{"quantity": quantity, **row} for row in share_rows(of_seed, wanted)]
    return rows


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
