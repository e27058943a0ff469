"""`spikein detect`: models that cannot be asked are refused, files are what their names say."""

import copy
import csv
import json
import math
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from analysis.auc_table import auc_table
from detect.engine.target import load_target
from detect.policy import ScoringPolicy
from detect.user_rows.labelled_rows import read_labelled
from inject.errors import InputError
from spikein.cli.main import app
from spikein.scoring.detect_file import DetectFileRequest, detect_file
from tests.analysis.oracles import tpr_at_fpr
from tests.analysis.test_auc_table import FAST, scores_table
from tests.conftest import make_texts


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def rows(tmp_path):
    texts = make_texts(24, words=9)
    return write(
        tmp_path / "rows.jsonl",
        [{"text": text, "label": row % 2} for row, text in enumerate(texts)],
    )


def detect(model, rows, tmp_path, **more):
    request = {"model": str(model), "examples": rows, "out": tmp_path / "s.parquet", **more}
    return detect_file(DetectFileRequest(**{"detectors": "loss", **request}))


def save(model, tokenizer, folder):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make(name, tokenizer, folder, **config):
    import transformers

    small = {
        "vocab_size": 512, "hidden_size": 16, "d_model": 16, "num_hidden_layers": 1,
        "num_layers": 1, "num_attention_heads": 2, "num_heads": 2, "num_key_value_heads": 2,
        "intermediate_size": 16, "d_ff": 16, "d_kv": 8, "max_position_embeddings": 64,
        "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "n_layer": 1, "n_head": 2,
    }  # fmt: skip
    kind = getattr(transformers, name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return save(kind(kind.config_class(**{**small, **config})), tokenizer, folder)


@pytest.mark.parametrize(
    "name",
    [
        "BertForMaskedLM",
        "BertLMHeadModel",
        "BertModel",
        "RobertaForMaskedLM",
        "ElectraForPreTraining",
        "T5ForConditionalGeneration",
        "BartForConditionalGeneration",
        "LlamaForSequenceClassification",
    ],
)
def test_a_model_that_is_not_causal_is_refused_before_its_weights_are_read(
    name, tmp_path, rows, tiny_tokenizer
):
    tied = {"tie_word_embeddings": True, "pad_token_id": 0}
    folder = make(name, tiny_tokenizer, tmp_path / "model", **tied)
    # Not a weight is read: there is none that could be.
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"not a causal language model|a causal language model's"):
        detect(folder, rows, tmp_path)
    with pytest.raises(InputError, match=r"causal language model"):
        load_target(str(folder))


def test_an_encoder_is_refused_as_reference_too(tmp_path, rows, tiny_tokenizer, tiny_model_path):
    folder = make("BertForMaskedLM", tiny_tokenizer, tmp_path / "bert")
    with pytest.raises(InputError, match=r"bert.*sees the words that follow"):
        detect(tiny_model_path, rows, tmp_path, reference=str(folder), detectors="reference")


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("GPT2LMHeadModel", {}),
        ("GPTNeoXForCausalLM", {}),
        ("Olmo2ForCausalLM", {}),
        ("LlamaForCausalLM", {"tie_word_embeddings": True}),
        ("BertLMHeadModel", {"is_decoder": True}),
    ],
)
def test_causal_models_are_scored(name, config, tmp_path, rows, tiny_tokenizer):
    folder = make(name, tiny_tokenizer, tmp_path / "model", **config)
    found = detect(folder, rows, tmp_path)
    assert not np.isnan(found.scores["score"].to_numpy()).any()


def test_a_causal_model_under_a_name_of_its_own_is_scored(tmp_path, rows, tiny_tokenizer):
    folder = make("LlamaForCausalLM", tiny_tokenizer, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "architectures": ["LLaMAForCausalLM"]})
    )
    assert not np.isnan(detect(folder, rows, tmp_path).scores["score"].to_numpy()).any()


def test_a_special_token_beyond_the_embedding_is_letters_in_a_text_that_spells_it(
    tmp_path, rows, tiny_tokenizer
):
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    number = tokenizer.convert_tokens_to_ids("<image>")
    folder = make("LlamaForCausalLM", tokenizer, tmp_path / "model", vocab_size=number)
    assert not np.isnan(detect(folder, rows, tmp_path).scores["score"].to_numpy()).any()
    spelled = write(tmp_path / "one.jsonl", [{"text": "plain"}, {"text": "words <image> words"}])
    assert not np.isnan(detect(folder, spelled, tmp_path).scores["score"].to_numpy()).any()


