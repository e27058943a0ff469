"""From rows of the hub to the files of the layout: conversion of a row, and writing of rows.

Everything is deterministic: keys sorted, no times, one way to write a value; the same rows give the
same bytes wherever the compression library is the same.

A protected benchmark is in a zip with a password, which Python's `zipfile` reads and cannot write.
The cipher is the old one of PKZIP (its APPNOTE, section 6.1): it protects a text from search
engines and from collectors of training corpora, as the authors request, but not from readers who
know the password. Times are 1980, and the twelve random bytes before each file are drawn from its
checksum. Cost: one second per megabyte.
"""

import csv
import gzip
import hashlib
import io
import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SHORTEST_ABSTRACT = 200


_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_VERSION, _ENCRYPTED, _DEFLATED = 20, 1, 8
_DATE = 0x21
"""1 January 1980."""
_HEADER = 12


def _truthfulqa(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row under the names of the authors' CSV, its answers joined by `; `."""
    return {
        "Type": row.get("type", ""),
        "Category": row.get("category", ""),
        "Question": row["question"],
        "Best Answer": row["best_answer"],
        "Correct Answers": "; ".join(row["correct_answers"]),
        "Incorrect Answers": "; ".join(row["incorrect_answers"]),
        "Source": row.get("source", ""),
    }


def _wikipedia(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return text and meta, as RedPajama has them."""
    meta = {name: row[name] for name in ("id", "title", "url")}
    return {"text": row["text"], "meta": {**meta, "source": "wikimedia/wikipedia 20231101.en"}}


def _arxiv(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return text and meta, as RedPajama has them; None for an abstract of a few words."""
    text = str(row["abstract"]).strip()
    if len(text) < _SHORTEST_ABSTRACT:
        return None
    meta = {"arxiv_id": row["id"], "title": row["title"], "categories": row["categories"]}
    return {"text": text, "meta": {**meta, "source": "arxiv_abstract"}}


CONVERSIONS: Mapping[str | None, Callable[[Mapping[str, Any]], Mapping[str, Any] | None]] = {
    None: lambda row: row,
    "truthfulqa": _truthfulqa,
    # The first task, which the preset selects if a file has several.
    "tofu_forget": lambda row: {**row, "task_id": "1"},
    "wikipedia": _wikipedia,
    "arxiv": _arxiv,
}
"""From a row of the hub to the row that is written; None leaves it out."""


def encoded(rows: Sequence[Mapping[str, Any]], name: str) -> bytes:
    """Return rows in the format of a file's name.

    Args:
        rows: at least one.
        name: ends in `.csv`, `.jsonl`, or either of `.jsonl.gz` and `.json.gz`.
    """
    if name.endswith(".csv"):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()
    lines = [json.dumps(row, ensure_ascii=False, sort_keys=True).encode() + b"\n" for row in rows]
    if not name.endswith(".gz"):
        return b"".join(lines)
    file = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.writelines(lines)
    return file.getvalue()


def encrypted_zip(files: Mapping[str, bytes], *, password: str) -> bytes:
    """Return a zip of these files.

    Args:
        files: name -> content.
        password: opens it.
    """
    parts: list[bytes] = []
    directory: list[bytes] = []
    offset = 0
    for name, content in files.items():
        checksum = zlib.crc32(content)
        squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = squeeze.compress(content) + squeeze.flush()
        seed = hashlib.sha256(f"{name} {checksum}".encode()).digest()[: _HEADER - 1]
        # By the last byte a reader checks the password.
        payload = _encrypt(seed + bytes([checksum >> 24]) + packed, password.encode())
        coded = name.encode()
        facts = struct.pack(
            "<HHHHHIIIHH", _VERSION, _ENCRYPTED, _DEFLATED, 0, _DATE, checksum, len(payload),
            len(content), len(coded), 0,
        )  # fmt: skip
        parts += [_LOCAL, facts, coded, payload]
        place = struct.pack("<HHHII", 0, 0, 0, 0, offset)
        directory += [_CENTRAL, struct.pack("<H", _VERSION), facts, place, coded]
        offset += len(_LOCAL) + len(facts) + len(coded) + len(payload)
    size = sum(map(len, directory))
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), size, offset, 0)
    return b"".join([*parts, *directory, _END, end])


def _encrypt(plain: bytes, password: bytes) -> bytes:
    # A step of the CRC-32, without the two complements around it.
    table = [zlib.crc32(bytes([value]), 0xFFFFFFFF) ^ 0xFFFFFFFF for value in range(256)]
    first, second, third = 0x12345678, 0x23456789, 0x34567890
    secret = bytearray(len(plain))
    for at, byte in enumerate((*password, *plain)):
        if at >= len(password):
            mask = third | 2
            secret[at - len(password)] = byte ^ (((mask * (mask ^ 1)) >> 8) & 0xFF)
        first = (first >> 8) ^ table[(first ^ byte) & 0xFF]
        second = ((second + (first & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        third = (third >> 8) ^ table[(third ^ (second >> 24)) & 0xFF]
    return bytes(secret)
