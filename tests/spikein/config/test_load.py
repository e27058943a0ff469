"""Experiment files: all problems are reported at once, and resolved files read back the same."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spikein.config.load import check_document, resolved_yaml
from spikein.config.schema import Experiment, plain_values
from spikein.config.yaml_document import parse_document
from tests.processes import printed
from tests.spikein.samples import SAMPLE, line_of, problems, read

TWIN = "{dataset: fictional, members: 5, nonmembers: 5}"


def test_all_problems_are_reported_at_once_with_their_lines():
    text = SAMPLE.replace("lr: 1e-3", "lrr: 1e-3").replace("members: 20,", "members: twenty,")
    text = text.replace("tokens: 50_000", "tokens: -1") + "colour: red\n"
    messages = problems(text=text)
    assert len(messages) == 4
    joined = "\n".join(messages)
    assert (
        f"small.yaml:{line_of('lrr', text)}: train.lrr: no such key. Did you mean 'lr'?" in joined
    )
    assert f"small.yaml:{line_of('twenty', text)}: contaminants.0.members: is the text" in joined
    assert f"small.yaml:{line_of(': -1', text)}: corpus.tokens: is the number -1" in joined
    assert f"small.yaml:{line_of('colour', text)}: colour: no such key." in joined


def test_problems_of_file_and_command_line_are_reported_together():
    messages = problems("trian.lr=1", "train.epochs=0", text=SAMPLE.replace("${data}", "${dat}"))
    report = "\n".join(messages)
    assert len(messages) == 3
    assert "Did you mean 'train'" in report
    assert "override train.epochs=0: train.epochs: is the number 0. Allowed: more than 0." in report
    assert "${dat} is not a variable. Did you mean 'data'?" in report


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("corpus.tokens='5'", "is the text '5'. Allowed: a whole number"),
        ("corpus.tokens=true", "is true. Allowed: a whole number"),
        ("corpus=3", "is the number 3. Allowed: a mapping"),
        ("copies.poisson=0", "more than 0"),
        ("copies={fixed: 1, poisson: 2}", "give exactly one of fixed, poisson, levels"),
        ("copies={fixd: 1}", "Did you mean 'fixed'"),
        ("train.lr=0", "more than 0"),
        ("train.lr=fast", "a number"),
        ("train.schedule=cosin", "Did you mean 'cosine'"),
        ("placement.policy=anywhere", "Allowed: splice, window, document"),
        ("corpus.sources.0.kind=file", "Did you mean 'files'"),
        ("corpus.sources.0={path: x}", "kind is missing. Allowed: docstrings, files, hub"),
        ("corpus.sources.0.pth=x", "Did you mean 'path'"),
        ("corpus.sources=[]", "give exactly one of sources and imported"),
        ("detect.detectors=3", "Allowed: all or a list"),
        ("detect.bos=maybe", "Allowed: auto, always, never"),
        ("model.tokenizer=5", "a mapping or text"),
        ("seeds=[1, 1]", "twice"),
        (f"contaminants=[{TWIN}, {TWIN}]", "'fictional' is already the name of contaminants.0"),
        ("seeds=[-1]", "0 or more"),
        ("seeds=3", "Allowed: a list"),
        ("name=../up", "cannot name a folder"),
        ("variables.data=[1]", "is a list of 1. Allowed: text or"),
        ("base=null", "a shape has only new weights"),
        ("corpus.tokens=60", "do not fill one window"),
        ("base.tokens=500", "do not fill one batch"),
    ],
)
def test_each_bad_input_has_one_clear_problem(override, expected):
    messages = problems(override)
    assert len(messages) == 1
    assert expected in messages[0]
    assert "override" in messages[0] or "small.yaml" in messages[0]
    for jargon in ("Input should", "pydantic", "validation", "type=", "ctx"):
        assert jargon not in messages[0]


def test_missing_parts_are_all_named():
    messages = problems(text="name: x\n")
    missing = {"model", "corpus", "contaminants", "copies", "train"}
    assert {text.split(": ")[1] for text in messages} == missing
    assert all(text.endswith("is missing") for text in messages)


def test_a_pretrained_model_is_its_own_base():
    model = "model={pretrained: some/model}"
    assert read(model, "base=null").base is None
    (message,) = problems(model)
    assert "a pretrained model is its own base" in message
    (message,) = problems(model, "base=null", "train.mode=pretrain")
    assert "train.mode" in message
    (message,) = problems("model={pretrained: m, tokenizer: {vocab_size: 512}}", "base=null")
    assert "keeps the tokenizer" in message


def test_optional_parts_can_be_removed_by_null():
    text = SAMPLE + "sweep: {train.lr: [1e-3, 1e-4]}\nanalysis: {replicates: 100}\n"
    assert read("sweep=null", "analysis=null", text=text) == read()


@given(
    template=st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20),
    rate=st.floats(1e-6, 100),
    clip=st.none() | st.floats(1e-3, 10),
    near=st.none() | st.floats(0.1, 1),
    seeds=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=3, unique=True),
    option=st.sampled_from(["true", "no", "1e3", "null", "${x}", "$${", "2020-01-01", "- a", "#"]),
)
@settings(max_examples=30, deadline=None)
def test_resolved_yaml_reads_back_the_same(template, rate, clip, near, seeds, option):
    plain = plain_values(read())
    plain["copies"] = {"poisson": rate}
    plain["train"]["max_grad_norm"] = clip
    plain["pool"]["near_duplicate"] = near
    plain["seeds"] = seeds
    plain["model"]["shape"] = option
    plain["corpus"]["sources"][0]["path"] = template
    experiment = Experiment.model_validate(plain)
    again = check_document(parse_document(resolved_yaml(experiment), name="again")).experiment
    assert again == experiment
    assert resolved_yaml(again) == resolved_yaml(experiment)
    # Other readers of YAML give the same values, with all defaults filled in.
    values = yaml.safe_load(resolved_yaml(experiment))
    assert values["train"]["schedule"] == experiment.train.schedule
    assert values["copies"] == {"poisson": rate}


def test_settings_modules_do_not_import_torch():
    code = (
        "import sys, spikein.config.load; print([m for m in ('torch', 'transformers', 'datasets', \
        'sklearn', 'resvg_py') if m in sys.modules])"
    )
    assert printed(code) == "[]"
