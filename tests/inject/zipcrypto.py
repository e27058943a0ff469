"""A writer of password-protected zips (traditional PKWARE encryption), for tests alone.

Python's `zipfile` reads these but does not write them. After APPNOTE.TXT, section 6.1.
"""

import struct
import zlib
from pathlib import Path


def _crc32(key: int, byte: int) -> int:
    return (key >> 8) ^ _TABLE[(key ^ byte) & 0xFF]


def _table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0xEDB88320 if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _table()


def _encrypt(data: bytes, password: bytes) -> bytes:
    keys = [0x12345678, 0x23456789, 0x34567890]

    def update(byte: int) -> None:
        keys[0] = _crc32(keys[0], byte)
        keys[1] = ((keys[1] + (keys[0] & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = _crc32(keys[2], keys[1] >> 24)

    for byte in password:
        update(byte)
    out = bytearray()
    for byte in data:
        mixed = (keys[2] | 2) & 0xFFFF
        out.append(byte ^ (((mixed * (mixed ^ 1)) >> 8) & 0xFF))
        update(byte)
    return bytes(out)


def write_encrypted_zip(path: Path, name: str, content: bytes, password: str) -> None:
    """Write a zip with one deflated, encrypted member."""
    crc = zlib.crc32(content)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = deflate.compress(content) + deflate.flush()
    # Eleven random bytes, fixed here, and the check byte that a reader compares first.
    header = bytes(range(11)) + bytes([crc >> 24])
    body = _encrypt(header + packed, password.encode())
    encoded = name.encode()
    common = struct.pack(
        "<HHHHHIIIHH", 20, 1, 8, 0, 0x21, crc, len(body), len(content), len(encoded), 0
    )
    local = b"PK\x03\x04" + common + encoded
    central = b"PK\x01\x02\x14\x00" + common + struct.pack("<HHHII", 0, 0, 0, 0, 0) + encoded
    offset = len(local) + len(body)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), offset, 0)
    path.write_bytes(local + body + central + end)
