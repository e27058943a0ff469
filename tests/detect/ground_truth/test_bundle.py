"""Bundles: what goes in comes out, what is protected stays behind, and damage is named."""

import dataclasses
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from detect.evidence import Evidence, ExampleEvidence
from detect.ground_truth import archive
from detect.ground_truth.archive import HEADER, is_archive, read_archive
from detect.ground_truth.bundle import read_bundle, write_bundle
from detect.ground_truth.ground_truth import GroundTruth
from detect.ground_truth.withheld import TextWithheld, guarded
from detect.guarded_call import read_only
from detect.token_statistics import TokenStatistics
from inject.digest import digest
from inject.errors import InputError
from tests.detect.ground_truths import make_truth


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return make_truth(8, arms=(1, 4), datasets=("news", "secret"), protected="secret", empty=True)


@pytest.fixture(scope="module")
def bundle(truth, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "made-up.bundle"
    write_bundle(path, truth)
    return path


def same_statistics(one: TokenStatistics, other: TokenStatistics) -> bool:
    for field in dataclasses.fields(TokenStatistics):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, np.ndarray):
            if first.dtype != second.dtype or not np.array_equal(first, second):
                return False
        elif first != second:
            return False
    return True


def test_what_goes_in_comes_out(truth, bundle):
    found = read_bundle(bundle)
    assert (found.name, found.analysis, found.experiment) == (
        truth.name,
        truth.analysis,
        truth.experiment,
    )
    assert found.provenance == truth.provenance
    assert len(found.content) == 64
    for one, other in zip(truth.models, found.models, strict=True):
        for name in ("axes", "seed", "model", "defaults", "copies", "variants"):
            assert getattr(one, name) == getattr(other, name), name
        assert one.scores.to_pydict().keys() == other.scores.to_pydict().keys()
        for column in one.scores.column_names:
            first, second = one.scores[column].to_pylist(), other.scores[column].to_pylist()
            assert repr(first) == repr(second)
        assert (one.exposures is None) == (other.exposures is None)
        if one.exposures is not None:
            assert one.exposures.equals(other.exposures)
        assert np.array_equal(one.characters, other.characters)
        plain = [row for row, example in enumerate(one.rows) if not example.protected]
        for row in plain:
            assert one.rows[row] == other.rows[row]
            assert one.evidence.texts[row] == other.evidence.texts[row]
        assert one.evidence.members == other.evidence.members
        assert one.evidence.groups == other.evidence.groups
        assert np.array_equal(one.evidence.frequency.counts, other.evidence.frequency.counts)
        pairs = [
            *zip(one.evidence.statistics.values(), other.evidence.statistics.values(), strict=True),
            (one.evidence.reference, other.evidence.reference),
            *(
                (mine.statistics, theirs.statistics)
                for mine, theirs in zip(
                    one.evidence.shadows or (), other.evidence.shadows or (), strict=True
                )
            ),
        ]
        for first, second in pairs:
            assert all(same_statistics(first[row], second[row]) for row in plain)
        for mine, theirs in zip(
            one.evidence.shadows or (), other.evidence.shadows or (), strict=True
        ):
            assert list(mine.inside) == list(theirs.inside)


def test_what_models_share_is_stored_once(truth, bundle):
    parts = read_archive(bundle).parts
    assert sum(name.startswith("rows/") for name in parts) == 1
    shadows = sum(len(one.evidence.shadows or ()) for one in truth.models)
    assert sum(name.startswith("statistics/") for name in parts) == 3 * len(truth.models) + shadows


