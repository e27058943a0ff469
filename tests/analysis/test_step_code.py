"""The identity of an analysis contains the code that computes it but not the page code."""

import pytest

from inject.source_digest import Sources, read_source

SOURCES = Sources(read=read_source)
PRESENTATION = ("analysis.page", "analysis.validate", "analysis.comparison")
RUN = ("detect.engine", "detect.registry", "detect.detectors", "train.models", "spikein")


def reached(function: str, *below: str) -> set[str]:
    """Return the modules of a step's code that belong to these packages."""
    return {
        name
        for name in SOURCES.reached([function])
        if any(name == package or name.startswith(f"{package}.") for package in below)
    }


@pytest.mark.parametrize(
    "function",
    [
        "analysis.results:build",
        "analysis.trajectory.checkpoints:build",
        "analysis.task_accuracy.gain_step:build",
        "analysis.unlearning.unlearning_step:build",
    ],
)
def test_page_and_engine_edits_recompute_no_numbers(function):
    assert reached(function, *PRESENTATION, *RUN) == set()


def test_page_edits_recompute_no_audit():
    assert reached("analysis.unlearning_audit.audit:build_audit", *PRESENTATION) == set()
