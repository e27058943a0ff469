"""Benchmarks with given labels: read and checked."""

import json

import pytest

from detect.user_rows.benchmarks import benchmark_names, get_benchmark
from detect.user_rows.row_settings import RowSettings
from inject.errors import InputError


def write(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def test_wikimia_is_read_by_its_length(data_folder):
    for words, count in {32: 776, 64: 542, 128: 250, 256: 82}.items():
        file = data_folder / "detect" / "wikimia" / f"WikiMIA_length{words}.jsonl"
        rows = get_benchmark(f"WikiMIA_{words}").read(str(file), RowSettings())
        assert len(rows.texts) == count
        assert 0 < sum(rows.labels or ()) < count


def test_wikimia_of_another_length_is_rejected(data_folder):
    file = data_folder / "detect" / "wikimia" / "WikiMIA_length64.jsonl"
    with pytest.raises(InputError, match=r"row 1 has 64 words.*Is it wikimia-64\?"):
        get_benchmark("wikimia-32").read(str(file), RowSettings())


def test_arxivtection_is_read_by_paper(data_folder):
    file = data_folder / "detect" / "decop" / "arXivTection.csv.gz"
    rows = get_benchmark("arxivtection").read(str(file), RowSettings())
    assert (len(rows.texts), len(set(rows.groups or ()))) == (1549, 50)
    assert sum(rows.labels or ()) == 762
    assert rows.paraphrases is not None
    assert {len(others) for others in rows.paraphrases} == {3}
    assert "A Tale of Pronouns" in (rows.titles or [""])[0]
    assert rows.texts[0].startswith("Recent instruction fine-tuned models can solve")


def test_mimir_has_a_member_and_a_nonmember_per_row(tmp_path):
    pairs = [{"member": f"in {at}", "nonmember": f"out {at}"} for at in range(3)]
    rows = get_benchmark("mimir").read(write(tmp_path / "m.jsonl", pairs), RowSettings())
    assert rows.texts == ["in 0", "in 1", "in 2", "out 0", "out 1", "out 2"]
    assert rows.labels == [True] * 3 + [False] * 3
    with pytest.raises(InputError, match="has no text 'nonmember'"):
        get_benchmark("mimir").read(write(tmp_path / "n.jsonl", [{"member": "a"}]), RowSettings())


def test_rows_without_labels_are_rejected_as_benchmark(tmp_path):
    file = write(tmp_path / "r.jsonl", [{"text": "a b"}])
    for name in ("rows", "wikimia-32", "arxivtection"):
        with pytest.raises(InputError, match="has labels, and these rows have none"):
            get_benchmark(name).read(file, RowSettings())


def test_unknown_benchmark_error_lists_the_names():
    with pytest.raises(InputError, match="Did you mean 'wikimia-64'"):
        get_benchmark("wikimia64")
    assert benchmark_names()[-1] == "rows"