def test_no_text_of_a_protected_row_is_inside_nor_what_shows_it(truth, bundle):
    found = read_bundle(bundle)
    secret = [row for row, example in enumerate(truth.models[0].rows) if example.protected]
    assert len(secret) == 16
    parts = read_archive(bundle)
    for name in parts.parts:
        table = parts.table(name)
        whole = json.dumps(table.to_pydict(), default=str)
        assert "secret <b>" not in whole, name
    for one in found.models:
        assert one.withheld[secret].all()
        assert one.withheld.sum() == len(secret)
        for row in secret:
            assert one.evidence.texts[row] == ""
            assert one.rows[row].fields == {}
            statistics = one.evidence.statistics["text"][row]
            assert (statistics.ids == -1).all()
            original = truth.models[0].evidence.statistics["text"][row]
            if one is found.models[0]:
                assert np.array_equal(statistics.log_probability, original.log_probability)
                assert np.array_equal(statistics.rank, original.rank)


def test_reading_what_is_withheld_is_refused_and_all_else_is_there(bundle):
    model = read_bundle(bundle).models[0]
    evidence = guarded(model.evidence, model.withheld, model.held_out_withheld)
    hidden = int(np.flatnonzero(model.withheld)[0])
    shown = int(np.flatnonzero(~model.withheld)[1])
    assert evidence.texts[shown]
    with pytest.raises(TextWithheld):
        evidence.texts[hidden]
    with pytest.raises(TextWithheld):
        list(evidence.texts)
    statistics = evidence.statistics["text"][hidden]
    assert len(statistics) == len(statistics.log_probability) > 0
    for read in (lambda: statistics.ids, lambda: evidence.shadows[0].statistics[hidden].ids):
        with pytest.raises(TextWithheld):
            read()
    examples = list(evidence.examples())
    assert isinstance(examples[hidden], ExampleEvidence)
    assert len(examples[hidden].statistics["text"]) == len(statistics)
    with pytest.raises(TextWithheld):
        examples[hidden].text  # noqa: B018
    assert examples[shown].text == evidence.texts[shown]


def test_a_bundle_that_withholds_texts_is_not_packed_again(bundle, tmp_path):
    with pytest.raises(InputError, match="withheld here already"):
        write_bundle(tmp_path / "again.bundle", read_bundle(bundle))


def test_a_bundle_is_whole_or_absent(truth, tmp_path, monkeypatch):
    path = tmp_path / "made-up.bundle"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr(archive.zipfile.ZipFile, "writestr", fail)
    with pytest.raises(OSError, match="no space"):
        write_bundle(path, truth)
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["made-up.bundle"]


def test_the_content_is_the_same_whenever_it_is_packed(truth, bundle, tmp_path):
    facts = write_bundle(tmp_path / "again.bundle", truth)
    assert facts.content == read_archive(bundle).content
    assert (facts.rows, facts.withheld, facts.models) == (32, 16, 4)


