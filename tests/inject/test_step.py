"""Steps that compare many models name their inputs by number, and find them again."""

from pathlib import Path

from inject.step import Reading, Step, numbered_folders, numbered_inputs, numbered_reads


def step(label: str) -> Step:
    return Step(
        kind="thing", label=label, function="inject.digest:digest", settings={"label": label}
    )


def test_each_group_gets_back_what_it_put_in():
    groups = [
        {"scores": step(f"s{number}"), "model": step(f"m{number}") if number % 2 else None}
        for number in range(12)
    ]
    inputs = numbered_inputs(groups)
    assert len(inputs) == 18
    finished = {name: Path(one.label) for name, one in inputs.items()}
    for number, group in enumerate(groups):
        expected = {name: Path(one.label) for name, one in group.items() if one is not None}
        assert numbered_folders(finished, number) == expected


def test_numbers_are_in_order_as_texts():
    inputs = numbered_inputs([{"scores": step(str(number))} for number in range(101)])
    assert sorted(inputs) == list(inputs)


def test_what_is_read_is_said_for_every_group_that_has_it():
    inputs = numbered_inputs([{"examples": step("e")}, {"examples": step("f"), "model": step("m")}])
    reading = Reading(files=("log",))
    assert numbered_reads(inputs, "model", reading) == {"0001-model": reading}
    assert set(numbered_reads(inputs, "examples", reading)) == {"0000-examples", "0001-examples"}
