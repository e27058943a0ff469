"""Damaged and unusual files are rejected with their name and problem."""

import struct

import numpy as np
import pytest

from inject.errors import InputError
from inject.formats.megatron import MegatronImport
from inject.formats.olmo import OlmoImport
from tests.inject.formats.readers import write_megatron

# A header of 34 bytes, then 3 lengths, 3 offsets and 3 document indices.
LENGTHS, OFFSETS, DOCUMENTS = 34, 34 + 12, 34 + 36


def at(position: int, form: str, *values: int):
    def change(data: bytearray) -> None:
        struct.pack_into(form, data, position, *values)

    return change


def modes(data: bytearray) -> None:
    data += bytes(3)


def header_only(data: bytearray) -> None:
    del data[20:]


BAD_INDEX = {
    "wrong magic": (at(0, "<2s", b"XX"), "not an index of Megatron-LM"),
    "truncated header": (header_only, "truncated within its header"),
    "multimodal": (modes, "multimodal"),
    "more sequences than there are": (at(18, "<Q", 2**60), "truncated or damaged"),
    "last length": (at(LENGTHS + 8, "<i", 4), "do not belong together"),
    "negative length": (at(LENGTHS + 4, "<i", -1), "the index puts sequence 2"),
    "pointers not cumulative": (at(OFFSETS + 8, "<q", 6), "the index puts sequence 1 at byte 6"),
    "documents descend": (at(DOCUMENTS + 8, "<q", -1), "document indices are damaged"),
}


@pytest.mark.parametrize("name", BAD_INDEX)
def test_bad_index_is_rejected(tmp_path, name):
    change, message = BAD_INDEX[name]
    write_megatron(tmp_path / "data", [[[1, 2], [3, 4, 5]], [[6]]])
    data = bytearray((tmp_path / "data.idx").read_bytes())
    change(data)
    (tmp_path / "data.idx").write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        MegatronImport(kind="megatron", path=str(tmp_path / "data")).layout()
    assert "data." in str(caught.value.where)


@pytest.mark.parametrize("size", [0, 13])
def test_bin_of_another_size_is_rejected(tmp_path, size):
    write_megatron(tmp_path / "data", [[[1, 2], [3, 4, 5]], [[6]]])
    data = (tmp_path / "data.bin").read_bytes()
    (tmp_path / "data.bin").write_bytes((data + data)[:size])
    with pytest.raises(InputError, match=f"data.bin: has {size} bytes"):
        MegatronImport(kind="megatron", path=str(tmp_path / "data")).layout()


def test_missing_files_are_named(tmp_path):
    write_megatron(tmp_path / "data", [[[1]]])
    (tmp_path / "data.bin").unlink()
    with pytest.raises(InputError, match=r"data\.bin: cannot be read"):
        MegatronImport(kind="megatron", path=str(tmp_path / "data")).layout()
    for path in (tmp_path / "dat", tmp_path / "none" / "data", tmp_path / "*.x"):
        with pytest.raises(InputError, match=r"no \.idx file here"):
            MegatronImport(kind="megatron", path=str(path)).layout()
    with pytest.raises(InputError, match=r"no \.npy file here"):
        OlmoImport(kind="olmo", path=str(tmp_path), dtype="uint16").layout()


def npy(array: np.ndarray, path) -> bytes:
    np.save(path, array)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda path: b"abcde", "no multiple of the 2 of a uint16"),
        (lambda path: npy(np.zeros((2, 2), "<u2"), path), r"array of shape \(2, 2\)"),
        (lambda path: npy(np.zeros(2, "<f4"), path), "type float32"),
        (lambda path: npy(np.zeros(9, "<u2"), path)[:-1], "cannot be read as an NPY"),
        (lambda path: b"\x93NUMPY\x01\x00\x05\x00abc", "cannot be read as an NPY"),
    ],
)
def test_bad_olmo_file_is_rejected(tmp_path, content, message):
    path = tmp_path / "a.npy"
    path.write_bytes(content(path))
    with pytest.raises(InputError, match=message) as caught:
        OlmoImport(kind="olmo", path=str(path), dtype="uint16").layout()
    assert caught.value.where == str(path)


def test_the_width_of_a_file_without_header_must_be_given(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"abcd")
    with pytest.raises(InputError, match="width of its ids must be given"):
        OlmoImport(kind="olmo", path=str(tmp_path / "a.npy")).layout()