# -- damage ----------------------------------------------------------------------------------


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(path: Path, parts: dict[str, bytes], *, how: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", how) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return path


def header_with(parts: dict[str, bytes], /, **changes) -> bytes:
    """The header with other values, sealed anew: an author of a bundle who means harm can do so."""
    values = {**json.loads(parts[HEADER]), **changes}
    values.pop("seal")
    values["seal"] = digest(values)
    return json.dumps(values).encode()


def test_a_changed_byte_is_found_wherever_it_is(bundle, tmp_path):
    whole = bundle.read_bytes()
    for at in range(40, len(whole), len(whole) // 23):
        (tmp_path / "one").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(InputError) as caught:
            read_bundle(tmp_path / "one")
        assert str(tmp_path / "one") in str(caught.value)


def test_a_part_with_other_bytes_is_named(bundle, tmp_path):
    parts = entries(bundle)
    parts["rows/0001.parquet"] += b" "
    with pytest.raises(InputError, match=r"checksum of rows/0001\.parquet is wrong"):
        read_bundle(packed(tmp_path / "one", parts))


def test_a_missing_part_is_named(bundle, tmp_path):
    parts = entries(bundle)
    del parts["statistics/0002.parquet"]
    with pytest.raises(InputError, match=r"lacks 1 of its \d+ parts: statistics/0002\.parquet"):
        read_bundle(packed(tmp_path / "one", parts))


def test_a_part_that_nobody_named_is_refused(bundle, tmp_path):
    parts = {**entries(bundle), "more/0001.parquet": b"x"}
    with pytest.raises(InputError, match=r"does not list: more/0001\.parquet"):
        read_bundle(packed(tmp_path / "one", parts))


@pytest.mark.parametrize("name", ["../x.parquet", "/etc/x.parquet", "a/../../x.parquet", "a\\b"])
def test_a_path_that_leaves_the_bundle_is_refused(bundle, tmp_path, name):
    parts = {**entries(bundle), name: b"x"}
    with pytest.raises(InputError, match="leaves the bundle") as caught:
        read_bundle(packed(tmp_path / "one", parts))
    assert repr(name) in str(caught.value)
    # In the header, too.
    parts = entries(bundle)
    known = json.loads(parts[HEADER])["parts"]
    parts[HEADER] = header_with(parts, parts={**known, name: {"sha256": "0", "size": 1}})
    with pytest.raises(InputError, match="leaves the bundle"):
        read_bundle(packed(tmp_path / "two", parts))


def test_another_version_is_refused_with_who_made_it(bundle, tmp_path):
    parts = entries(bundle)
    parts[HEADER] = header_with(parts, version=1)
    with pytest.raises(InputError, match=r"a bundle of version 1, made by spikein 0\.0\.0"):
        read_bundle(packed(tmp_path / "one", parts))


def test_a_header_that_was_changed_is_refused(bundle, tmp_path):
    parts = entries(bundle)
    parts[HEADER] = parts[HEADER].replace(b'"made up"', b'"made-up"')
    with pytest.raises(InputError, match=r"checksum of bundle\.json is wrong"):
        read_bundle(packed(tmp_path / "one", parts))
    parts[HEADER] = header_with(parts, content="0" * 64)
    with pytest.raises(InputError, match="checksum of the whole is wrong"):
        read_bundle(packed(tmp_path / "two", parts))


def test_a_header_of_other_keys_or_parts_is_refused(bundle, tmp_path):
    parts = entries(bundle)
    models = json.loads(parts[HEADER])["models"]
    parts[HEADER] = header_with(parts, models=[{**models[0], "rows": "rows/0009.parquet"}])
    with pytest.raises(InputError, match="names a part that it does not hold"):
        read_bundle(packed(tmp_path / "one", parts))
    parts[HEADER] = header_with(parts, models=[{**models[0], "seed": "x"}])
    with pytest.raises(InputError, match=r"wrong at models\.0\.seed"):
        read_bundle(packed(tmp_path / "two", parts))
    parts[HEADER] = header_with(parts, models=[{**models[0], "rows": models[0]["scores"]}])
    with pytest.raises(InputError, match="not what the header says"):
        read_bundle(packed(tmp_path / "three", parts))


def test_what_is_compressed_doubled_or_no_bundle_is_refused(bundle, tmp_path):
    parts = entries(bundle)
    with pytest.raises(InputError, match="is compressed"):
        read_bundle(packed(tmp_path / "one", parts, how=zipfile.ZIP_DEFLATED))
    doubled = packed(tmp_path / "two", parts)
    with zipfile.ZipFile(doubled, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("rows/0001.parquet", b"x")
    with pytest.raises(InputError, match=r"a part twice: rows/0001\.parquet"):
        read_bundle(doubled)
    (tmp_path / "text").write_text("text")
    with pytest.raises(InputError, match="is no bundle"):
        read_bundle(tmp_path / "text")
    with pytest.raises(InputError, match=r"holds no bundle\.json"):
        read_bundle(packed(tmp_path / "four", {"rows/0001.parquet": b"x"}))
    assert is_archive(bundle)
    assert not is_archive(tmp_path / "text")
    with pytest.raises(InputError):
        read_bundle(tmp_path / "absent")


def test_statistics_of_another_version_are_refused_by_their_columns(bundle, tmp_path):
    archived = read_archive(bundle)
    name = "statistics/0001.parquet"
    table = archived.table(name).drop_columns(["entropy"])
    tables = {one: archived.table(one) for one in archived.parts} | {name: table}
    header = {
        key: value
        for key, value in archived.header.items()
        if key not in ("format", "version", "content", "parts", "seal")
    }
    archive.write_archive(tmp_path / "one", header, tables)
    with pytest.raises(InputError, match=r"statistics/0001\.parquet.*lacks entropy"):
        read_bundle(tmp_path / "one")
    renamed = archived.table(name).rename_columns(
        ["curvature" if one == "rank" else one for one in archived.table(name).column_names]
    )
    archive.write_archive(tmp_path / "two", header, {**tables, name: renamed})
    with pytest.raises(InputError, match=r"lacks rank; has the unknown curvature"):
        read_bundle(tmp_path / "two")


def test_evidence_can_be_taken_by_row(truth):
    evidence = truth.models[0].evidence
    found = evidence.take([3, 1])
    assert list(found.texts) == [evidence.texts[3], evidence.texts[1]]
    assert found.statistics["text"][0] is evidence.statistics["text"][3]
    assert found.reference[1] is evidence.reference[1]
    assert list(found.members) == [evidence.members[3], evidence.members[1]]
    assert found.shadows[1].inside == (evidence.shadows[1].inside[3], evidence.shadows[1].inside[1])
    assert found.frequency is evidence.frequency


def test_read_only_evidence_stays_the_same_object(truth):
    rows = truth.models[0].evidence.statistics["text"]
    assert read_only(rows) is rows
    writable = Evidence(texts=["a"], statistics={"text": [rows[1]]})
    assert isinstance(read_only(writable).texts, tuple)


def test_parts_are_tables_that_anything_reads(bundle, tmp_path):
    with zipfile.ZipFile(bundle) as file:
        file.extract("rows/0001.parquet", tmp_path)
    assert pq.read_table(tmp_path / "rows" / "0001.parquet").num_rows == 32


def part(table: pa.Table) -> archive.Archive:
    """A bundle of one part."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return archive.Archive(
        path=Path("x.bundle"), header={}, parts={"rows/0001.parquet": sink.getvalue()}, content=""
    )


def test_a_table_of_more_rows_than_any_bundle_has_is_refused_before_it_is_read(monkeypatch):
    """Ten million equal numbers take a few kB in the file."""
    made = part(pa.table({"a": pa.array(np.zeros(10_000_001, np.int8))}))
    assert len(made.parts["rows/0001.parquet"]) < 100_000
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    with pytest.raises(InputError, match=r"x\.bundle: rows/0001\.parquet: has 10,000,001 rows"):
        made.table("rows/0001.parquet")


def test_a_table_of_few_rows_and_too_many_values_is_refused(monkeypatch):
    made = part(pa.table({"a": [list(range(90))], "b": [list(range(11))]}))
    assert made.table("rows/0001.parquet").num_rows == 1
    monkeypatch.setattr(archive, "_MOST_VALUES", 100)
    with pytest.raises(InputError, match="1 rows with 101 values"):
        made.table("rows/0001.parquet")


def test_names_are_compared_no_more_often_than_there_are_entries():
    compared = 0

    class Counted(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    entries = [zipfile.ZipInfo("x") for _ in range(2_000)]
    for number, entry in enumerate(entries):
        entry.filename = Counted(f"rows/{number // 2:04d}.parquet")
    with pytest.raises(InputError, match=r"a part twice: rows/0000\.parquet, rows/0001\.parquet"):
        archive._check_entries(entries, 10**9, "x.bundle")
    assert compared < 20 * len(entries)


def test_entries_that_lie_over_each_other_are_refused():
    """Each would be read anew: a small file of many entries takes quadratic time."""
    entries = [zipfile.ZipInfo(f"rows/{number:04d}.parquet") for number in range(3)]
    for entry in entries:
        entry.file_size = entry.compress_size = 400
    with pytest.raises(InputError, match="lie over each other"):
        archive._check_entries(entries, 1_199, "x.bundle")
