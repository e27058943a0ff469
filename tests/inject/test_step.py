"""Steps that compare many models name their inputs by number, and find them again."""

from pathlib import Path

from inject.step import Step, numbered_folders, numbered_inputs


def step(label: str) -> Step:
    return Step(
        kind="thing", label=label, function="inject.digest:digest", settings={"label": label}
    )


def test_numbered_inputs_round_trip_per_group():
    groups = [
        {"scores": step(f"s{number}"), "model": step(f"m{number}") if number % 2 else None}
        for number in range(12)
    ]
    inputs = numbered_inputs(groups)
    assert len(inputs) == 18
    finished = {name: Path(part.label) for name, part in inputs.items()}
    for number, group in enumerate(groups):
        expected = {name: Path(part.label) for name, part in group.items() if part is not None}
        assert numbered_folders(finished, number) == expected
