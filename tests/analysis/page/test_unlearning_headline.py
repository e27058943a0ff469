"""The headline on unlearned models claims only what the intervals support."""

import re

import numpy as np
import pytest

from analysis.intervals.estimate import Estimate
from analysis.page.unlearning.study import method_title
from analysis.page.unlearning.verdicts import judged_models, unlearning_headline
from analysis.unlearning.verdict import ALL, overall_verdict, position_verdict, verdict_row

MARGIN = 0.1
NEAR = "brought the model near one that never saw the texts"
NONE = "shown to bring the model near one that never saw the texts: "


def place(low: float, high: float) -> dict:
    estimate = Estimate((low + high) / 2, low, high)
    return verdict_row("auc", "forgetting", position_verdict(estimate), estimate, detector="min_k")


def loss(versus: str, low: float, high: float) -> dict:
    sure = "lost" if high < -MARGIN else "kept" if low > -MARGIN else "cannot be told"
    estimate = Estimate((low + high) / 2, low, high)
    return verdict_row(
        "retain_log_probability_difference", "utility", sure, estimate, versus=versus
    )


def rows_of(method: str, findings: list[dict], arm: dict | None = None) -> list[dict]:
    whole = verdict_row(ALL, ALL, overall_verdict(findings))
    return [{**(arm or {}), "method": method, **finding} for finding in (*findings, whole)]


def headline(*rows: list[dict]) -> str:
    return unlearning_headline(judged_models([row for model_rows in rows for row in model_rows]))


GOOD, BAD, OPEN = [place(-0.2, 0.3)], [place(0.8, 1.1)], [place(-1.0, 2.0)]
PAST, MIRROR = [place(-0.7, -0.1)], [place(-1.4, -0.9)]
DEAD = [verdict_row("auc", "forgetting", "diverged", detector="loss")]
LOST = [*GOOD, loss("retrained", -0.4, -0.2), loss("original", -0.9, -0.5)]
LOST_ONCE = [*GOOD, loss("retrained", 0.0, 0.2), loss("original", -0.9, -0.5)]


ORIGINAL = "left it nearer the original (0.95 [0.80, 1.10])"


@pytest.mark.parametrize(
    ("findings", "verb"),
    [
        (BAD, ORIGINAL),
        (OPEN, "cannot be placed"),
        (LOST, "ruined it (retained text −0.30 [−0.40, −0.20] nats per token)"),
        ([*GOOD, *BAD], "left it nearer the original by only some measures"),
        ([*PAST, *MIRROR], "over-forgot (−0.40 [−0.70, −0.10])"),
        (MIRROR, "over-forgot to the mirror of the original (−1.15 [−1.40, −0.90])"),
        (DEAD, "ended without a finite score"),
    ],
)
def test_headline_of_a_method_that_missed_the_retrained_model(findings, verb):
    assert headline(rows_of("npo", findings)) == f"NPO is not {NONE}it {verb}."


def test_headline_of_methods_near_the_retrained_model():
    assert headline(rows_of("npo", GOOD)) == f"NPO {NEAR} (0.05 [−0.20, 0.30])."
    assert headline(rows_of("npo", LOST_ONCE)) == f"NPO {NEAR} (0.05 [−0.20, 0.30])."
    both = [rows_of("npo", GOOD), rows_of("kl", [place(0.0, 0.4)])]
    assert headline(*both) == f"Both methods {NEAR} (within [−0.20, 0.40])."
    mixed = [rows_of("rmu", BAD), rows_of("npo", GOOD)]
    assert headline(*mixed) == f"NPO {NEAR} (0.05 [−0.20, 0.30]); RMU {ORIGINAL}."
    unknown = [rows_of("npo", OPEN), rows_of("kl", OPEN)]
    assert headline(*unknown) == f"No method is {NONE}Both methods cannot be placed."
    arms = [rows_of("npo", GOOD, {"lr": "1"}), rows_of("npo", BAD, {"lr": "2"})]
    once = "NPO in 1 of 2 arms"
    assert headline(*arms) == f"{once} {NEAR} (0.05 [−0.20, 0.30]); {once} {ORIGINAL}."


def test_no_claim_goes_beyond_the_intervals():
    rng = np.random.default_rng(0)
    holds = {
        "near one": lambda low, high: low >= -0.5 and high <= 0.5,
        "over-forgot": lambda low, high: high <= 0,
        "nearer the original": lambda low, high: low >= 0.5,
        "ruined": lambda low, high: high <= -MARGIN,
    }
    claims = 0
    for _ in range(400):
        studies = []
        for method in ("npo", "rmu", "kl", "dpo", "simnpo")[: rng.integers(1, 6)]:
            centres, widths = rng.normal(0.3, 0.6, 4), rng.exponential(0.2, 4)
            ends = list(zip(centres - widths, centres + widths, strict=True))
            lost = [loss(name, low - 0.6, high - 0.6) for name, (low, high)
                    in zip(("retrained", "original"), ends[2:], strict=True)]  # fmt: skip
            studies.append(rows_of(method, [place(*ends[0]), place(*ends[1]), *lost]))
        text = headline(*studies).partition("texts: ")[2] or headline(*studies)
        for clause in text.split("; "):
            numbers = re.findall(r"\[(−?[+\d.]+), (−?[+\d.]+)\]", clause)
            for low, high in (
                tuple(float(end.replace("−", "-")) for end in pair) for pair in numbers
            ):
                (claim,) = [claim for claim in holds if claim in clause]
                # Bounds are rounded to hundredths.
                assert holds[claim](low + 0.005 * (low < 0.5), high - 0.005), clause
                claims += 1
    assert claims > 200


def test_method_titles_in_print():
    labels = ("npo", "npo-retain", "gradient_ascent,5", "nponly")
    titles = ["NPO", "NPO-retain", "Gradient ascent,5", "nponly"]
    assert [method_title(label) for label in labels] == titles
    assert judged_models([]) == []
