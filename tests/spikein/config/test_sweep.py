"""Arms: all combinations, their labels, and problems that name the swept value."""

import itertools

import pytest

from inject.corpus.background.docstrings import DocstringsSource
from inject.corpus.background.files import FilesSource
from spikein.config.load import check_document, resolved_yaml
from spikein.config.sweep import short_label, value_label
from spikein.config.yaml_document import parse_document
from tests.spikein.samples import SAMPLE, problems, read, read_checked

SWEPT = SAMPLE + "sweep:\n  train.lr: [1e-3, 1.0e-4]\n  copies: [{fixed: 1}, {poisson: 4}]\n"


def test_without_a_sweep_there_is_one_arm_per_seed():
    experiment, arms = read(), read_checked().arms
    assert [arm.seed for arm in arms] == [0, 1]
    assert arms[0].axes == {}
    assert arms[1].experiment == experiment.model_copy(update={"seeds": (1,)})


def test_arms_are_all_combinations_in_the_order_of_the_file():
    arms = read_checked(text=SWEPT).arms
    expected = itertools.product(["0.001", "0.0001"], ["fixed=1", "poisson=4"], [0, 1])
    assert [(*arm.labels.values(), arm.seed) for arm in arms] == list(expected)
    last = arms[-1]
    assert last.axes == {"train.lr": 1e-4, "copies": {"poisson": 4.0}}
    assert last.experiment.train.lr == 1e-4
    assert last.experiment.copies.poisson == 4
    assert last.experiment.sweep == {}
    assert last.experiment.seeds == (1,)
    assert last.label == "lr 0.0001, copies poisson=4, seed 1"


def test_an_arm_equals_the_experiment_written_by_hand():
    by_hand = read("train.lr=1e-4", "copies={poisson: 4}", "seeds=[1]")
    assert read_checked(text=SWEPT).arms[-1].experiment == by_hand


def test_a_key_may_be_given_only_by_the_sweep_in_lists_and_with_variables():
    text = SAMPLE.replace("copies: {poisson: 2}\n", "")
    text += "sweep:\n  copies: [{fixed: 1}, {fixed: 2}]\n  contaminants.0.members: [5]\n"
    text += "  corpus.sources.0.path: ['${data}/a']\n"
    experiments = [arm.experiment for arm in read_checked("seeds=[0]", "data=D", text=text).arms]
    assert [experiment.copies.fixed for experiment in experiments] == [1, 2]
    first = experiments[0]
    assert (first.contaminants[0].members, first.corpus.sources[0].path) == (5, "D/a")


def test_arms_survive_the_resolved_file():
    checked = read_checked(text=SWEPT)
    again = check_document(parse_document(resolved_yaml(checked.experiment), name="again"))
    assert again == checked


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("train.lr: [1e-3, 0]", "(sweep: with train.lr=0): train.lr: is the number 0"),
        ("train.lrr: [1e-3, 1e-2]", "train.lrr: no such key. Did you mean 'lr'?"),
        ("train.lr: 1e-3", "must be a list of at least one value. Allowed: such as [0.001, …]"),
        ("train.lr: [1e-3, 0.001]", "'0.001' is given twice"),
        ("copies: [{fixed: 1}, {fixd: 2}]", "with copies=fixd=2): copies.fixd: no such key"),
        ("{copies: [{fixed: 1}], copies.fixed: [2]}", "is part of"),
        ("seeds: [[0], [1]]", "sweep.seeds: cannot be swept"),
        ("contaminants.3.members: [1]", "it has no item 3"),
        ("corpus.tokens: [50_000, 10]", "with corpus.tokens=10): corpus.tokens: 10 tokens do not"),
        (f"train.lr: {list(range(1, 1002))}", "1,001 combinations"),
    ],
)
def test_a_bad_sweep_names_the_value(sweep, message):
    (problem,) = problems(text=f"{SAMPLE}sweep:\n  {sweep}\n")
    assert message in problem


def test_error_from_two_axes_names_both():
    text = SAMPLE + "sweep: {corpus.tokens: [50_000, 2_000], train.batch_tokens: [1024, 4096]}"
    (problem,) = problems(text=text)
    assert "with corpus.tokens=2000, train.batch_tokens=4096" in problem


def test_a_problem_of_all_arms_is_reported_once_and_blames_no_value():
    (problem,) = problems("train.epochs=0", text=SWEPT)
    assert "with" not in problem


def test_labels_are_short_and_exact():
    values = (0.001, 1e-5, 0.12345678, 3, True, None, ["x", 1], {"a": 1, "b": [2, 3]})
    labels = ("0.001", "1e-05", "0.12345678", "3", "true", "none", "x-1", "a=1,b=2-3")
    assert tuple(map(value_label, values)) == labels


def files(*paths: str, weight: float = 1.0) -> tuple[FilesSource, ...]:
    return tuple(FilesSource(kind="files", path=path, weight=weight) for path in paths)


def test_sources_go_by_the_names_of_their_files():
    web = files("d/background/redpajama_sample/**/*.jsonl.gz", "d/wiki_en_pile.jsonl.gz")
    assert short_label(web) == "redpajama_sample-wiki_en_pile"
    assert short_label(files("arxiv_abstracts.jsonl.gz")) == "arxiv_abstracts"
    assert short_label(files("hf://datasets/owner/name/v1.5-part.parquet")) == "v1.5-part"
    # A pattern without words keeps its label.
    assert short_label(files("*.jsonl")) == value_label(files("*.jsonl"))
    docstrings = DocstringsSource(kind="docstrings", packages=("pydantic",))
    assert short_label((docstrings, *files("a.txt"))) == f"{value_label(docstrings)}-a"


def test_short_labels_of_sources_are_used_if_they_distinguish_the_arms():
    def labels(*values: str) -> set[str]:
        text = f"{SAMPLE}sweep:\n  corpus.sources: [{', '.join(values)}]\n"
        return {arm.labels["corpus.sources"] for arm in read_checked(text=text).arms}

    a, b, c = (f"[{{kind: files, path: {path}}}]" for path in ("a/x.txt", "b/x.txt", "b/y.txt"))
    assert labels(a, c) == {"x", "y"}
    exact = labels(a, b)
    assert len(exact) == 2
    assert all(path in " ".join(exact) for path in ("a/x.txt", "b/x.txt"))
