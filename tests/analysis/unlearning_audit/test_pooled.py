"""Shares over the seeds of a method against counts from the stored files."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.unlearning_audit.audit import pooled_rows
from detect.generation.continuations import CONTINUATIONS_FILE

LOW, HIGH = 1 / 1.15, 1.15


def write_audit(folder, seed, *, texts=30, writes=0.5):
    """Write one seed's audit with a level of two words and one text without a ratio."""
    random = np.random.default_rng(seed)
    folder.mkdir()
    ratios = np.exp(random.normal(0.2, 0.3, texts)).tolist()
    chunks = [
        {
            "chunk": at,
            "part": "audited",
            "group": f"group {at // 2}",
            "copies": (1, 8)[at % 2],
            "ratio": None if at == 3 else ratios[at],
            "retrained_ratio": float(np.exp(random.normal(0.4, 0.3))),
        }
        for at in range(texts)
    ]
    outside = [
        {"part": "holdout", "group": str(at), "ratio": float(np.exp(random.normal(0, 0.2)))}
        for at in range(20)
    ]
    written = [
        {
            "chunk": at,
            "model": model,
            "longest_common_substring": float(random.integers(3, 9) * (random.random() < share)),
        }
        for model, share in (("original", 0.9), ("unlearned", writes))
        for at in range(texts)
        for _ in range(2)
    ]
    pq.write_table(pa.Table.from_pylist(written), folder / CONTINUATIONS_FILE)
    for model, column in (("original", "remembered_original"), ("unlearned", "remembered")):
        runs = [(row["chunk"], row["longest_common_substring"]) for row in written
                if row["model"] == model]  # fmt: skip
        for row in chunks:
            row[column] = max(run for at, run in runs if at == row["chunk"]) > 2
    pq.write_table(pa.Table.from_pylist([*chunks, *outside]), folder / "chunks.parquet")
    settings = {"audit": {"band": [LOW, HIGH]}}
    (folder / "unlearning_audit.json").write_text(json.dumps({"settings": settings}))
    return folder


def count_shares(folder, copies=None):
    """Return all shares of one seed by counting rows."""
    all_rows = pq.read_table(folder / "chunks.parquet").to_pylist()
    chunks = [row for row in all_rows if row["part"] == "audited"]
    chunks = [row for row in chunks if copies in (None, row["copies"])]
    written = pq.read_table(folder / CONTINUATIONS_FILE).to_pylist()
    remembered = {
        model: {
            row["chunk"]
            for row in written
            if row["model"] == model and row["longest_common_substring"] > 2
        }
        for model in ("original", "unlearned")
    }
    flagged = {r["chunk"] for r in chunks if r["ratio"] is not None and LOW < r["ratio"] < HIGH}
    chunk_ids = {row["chunk"] for row in chunks}
    rated = [row for row in chunks if row["ratio"] is not None]
    alarms = [LOW < row["retrained_ratio"] < HIGH for row in chunks]
    own_remembered = remembered["unlearned"] & chunk_ids
    judged = own_remembered & {row["chunk"] for row in rated}

    def share(part, whole):
        return len(part) / len(whole) if whole else np.nan

    shares = {
        "flagged": share(flagged, rated),
        "false_alarms": sum(alarms) / len(alarms),
        "remembered_original": share(remembered["original"] & chunk_ids, chunk_ids),
        "remembered_unlearned": share(own_remembered, chunk_ids),
        "missed": share(judged - flagged, judged),
        "wrong": share(flagged - own_remembered, flagged),
    }
    if copies is None:
        flags = [LOW < row["ratio"] < HIGH for row in all_rows if row["part"] == "holdout"]
        shares["flagged_holdout"] = np.mean(flags)
    return shares


def test_pooled_shares_are_means_over_seeds(tmp_path):
    folders = [write_audit(tmp_path / str(seed), seed) for seed in range(3)]
    rows = pooled_rows(folders)
    for copies in (None, 1, 8):
        expected = [count_shares(folder, copies) for folder in folders]
        label = "all" if copies is None else str(copies)
        by_quantity = {row["quantity"]: row for row in rows if row["copies"] == label}
        assert by_quantity.keys() == expected[0].keys()
        for quantity, row in by_quantity.items():
            own = [counts[quantity] for counts in expected]
            assert row["value"] == pytest.approx(np.mean(own)), quantity
            assert 0 <= row["low"] <= row["value"] <= row["high"] <= 1
            assert row["seeds"] == 3
    whole = next(row for row in rows if (row["quantity"], row["copies"]) == ("flagged", "all"))
    assert whole["chunks"] == 3 * 29


def test_seeds_without_counts_are_omitted_and_zero_has_an_interval(tmp_path):
    folders = [
        write_audit(tmp_path / str(seed), seed, writes=0.0 if seed == 1 else 0.5)
        for seed in range(3)
    ]
    rows = pooled_rows(folders)
    missed = next(row for row in rows if (row["quantity"], row["copies"]) == ("missed", "all"))
    assert missed["seeds"] == 2
    own = [count_shares(folders[seed])["missed"] for seed in (0, 2)]
    assert missed["value"] == pytest.approx(np.mean(own))
    silent = [write_audit(tmp_path / f"silent {seed}", seed, writes=0.0) for seed in range(2)]
    by_quantity = {row["quantity"]: row for row in pooled_rows(silent)}
    assert "missed" not in by_quantity
    none = by_quantity["remembered_unlearned"]
    assert (none["value"], none["low"]) == (0.0, 0.0)
    # Exact upper bound for zero of 15 groups of two texts.
    assert none["high"] == pytest.approx(1 - 0.025 ** (1 / 15))
