"""Readers and writers that follow only the formats' public descriptions, without our code.

Slow, whole files in memory, checked field by field.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CODES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}


@dataclass
class Megatron:
    """The contents of an `.idx` file, and the sequences of its `.bin` file."""

    code: int
    sequences: list[np.ndarray]
    documents: list[list[np.ndarray]]

    @property
    def stream(self) -> list[int]:
        return [int(token) for sequence in self.sequences for token in sequence]

    @property
    def document_starts(self) -> list[int]:
        starts, at = [], 0
        for document in self.documents:
            starts.append(at)
            at += sum(len(sequence) for sequence in document)
        return starts


def read_megatron(prefix: Path) -> Megatron:
    data = Path(f"{prefix}.idx").read_bytes()
    tokens = Path(f"{prefix}.bin").read_bytes()
    assert data[:9] == b"MMIDIDX\x00\x00"
    (version,) = struct.unpack_from("<Q", data, 9)
    (code,) = struct.unpack_from("<B", data, 17)
    count, entries = struct.unpack_from("<QQ", data, 18)
    assert version == 1
    lengths = struct.unpack_from(f"<{count}i", data, 34)
    pointers = struct.unpack_from(f"<{count}q", data, 34 + 4 * count)
    indices = struct.unpack_from(f"<{entries}q", data, 34 + 12 * count)
    assert len(data) == 34 + 12 * count + 8 * entries
    width = np.dtype(CODES[code]).itemsize
    sequences = []
    for length, pointer in zip(lengths, pointers, strict=True):
        piece = tokens[pointer : pointer + length * width]
        assert len(piece) == length * width
        sequences.append(np.frombuffer(piece, CODES[code]))
    assert sum(lengths) * width == len(tokens)
    assert indices[0] == 0
    assert indices[-1] == count
    documents = [
        sequences[indices[number] : indices[number + 1]] for number in range(len(indices) - 1)
    ]
    return Megatron(code, sequences, documents)


def write_megatron(prefix: Path, documents: list[list[list[int]]], *, code: int = 8) -> None:
    """Write documents, each a list of sequences of ids."""
    sequences = [sequence for document in documents for sequence in document]
    width = np.dtype(CODES[code]).itemsize
    with Path(f"{prefix}.bin").open("wb") as file:
        for sequence in sequences:
            file.write(np.array(sequence, dtype=CODES[code]).tobytes())
    lengths = [len(sequence) for sequence in sequences]
    pointers, indices = [0], [0]
    for length in lengths:
        pointers.append(pointers[-1] + length * width)
    for document in documents:
        indices.append(indices[-1] + len(document))
    with Path(f"{prefix}.idx").open("wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<Q", 1) + struct.pack("<B", code))
        file.write(struct.pack("<QQ", len(sequences), len(indices)))
        file.write(struct.pack(f"<{len(lengths)}i", *lengths))
        file.write(struct.pack(f"<{len(lengths)}q", *pointers[:-1]))
        file.write(struct.pack(f"<{len(indices)}q", *indices))


def read_dataset(folder: Path) -> list[list[int]]:
    """Read the rows with the Hugging Face library itself."""
    import datasets

    loaded = datasets.load_from_disk(str(folder))
    assert loaded.column_names == ["input_ids"]
    return loaded["input_ids"][:]


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def split_at(stream: list[int], starts: list[int]) -> list[list[int]]:
    """Cut a stream into documents."""
    return [
        stream[start:stop] for start, stop in zip(starts, [*starts[1:], len(stream)], strict=True)
    ]
