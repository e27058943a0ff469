"""A synthetic table of an unlearning study with the columns of `unlearning.parquet`."""

from collections.abc import Sequence
from math import nan
from typing import Any

METHODS = (
    "gradient_ascent",
    "gradient_ascent-once",
    "gradient_difference",
    "kl",
    "npo",
    "npo-retain",
    "simnpo",
    "simnpo-margin",
    "dpo",
    "rmu",
    "task_vector",
    "relabel",
)
DOSES = ("1", "8", "40")
_GONE = {"original": 0.0, "retrained": 1.0, "base": 1.0}


def measured_rows(
    *,
    methods: Sequence[str] = METHODS,
    axes: dict[str, str] | None = None,
    detectors: Sequence[str] = ("loss", "min_k", "reference"),
    seeds: int = 3,
) -> list[dict[str, Any]]:
    """Return the rows: each method forgot more than the previous one; the first is ruined."""
    table_rows = []
    models = [("original", "-", 0.0, 0.0), ("retrained", "-", 1.0, 0.05), ("base", "-", 1.0, 0.3)]
    for at, method in enumerate(methods):
        ruin = 30.0 if at == 0 else 4.0 if at == 1 else 0.06 * (at % 5)
        models.append(("unlearned", method, 0.35 + 0.09 * at, ruin))
    for model, method, gone, lost in models:

        def add(measure: str, value: float, half: float, **more: Any) -> None:
            row = {
                **(axes or {}),
                "model": model,  # noqa: B023
                "method": method,  # noqa: B023
                "dataset": "all",
                "copies": "all",
                "measure": measure,
                "detector": "-",
                "setting": "",
                "value": value,
                "low": value - half,
                "high": value + half,
                "forget": 27,
                "holdout": 54,
                "groups": 81,
                "seeds": seeds,
                "note": "any seed",
            }
            table_rows.append({**row, **more})

        for number, detector in enumerate(detectors):
            heights = {"all": 0.92, "1": 0.62, "8": 0.93, "40": 0.99}
            for copies, height in heights.items():
                if model == "base" and copies != "all":
                    continue
                auc = height + (0.5 - height) * gone + 0.004 * number
                place = {"detector": detector, "copies": copies}
                add("auc", auc, 0.05, **place)
                if model != "retrained":
                    add("auc_difference", auc - 0.5, 0.06, **place)
            add("privleak", -80 * (1 - gone), 9, detector=detector)
        for name in ("people", "tofu"):
            add("auc", 0.9 - 0.4 * gone, 0.05, detector=detectors[0], dataset=name)
        add("ks_distance", 0.6 * abs(1 - gone), 0.08)
        add("ks_p", 0.02 if gone < 0.9 else 0.6, nan)
        add("exact_memorisation", 0.9 - 0.7 * gone, 0.04)
        add("extraction_strength", max(0.0, 0.6 - 0.55 * gone), 0.05)
        add("forget_log_probability", -0.8 - 3.0 * gone, 0.2)
        for name, level, half in (("retain", -0.9, 0.1), ("general", -3.4, 0.05)):
            add(f"{name}_log_probability", level - lost, half)
            difference = f"{name}_log_probability_difference"
            if model != "retrained":
                add(difference, 0.05 - lost, half, setting="versus=retrained")
            if model not in ("retrained", "original"):
                add(difference, -lost, half, setting="versus=original")
        if model == "unlearned":
            for step, back in ((0, 0.0), (8, 1.2 - gone)):
                remembered = -0.8 - 3.0 * gone + back
                add("relearned_log_probability", remembered, 0.2, setting=f"steps={step}")
                versus = f"steps={step}:versus=retrained"
                add("relearned_log_probability_difference", back, 0.2, setting=versus)
            nothing = {"low": float("nan"), "high": float("nan")}
            add("relearn_steps", 8.0 if gone > 0.9 else 4.0, 0.0, **nothing)
            representative = "min_k" if "min_k" in detectors else detectors[0]
            place = {"detector": representative, "setting": "condition=4bit"}
            add("auc", 0.93 - 0.4 * gone, 0.05, **place)
            add("auc_difference", 0.43 * (1 - gone), 0.06, **place)
            add("auc_difference_trend", 0.3 * (1 - gone), 0.1, detector=representative)
    return table_rows


def verdict_rows(
    *, methods: Sequence[str] = METHODS, axes: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return one verdict per method and some of the measures behind it."""
    rows = []
    for at, method in enumerate(methods):
        sentence = (
            f"{method} is closer to the retrained model than to the original; closer to the "
            "retrained by AUC of min_k 0.12 [-0.08, 0.31] (position: 0 is the retrained model, 1 "
            "the original); against the retrained model: retained text -0.03 [-0.06, 0.00] nats a "
            "token (kept)."
        )
        lost = "retain_log_probability_difference"
        for measure, detector, versus, kind, verdict, value, note in (
            ("auc", "min_k", "", "forgetting", "closer to the retrained", 0.12, ""),
            (lost, "-", "retrained", "utility", *(("kept", -0.03) if at else ("lost", -0.5)), ""),
            (lost, "-", "original", "utility", *(("kept", 0.01) if at else ("lost", -0.4)), ""),
            ("all", "-", "", "all", "closer to the retrained" if at else "ruined", nan, sentence),
        ):
            rows.append(
                {
                    **(axes or {}),
                    "method": method,
                    "measure": measure,
                    "detector": detector,
                    "versus": versus,
                    "kind": kind,
                    "verdict": verdict,
                    "value": value,
                    "low": value - 0.2,
                    "high": value + 0.2,
                    "note": note,
                }
            )
    return rows


def audit_rows(*, methods: Sequence[str] = METHODS, seeds: int = 3) -> list[dict[str, Any]]:
    """Return the rows of `unlearning_audits.parquet`: per seed, then pooled by copies."""
    quantities = (
        "flagged", "false_alarms", "flagged_holdout", "remembered_original",
        "remembered_unlearned", "missed", "wrong", "calibrated_edge", "calibrated_false_alarms",
        "calibrated_flagged", "calibrated_missed",
    )  # fmt: skip
    places = [(seed, "all") for seed in range(seeds)]
    if seeds > 1:
        places += [(None, dose) for dose in ("all", "1", "8")]
    return [
        {
            "seed": seed,
            "method": method,
            "copies": copies,
            "quantity": quantity,
            "value": 0.05 * at + 0.01 * (seed or len(copies)) + 0.1 * number,
            "low": 0.0,
            "high": 0.05 * at + 0.3,
            "chunks": 48,
            "seeds": seeds if seed is None else 1,
            "note": "nothing is remembered" if quantity == "missed" else "",
        }
        for seed, copies in places
        for number, method in enumerate(methods)
        for at, quantity in enumerate(quantities[:7] if seed is None else quantities)
    ]