def test_a_tokenizer_larger_than_the_model_is_refused_before_weights_are_read(
    tmp_path, rows, tiny_tokenizer
):
    folder = make("LlamaForCausalLM", tiny_tokenizer, tmp_path / "model", vocab_size=300)
    (folder / "model.safetensors").write_bytes(b"")
    highest = max(tiny_tokenizer.get_vocab().values())
    with pytest.raises(InputError, match=rf"ids up to {highest}, .* embedding has 300 rows"):
        detect(folder, rows, tmp_path)


def test_a_model_that_looks_ahead_is_refused_whatever_its_configuration_says():
    """Such as a model that brings its own code and names a causal head."""
    from train.models.weight_check import check_looks_back

    class Toy(torch.nn.Module):
        device = torch.device("cpu")

        def __init__(self, ahead: bool) -> None:
            super().__init__()
            self.ahead = ahead
            self.embedding = torch.nn.Embedding(40, 8)

        def get_input_embeddings(self):
            return self.embedding

        def forward(self, input_ids):
            states = self.embedding(input_ids)
            seen = states.mean(1, keepdim=True) + states if self.ahead else states.cumsum(1)
            return type("Output", (), {"logits": seen @ self.embedding.weight.T})

    check_looks_back(Toy(ahead=False), "toy")
    with pytest.raises(InputError, match="toy: its predictions change with the words that follow"):
        check_looks_back(Toy(ahead=True), "toy")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_named(value, tmp_path, rows, tiny_model_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(tiny_model_path, folder)
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][3, 5] = value
    weights["model.norm.weight"][0] = value
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        InputError, match=r"NaN or infinity: model\.layers\.1\.mlp\.up_proj\.weight and 1"
    ):
        detect(folder, rows, tmp_path)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".CSV"])
def test_the_end_of_the_name_says_the_format(suffix, tmp_path, tiny_model_path):
    texts = ['the river, the "town"', "", "the bridge\nof winter"]
    examples = write(tmp_path / "rows.jsonl", [{"text": text, "id": text} for text in texts])
    out = tmp_path / f"scores{suffix}"
    result = detect(tiny_model_path, examples, tmp_path, out=out, detectors="loss,zlib")
    expected = result.scores.to_pylist()
    if suffix == ".parquet":
        found = pq.read_table(out).to_pylist()
    elif suffix == ".jsonl":
        found = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        with out.open(newline="") as file:
            found = list(csv.DictReader(file))
    assert [one["example_id"] for one in found] == [one["example_id"] for one in expected]
    for one, other in zip(found, expected, strict=True):
        if math.isnan(other["score"]):
            assert one["score"] in (None, "") or math.isnan(one["score"])
            assert one["reason"] == "empty text"
        else:
            assert float(one["score"]) == other["score"]


@pytest.mark.parametrize("name", ["scores.xlsx", "scores", "scores.json", "scores.parquet.gz"])
def test_another_end_is_refused_before_anything_is_read(name, tmp_path):
    with pytest.raises(InputError, match=r"\.parquet, \.csv, \.jsonl"):
        detect(tmp_path / "no model", "no rows", tmp_path, out=tmp_path / name)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.data", "a", "a.log", "a.json", "a.tsv"])
def test_json_lines_are_known_by_their_content(name, tmp_path):
    path = write(tmp_path / name, [{"text": "one", "label": 1}, {"text": "two", "label": 0}])
    found = read_labelled(path)
    assert (found.texts, found.labels) == (["one", "two"], [True, False])


def test_what_is_no_json_lines_is_what_its_name_says(tmp_path):
    (tmp_path / "a.txt").write_text("{not json}\nat all\n")
    assert read_labelled(str(tmp_path / "a.txt")).texts == ["{not json}\nat all\n"]
    (tmp_path / "a.data").write_text("just words\n")
    with pytest.raises(InputError, match=r"unknown file extension '\.data'.*\.jsonl"):
        read_labelled(str(tmp_path / "a.data"))


@pytest.mark.parametrize("header", ["Text,Label,ID,Group", " INPUT , LABEL ,Id,GROUP"])
def test_names_of_columns_are_known_in_any_case(header, tmp_path):
    (tmp_path / "a.csv").write_text(f"{header}\none,1,x,g\ntwo,0,y,g\n")
    found = read_labelled(str(tmp_path / "a.csv"))
    assert found[:4] == (["one", "two"], ["x", "y"], [True, False], ["group g", "group g"])
    assert found[4:] == (None, None, ())


