"""OLMo's token files: `.npy` files with only token ids.

Despite their name they have no header: OLMo writes and reads them as memory maps of u16 or u32, so
their width must be given. Files with a real NPY header are also read, and give their own width. A
document ends with the end token, or with its file. Source: OLMo-core's guide to data loading, and
the toolkit `dolma`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from inject.corpus.imported_layout import I64, Layout, TokenFile, olmo_files, size_of
from inject.errors import InputError, reading
from inject.reading.rows import content_digest
from inject.settings import Settings

_MAGIC = b"\x93NUMPY"


class OlmoImport(Settings):
    """Token files of OLMo, used in place."""

    kind: Literal["olmo"]
    """`olmo`."""
    path: Annotated[str, Field(min_length=1)]
    """A `.npy` file, a folder (all `.npy` files below it) or a glob; read in sorted order."""
    dtype: Literal["uint8", "uint16", "uint32", "uint64"] | None = None
    """Width of the ids in files without a header, such as OLMo's; most are `uint16`, or
    `uint32` for vocabularies above 65,536."""

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return f"olmo {self.path}"

    def identity(self) -> dict[str, Any]:
        """Return the inputs that determine the tokens: the files' content, not their names."""
        return {
            "kind": self.kind,
            "dtype": self.dtype,
            "files": [content_digest(path) for path in olmo_files(self.path)],
        }

    def layout(self) -> Layout:
        """Return the token files; only headers are read.

        Raises:
            InputError: files are missing, empty, truncated, or of unknown width.
        """
        return Layout(
            files=tuple(_token_file(path, self.dtype) for path in olmo_files(self.path)),
            documents=None,
        )


def _token_file(path: Path, dtype: str | None) -> TokenFile:
    size = size_of(path)
    if size == 0:
        raise InputError("the file is empty", where=str(path))
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            return _with_header(path)
    if dtype is None:
        raise InputError(
            "the file has no header, so the width of its ids must be given",
            where=str(path),
            allowed="dtype: uint16, or dtype: uint32",
            hint="OLMo uses uint16 for vocabularies of up to 65,536 ids, else uint32.",
        )
    element = np.dtype(dtype).newbyteorder("<")
    if size % element.itemsize:
        raise InputError(
            f"has {size:,} bytes, which is no multiple of the {element.itemsize} of a {dtype}: it "
            "is truncated, or of another dtype",
            where=str(path),
        )
    return TokenFile(path=path, tokens=size // element.itemsize, dtype=element)


def _with_header(path: Path) -> TokenFile:
    with reading(path, "cannot be read as an NPY file"):
        array: np.memmap = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "ui":
        raise InputError(
            f"contains an array of shape {array.shape} and type {array.dtype}",
            where=str(path),
            allowed="one dimension of integers, and not empty",
        )
    return TokenFile(path=path, skip_bytes=array.offset, tokens=len(array), dtype=array.dtype)


def write_tokens(path: Path, blocks: Iterable[I64], dtype: np.dtype) -> None:
    """Write ids one after the other without any header; also the `.bin` of Megatron-LM."""
    with path.open("wb") as file:
        for ids in blocks:
            file.write(ids.astype(dtype).data)
