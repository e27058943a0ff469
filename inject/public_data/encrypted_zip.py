"""A zip with a password, as Python's `zipfile` reads it and cannot write it.

The cipher is the old one of PKZIP (its APPNOTE, section 6.1): it keeps a text from search engines
and from whoever gathers training corpora, which is what the authors of a protected benchmark ask,
and not from anybody who knows the password. The same files give the same bytes: times are 1980, and
the twelve random bytes before each file are drawn from its checksum. Cost: a second a megabyte.
"""

import hashlib
import struct
import zlib
from collections.abc import Mapping

_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_VERSION, _ENCRYPTED, _DEFLATED = 20, 1, 8
_DATE = 0x21
"""1 January 1980."""
_HEADER = 12


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
        # The last byte tells a reader whether the password is right.
        payload = _encrypted(seed + bytes([checksum >> 24]) + packed, password.encode())
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


def _encrypted(plain: bytes, password: bytes) -> bytes:
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
