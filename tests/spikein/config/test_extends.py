"""One experiment file extends another: the merge, the places of keys, and refusals."""

from pathlib import Path

import pytest

from inject.errors import InputError, InputErrors
from spikein.config.load import check_document, read_experiment, read_extended, resolved_yaml
from spikein.config.yaml_document import parse_document
from tests.spikein.samples import SAMPLE, line_of, read, write_sample


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A folder with `small.yaml`, from which the tests extend; the working directory is another."""
    folder, elsewhere = tmp_path / "lab", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    write_sample(folder)
    return folder


def write(folder: Path, text: str, name: str = "child.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def problems(path: Path, *overrides: str) -> tuple[str, ...]:
    with pytest.raises(InputErrors) as caught:
        read_experiment(path, overrides)
    return caught.value.problems


def test_mappings_are_merged_and_everything_else_is_replaced(lab):
    child = write(
        lab,
        "extends: small.yaml\n"
        "name: mine\n"
        "seeds: [7]\n"
        "train: {epochs: 3}\n"
        "contaminants:\n  - {dataset: fictional, members: 5, nonmembers: 6}\n",
    )
    experiment = read_experiment(child).experiment
    by_hand = read(
        "name=mine",
        "seeds=[7]",
        "train.epochs=3",
        "contaminants=[{dataset: fictional, members: 5, nonmembers: 6}]",
    )
    assert experiment == by_hand


def test_the_path_is_relative_to_the_file(lab):
    write(lab, "extends: ../small.yaml\ntrain: {epochs: 2}\n", "deep/middle.yaml")
    child = write(lab, "extends: deep/middle.yaml\nseeds: [5]\n")
    experiment = read_experiment(child).experiment
    assert (experiment.train.epochs, experiment.seeds, experiment.train.lr) == (2, (5,), 1e-3)


def test_a_shipped_experiment_is_extended_by_its_name_from_any_folder(lab):
    child = write(lab, "extends: quickstart\ntrain: {epochs: 2}\nsweep: null\n")
    shipped = read_experiment("quickstart", ["train.epochs=2", "sweep=null", "name=child"])
    assert read_experiment(child) == shipped


def test_a_run_without_a_name_is_named_after_its_file(lab):
    write(lab, "extends: small.yaml\n", "middle.yaml")
    assert read_experiment(write(lab, "extends: middle.yaml\n")).experiment.name == "child"
    assert read_experiment(lab / "middle.yaml").experiment.name == "middle"
    named = write(lab, "extends: middle.yaml\nname: own\n", "other.yaml")
    assert read_experiment(named).experiment.name == "own"


def test_variables_work_across_files(lab):
    child = write(
        lab,
        "extends: small.yaml\nvariables: {count: 30}\n"
        "contaminants: [{dataset: fictional, members: '${count}', nonmembers: 20}]\n",
    )
    for overrides, path in (((), "files/*.jsonl"), (["data=third"], "third/*.jsonl")):
        experiment = read_experiment(child, overrides).experiment
        assert (experiment.contaminants[0].members, experiment.corpus.sources[0].path) == (30, path)


def test_null_removes_a_key_and_an_axis(lab):
    write(
        lab,
        SAMPLE + "sweep: {train.lr: [1e-3, 2e-3], copies: [{fixed: 1}, {fixed: 2}]}\n",
        "s.yaml",
    )
    child = write(lab, "extends: s.yaml\nseeds: [0]\nsweep: {train.lr: null}\n")
    assert [arm.labels for arm in read_experiment(child).arms] == [
        {"copies": "fixed=1"},
        {"copies": "fixed=2"},
    ]
    assert len(read_experiment(child, ["sweep=null"]).arms) == 1
    child = write(lab, "extends: small.yaml\ncopies: {poisson: null, levels: [1, 2]}\n")
    assert read_experiment(child).experiment.copies.levels == (1, 2)


def test_keys_keep_their_file_and_line(lab):
    child = write(lab, "extends: small.yaml\nseeds: [3]\ntrain:\n  epochs: 0\n  contxt: 3\n")
    bad = SAMPLE.replace("members: 20,", "members: twenty,")
    write_sample(lab, bad)
    report = "\n".join(problems(child))
    assert f"{child}:4: train.epochs: is the number 0" in report
    assert f"{child}:5: train.contxt: no such key. Did you mean 'context'" in report
    assert f"{lab / 'small.yaml'}:{line_of('twenty', bad)}: contaminants.0.members" in report
    document, _ = read_extended(child)
    assert document.place(("train",)) == f"{child}:3"
    assert document.place(("train", "lr")) == f"{lab / 'small.yaml'}:{line_of('lr', bad)}"
    assert document.place(("seeds", 1)) == f"{child}:2", "no place of the replaced list"
    assert all(path[0] != "extends" for path in document.places)


def test_keys_of_two_files_that_exclude_each_other_are_named_with_their_places(lab):
    child = write(lab, "extends: small.yaml\ncopies: {levels: [1, 2]}\n")
    (problem,) = problems(child)
    assert "give exactly one of fixed, poisson, levels" in problem
    assert f"poisson at {lab / 'small.yaml'}:{line_of('poisson')}, levels at {child}:2" in problem
    assert "Setting a key to null removes it" in problem


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[small.yaml]", "extends: is a list of 1. Allowed: one name"),
        ("''", "extends: is the text ''"),
        ('"${data}.yaml"', "variables cannot be used here"),
        ("smal.yaml", "there is no such file. Did you mean 'small.yaml'"),
        ("quikstart", "Did you mean 'quickstart'"),
        ("small", "There is a file"),
        ("child.yaml", "extend each other in a circle"),
        ("sub.yaml", "is a folder; an experiment is a file"),
        ("~nobody-of-this-name/a.yaml", "there is no such file"),
        ('"a\\0b.yaml"', "there is no such file"),
    ],
)
def test_a_bad_extends_is_refused_at_its_line(lab, value, message):
    (lab / "sub.yaml").mkdir()
    child = write(lab, f"name: c\nextends: {value}\n")
    with pytest.raises(InputError) as caught:
        read_experiment(child)
    assert str(caught.value).startswith(f"{child}:2: extends: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seeds", "message"),
    [
        ("a: [", "[3]", r"other\.yaml:1: not valid YAML"),
        (SAMPLE.replace("seeds: [0, 1]", "seeds: &s [0, 1]"), "*s", "found undefined alias"),
    ],
)
def test_extended_files_are_parsed_separately(lab, text, seeds, message):
    write(lab, text, "other.yaml")
    with pytest.raises(InputError, match=message):
        read_experiment(write(lab, f"extends: other.yaml\nseeds: {seeds}\n"))


def test_a_circle_of_three_files_names_all_of_them(lab):
    first = write(lab, "extends: b.yaml\n", "a.yaml")
    write(lab, "extends: ./c.yaml\n", "b.yaml")
    last = write(lab, "extends: ../lab/a.yaml\n", "c.yaml")
    with pytest.raises(InputError, match=r"a\.yaml → .*b\.yaml → .*c\.yaml → .*a\.yaml") as caught:
        read_experiment(first)
    assert f"{last}:1: " in str(caught.value)


def test_the_command_line_cannot_extend_and_a_misspelt_key_is_recognised(lab):
    (problem,) = problems(lab / "small.yaml", "extends=quickstart")
    assert "set extends in the experiment file, not on the command line" in problem
    (problem,) = problems(write(lab, SAMPLE + "extend: quickstart\n"))
    assert "extend: no such key. Did you mean 'extends'?" in problem


def test_overrides_win_over_both_files(lab):
    child = write(lab, "extends: small.yaml\ntrain: {lr: 2e-3}\n")
    assert read_experiment(child, ["train.lr=3e-3"]).experiment.train.lr == 3e-3
    (problem,) = problems(
        write(lab, "extends: small.yaml\nsweep: {train.lr: [1, 2]}"), "train.lr=3"
    )
    assert "train.lr is swept" in problem


@pytest.mark.parametrize("overrides", [("train.lr=3", "sweep=null"), ("sweep=null", "train.lr=3")])
def test_a_key_whose_sweep_ends_on_the_same_command_line_may_be_set(lab, overrides):
    child = write(lab, "extends: small.yaml\nsweep: {train.lr: [1, 2]}\n")
    assert read_experiment(child, overrides).experiment.train.lr == 3.0


def test_the_resolved_file_needs_no_other_file(lab, tmp_path):
    child = write(lab, "extends: quickstart\nseeds: [3]\n")
    checked = read_experiment(child)
    text = resolved_yaml(checked.experiment)
    assert "extends" not in text
    assert check_document(parse_document(text, name="again")) == checked


def test_a_local_file_named_like_a_shipped_one_is_noted(lab):
    write(lab, SAMPLE, "quickstart.yaml")
    (note,) = read_experiment(write(lab, "extends: quickstart\n")).notes
    assert "give its path to use it" in note
    assert read_experiment(write(lab, "extends: quickstart.yaml\n")).notes == ()
    Path("llama-1m").write_text("hidden: 3\n")
    (note,) = read_experiment(lab / "small.yaml").notes
    assert "'llama-1m' means the model shape" in note
