"""Benchmarks whose members were drawn, scored: sides, parts, `blind`, and the commit of files."""

import json

import numpy as np
import pytest

from inject.errors import InputError, InputErrors
from inject.public_data.catalogue import data_sets
from inject.public_data.fetch import MANIFEST, fetch
from spikein.cli.scores_output import print_result, summary
from tests.detect.user_rows.test_drawn_benchmarks import toaa_row, write_toaa
from tests.hub_server import connect, serving

COMMIT = "01051ac" + "0" * 33
HUB = "sbordt/TOAA-Membership-Inference"
PLAIN, RANDOM = "plain_16x", "random_8tok_16x"


def toaa_rows(each=8):
    """Return ids below the tiny model's vocabulary, in two conditions."""
    random = np.random.default_rng(3)

    def ids(size):
        return random.integers(1, 512, size).tolist()

    return [
        toaa_row(condition, member, [0, *ids(12)], ids(8 if condition == RANDOM else 0))
        for condition in (PLAIN, RANDOM)
        for member in (True, False)
        for _ in range(each)
    ]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub with two shards of the data set at its pinned commit."""
    rows = toaa_rows()
    files = {
        f"data/train-0000{at}-of-00002.parquet": write_toaa(tmp_path / f"{at}.parquet", part)
        for at, part in enumerate((rows[:16], rows[16:]))
    }
    contents = {name: open(path, "rb").read() for name, path in files.items()}  # noqa: SIM115
    with serving() as server:
        connect(monkeypatch, server, tmp_path / "cache")
        server.add(HUB, contents, commit=COMMIT)
        yield server


def test_members_score_higher_for_a_model_that_memorised_them(
    detect, tmp_path, tiny_model_path, tiny_tokenizer
):
    """The orientation: a model trained on the members finds them, its reference does not."""
    import torch
    from transformers import AutoModelForCausalLM

    rows = toaa_rows()
    model = AutoModelForCausalLM.from_pretrained(tiny_model_path).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    members = [torch.tensor([row["input_ids"]]) for row in rows if row["membership"]]
    for _ in range(12):
        for ids in members:
            model(input_ids=ids, labels=ids).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
    trained = tmp_path / "trained"
    model.save_pretrained(trained)
    tiny_tokenizer.save_pretrained(trained)
    file = write_toaa(tmp_path / "t.parquet", rows)
    result = detect(
        file, "loss,reference", benchmark="toaa", model=trained, reference=str(tiny_model_path)
    )
    values = summary(result, tmp_path / "out")
    aucs = {row["detector"]: row["auc"].value for row in values["scores"]}
    assert aucs["loss"] > 0.95
    assert aucs["reference"] > 0.95
    assert "blind" in aucs
    assert set(values["parts"]) == {f"condition {PLAIN}", f"condition {RANDOM}"}
    for part in values["parts"].values():
        assert {row["detector"] for row in part} == {"loss", "reference", "blind"}
        assert {(row["members"], row["nonmembers"]) for row in part} == {(8, 8)}


def test_a_part_has_the_auc_of_its_rows(detect, tmp_path):
    file = write_toaa(tmp_path / "t.parquet", toaa_rows())
    whole = summary(detect(file, benchmark="toaa"), tmp_path / "out")
    for condition in (PLAIN, RANDOM):
        alone = summary(detect(file, benchmark="toaa", subset=condition), tmp_path / "out")
        [part] = [
            row for row in whole["parts"][f"condition {condition}"] if row["detector"] == "loss"
        ]
        assert part["auc"] == next(
            row["auc"] for row in alone["scores"] if row["detector"] == "loss"
        )
        assert alone["parts"] == {}


def test_parts_are_printed(detect, tmp_path, capsys):
    result = detect(write_toaa(tmp_path / "t.parquet", toaa_rows()), benchmark="toaa")
    print_result(result, tmp_path / "out")
    printed = capsys.readouterr().out
    assert f"AUC, condition {PLAIN}" in printed
    assert f"AUC, condition {RANDOM}" in printed
    assert result.notes[0].startswith("toaa: sbordt/OLMo-2-179M-Exp saw the members")


def test_non_members_of_hubble_belong_to_every_number_of_copies(detect, tmp_path):
    rows = [
        {"text": f"the river town number {at} {copies}", "duplicates": copies}
        for copies in (0, 1, 16)
        for at in range(4)
    ]
    values = summary(detect(rows, benchmark="hubble"), tmp_path / "out")
    assert set(values["parts"]) == {"1 copies", "16 copies"}
    for part in values["parts"].values():
        assert {(row["members"], row["nonmembers"]) for row in part} == {(4, 4)}


def test_a_subset_requires_a_benchmark_with_parts(detect):
    rows = [{"text": "a b", "label": 1}, {"text": "c d", "label": 0}]
    for benchmark in (None, "rows"):
        with pytest.raises(InputError, match=r"subset: .*Allowed: --benchmark toaa"):
            detect(rows, benchmark=benchmark, subset="plain_1x")


def test_toaa_is_fetched_by_name_and_scored(detect, hub, tmp_path):
    assert "toaa" not in {data_set.name for data_set in data_sets()}
    folder = tmp_path / "data"
    [state] = fetch(data_sets(["toaa"]), folder)
    assert (state.state, state.rows) == ("fetched", 32)
    entry = json.loads((folder / MANIFEST).read_text())["files"][state.path]
    assert (entry["commit"], entry["licence"]) == (COMMIT, "ODC-BY")
    assert [source["checked_against_hub"] for source in entry["sources"]] == [True, True]
    assert fetch(data_sets(["toaa"]), folder)[0].state == "checked"
    result = detect(str(folder / state.path), benchmark="toaa")
    assert len(result.rows.texts) == 32


def test_rows_of_the_hub_are_those_of_the_pinned_commit(detect, hub):
    result = detect(f"hf://datasets/{HUB}/data/train-*.parquet", benchmark="toaa")
    assert any(f"Read at commit {COMMIT}" in note for note in result.notes)
    other = "f" * 40
    hub.add(HUB, {"data/train-0.parquet": b""}, commit=other)
    with pytest.raises(InputError, match=r"of commit f{12}, and toaa is defined by commit 01051ac"):
        detect(f"hf://datasets/{HUB}@{other}/data/train-0.parquet", benchmark="toaa")


def test_another_main_branch_is_not_fetched(monkeypatch, tmp_path):
    with serving() as server:
        connect(monkeypatch, server, tmp_path / "cache")
        server.add(HUB, {"data/train-0.parquet": b""}, commit="f" * 40)
        with pytest.raises(InputErrors, match=r"main branch is of commit f{12}, not of 01051ac"):
            fetch(data_sets(["toaa"]), tmp_path / "data")
        assert not (tmp_path / "data/detect").exists()


def test_a_fetched_file_of_another_commit_is_refused(detect, hub, tmp_path):
    folder = tmp_path / "data"
    [state] = fetch(data_sets(["toaa"]), folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"][state.path]["commit"] = "e" * 40
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"train\.parquet: these rows are of commit e{12}"):
        detect(str(folder / state.path), benchmark="toaa")
