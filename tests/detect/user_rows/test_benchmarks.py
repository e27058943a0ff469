"""Benchmarks with given labels: read, checked, scored, with `blind` beside every number."""

import json
from itertools import islice

import pytest
from typer.testing import CliRunner

from detect.user_rows.benchmarks import benchmark_names, get_benchmark
from inject.errors import InputError
from spikein.cli.main import app
from spikein.scoring.detect_file import DetectFileRequest, detect_file
from tests.conftest import make_texts


def write(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def wikimia(path, *, words=32, rows=24):
    texts = make_texts(rows, seed=9, words=words + 5)
    cut = [" ".join(text.split()[:words]) for text in texts]
    return write(path, [{"input": text, "label": at % 2} for at, text in enumerate(cut)])


@pytest.mark.parametrize("words", [32, 64, 128, 256])
def test_wikimia_is_read_by_its_length(data_folder, words):
    file = data_folder / "detect" / "wikimia" / f"WikiMIA_length{words}.jsonl"
    rows = get_benchmark(f"WikiMIA_{words}").read(str(file))
    assert len(rows.texts) == {32: 776, 64: 542, 128: 250, 256: 82}[words]
    assert rows.labels is not None
    assert 0 < sum(rows.labels) < len(rows.labels)


def test_wikimia_of_another_length_is_refused(data_folder):
    file = data_folder / "detect" / "wikimia" / "WikiMIA_length64.jsonl"
    with pytest.raises(InputError, match=r"row 1 has 64 words.*Is it wikimia-64\?"):
        get_benchmark("wikimia-32").read(str(file))


def test_arxivtection_is_read_by_paper(data_folder):
    file = data_folder / "detect" / "decop" / "arXivTection.csv.gz"
    rows = get_benchmark("arxivtection").read(str(file))
    assert (len(rows.texts), len(set(rows.groups or ()))) == (1549, 50)
    assert sum(rows.labels or ()) == 762
    assert rows.paraphrases is not None
    assert {len(others) for others in rows.paraphrases} == {3}


def test_mimir_has_a_member_and_a_nonmember_a_row(tmp_path):
    pairs = [{"member": f"in {at}", "nonmember": f"out {at}"} for at in range(3)]
    rows = get_benchmark("mimir").read(write(tmp_path / "m.jsonl", pairs))
    assert rows.texts == ["in 0", "in 1", "in 2", "out 0", "out 1", "out 2"]
    assert rows.labels == [True] * 3 + [False] * 3
    with pytest.raises(InputError, match="has no text 'nonmember'"):
        get_benchmark("mimir").read(write(tmp_path / "n.jsonl", [{"member": "a"}]))


def test_rows_without_labels_are_no_benchmark(tmp_path):
    file = write(tmp_path / "r.jsonl", [{"text": "a b"}])
    for name in ("rows", "wikimia-32", "arxivtection"):
        with pytest.raises(InputError, match="has labels, and these rows have none"):
            get_benchmark(name).read(file)


def test_an_unknown_benchmark_is_refused_with_the_names():
    with pytest.raises(InputError, match="Did you mean 'wikimia-64'"):
        get_benchmark("wikimia64")
    assert benchmark_names()[-1] == "rows"


def test_blind_and_a_warning_stand_beside_every_benchmark(tmp_path, tiny_model_path):
    request = DetectFileRequest(
        model=str(tiny_model_path),
        examples=wikimia(tmp_path / "32.jsonl"),
        out=tmp_path / "scores.parquet",
        detectors="loss",
        benchmark="wikimia-32",
    )
    result = detect_file(request)
    assert {row["detector"] for row in result.scores.to_pylist()} == {"loss", "blind"}
    assert "Read every AUC beside that of `blind`" in result.notes[0]


def test_wrong_names_are_refused_before_a_model_is_looked_for(tmp_path):
    given = {"model": "nowhere", "examples": "nothing.jsonl", "out": tmp_path / "scores.parquet"}
    with pytest.raises(InputError, match="no benchmark is called"):
        detect_file(DetectFileRequest(**given, benchmark="bookmia"))


def test_the_command_prints_blind_beside_the_number(data_folder, tmp_path, tiny_model_path):
    source = data_folder / "detect" / "wikimia" / "WikiMIA_length32.jsonl"
    file = tmp_path / "32.jsonl"
    with source.open(encoding="utf-8") as lines:
        file.write_text("".join(islice(lines, 40)), encoding="utf-8")
    done = CliRunner().invoke(
        app,
        [
            "detect", "--model", str(tiny_model_path), "--examples", str(file),
            "--benchmark", "wikimia-32", "--detectors", "loss",
            "--out", str(tmp_path / "s.csv"),
        ],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "blind" in done.output
