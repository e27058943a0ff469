"""What the identity of an analysis holds: the code that computes it, and none that shows it."""

import pytest

from inject.source_digest import Sources, read_source

SOURCES = Sources(read=read_source)
SHOWN = ("analysis.page", "analysis.validate", "analysis.comparison")
RUN = ("detect.engine", "detect.registry", "detect.detectors", "train.models", "spikein")


def reached(function: str, *below: str) -> set[str]:
    """Return the modules of a step's code that lie in one of some packages."""
    return {
        name
        for name in SOURCES.reached([function])
        if any(name == one or name.startswith(f"{one}.") for one in below)
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
def test_an_edit_of_the_page_or_of_the_engine_makes_no_number_anew(function):
    assert reached(function, *SHOWN, *RUN) == set()


def test_an_edit_of_its_page_makes_no_audit_anew():
    assert reached("analysis.unlearning_audit.audit:build_audit", *SHOWN) == set()