def test_an_exact_name_wins_over_one_in_another_case(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"Text": "no", "text": "yes"}])
    assert read_labelled(path).texts == ["yes"]


def command(*arguments):
    return CliRunner().invoke(app, ["detect", *map(str, arguments)])


def test_unscored_rows_are_counted_without_labels_too(tmp_path, tiny_model_path):
    texts = [*make_texts(5, words=9), "", "a", ""]
    rows = write(tmp_path / "rows.jsonl", [{"text": text} for text in texts])
    arguments = ["--model", tiny_model_path, "--examples", rows, "--detectors", "loss",
                 "--out", tmp_path / "s.parquet"]  # fmt: skip
    done = command(*arguments)
    assert done.exit_code == 0, done.output
    line = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["loss"])
    assert line.split()[2:4] == ["5", "3"]
    assert "2 empty text; 1 one token" in line
    done = command(*arguments, "--json")
    (entry,) = json.loads(done.stdout)["scores"]
    assert (entry["scored"], entry["unscored"]) == (5, 3)
    assert entry["reasons"]["empty text"] == 2


def test_json_is_all_that_is_printed_and_agrees_with_the_file(tmp_path, rows, tiny_model_path):
    out = tmp_path / "s.jsonl"
    done = command("--model", tiny_model_path, "--examples", rows, "--out", out, "--json",
                   "--detectors", "all")  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["rows"], found["members"], found["nonmembers"]) == (24, 12, 12)
    assert found["out"] == str(out)
    assert any("--reference" in note for note in found["notes"])
    scores = [json.loads(line) for line in out.read_text().splitlines()]
    entry = next(one for one in found["scores"] if one["detector"] == "loss")
    own = np.array([one["score"] for one in scores if one["detector"] == "loss"])
    members, nonmembers = own[1::2], own[::2]
    auc = np.mean(members[:, None] > nonmembers[None, :])
    assert entry["auc"]["value"] == pytest.approx(auc)
    absent = dict.fromkeys(("value", "low", "high", "caution"))
    assert entry["tpr"]["0.1"] == {**absent, "reason": "fewer than 100 non-members"}


def test_tprs_stand_in_the_table_only_where_enough_non_members_stand_behind_them():
    random = np.random.default_rng(0)
    values = random.normal(size=450) + np.repeat([1.0, 0.0], [200, 250])
    labels = [1] * 200 + [0] * 250
    (row,) = auc_table(scores_table({"loss": values}), labels, settings=FAST)
    for rate in (0.05, 0.1):
        found = row.tpr[rate]
        assert found.value == pytest.approx(tpr_at_fpr(values[:200], values[200:], rate))
        assert found.low < found.value < found.high
    assert row.tpr[0.01].reason == "fewer than 1000 non-members"
    assert row.tpr[0.001].reason == "fewer than 10000 non-members"
    assert math.isnan(row.tpr[0.01].value)


def test_the_table_shows_tprs(tmp_path, tiny_model_path):
    texts = make_texts(204, words=6)
    rows = write(
        tmp_path / "rows.jsonl",
        [{"text": text, "label": row % 2} for row, text in enumerate(texts)],
    )
    done = command("--model", tiny_model_path, "--examples", rows, "--detectors", "loss",
                   "--out", tmp_path / "s.csv")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "TPR at 10% FPR" in done.stdout
    assert "TPR at 5% FPR" not in done.stdout


@pytest.mark.parametrize(
    ("change", "said", "unsaid"),
    [
        ({"detectors": "reference"}, "--reference PATH", "detect.reference"),
        ({"detectors": "dc_pdd"}, "--frequency FILE", "detect.frequency"),
        ({"detectors": "lira"}, "spikein run", "twins.shadows"),
        ({"policy": ScoringPolicy(long="error")}, "--long window or --long truncate", "long="),
        ({"device": "gpu9"}, "--device: 'gpu9'", "detect.device"),
    ],
)
def test_hints_name_the_flags_of_the_command(change, said, unsaid, tmp_path, tiny_model_path):
    rows = write(tmp_path / "rows.jsonl", [{"text": "the river and the town " * 60}])
    with pytest.raises(InputError) as caught:
        detect(tiny_model_path, rows, tmp_path, **change)
    assert said in str(caught.value)
    assert unsaid not in str(caught.value)
