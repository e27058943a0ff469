"""Data sets of the Hugging Face library: a folder that `datasets.load_from_disk` opens.

Arrow streams `data-00000-of-0000N.arrow` with one column `input_ids` (lists of int32), beside
`dataset_info.json` and `state.json`. Written without the library, so that the same stream always
gives the same bytes (the library's fingerprint is random). A batch of rows is in memory at a time.
"""

import json

import numpy as np

from inject.digest import digest
from inject.errors import InputError
from inject.formats.exported_rows import BLOCK, ExportedView, Rows
from inject.formats.folder import ExportFolder

SHARD_TOKENS = 125_000_000
"""Ids in one file: 500 MB."""
_MOST = 2**31 - 1
# Newer versions of the library write `List` here, which older ones cannot read.
_FEATURES = {
    "input_ids": {"feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"},
}


def write_dataset(
    folder: ExportFolder,
    view: ExportedView,
    rows: Rows,
    *,
    shard_tokens: int = SHARD_TOKENS,
    batch_tokens: int = BLOCK,
) -> None:
    """Write the rows of a stream.

    Args:
        folder: the export.
        view: the stream.
        rows: its documents or windows.
        shard_tokens: a file is closed when it holds at least this many ids.
        batch_tokens: about as many ids make a batch; at least one row does.

    Raises:
        InputError: a document has too many tokens for one row.
    """
    import pyarrow as pa

    metadata = {"huggingface": json.dumps({"info": {"features": _FEATURES}})}
    schema = pa.schema([("input_ids", pa.list_(pa.int32()))], metadata=metadata)
    batches = rows.batches(view, batch_tokens)
    names: list[str] = []
    batch = next(batches, None)
    while batch is not None:
        names.append(f"data-{len(names):05d}.arrow")
        tokens = 0
        with folder.open(names[-1]) as file, pa.ipc.new_stream(file, schema) as writer:
            while batch is not None and tokens < shard_tokens:
                edges, ids = batch
                if len(ids) > _MOST:
                    raise InputError(
                        f"a document of {len(ids):,} tokens is too long for one row",
                        allowed=f"at most {_MOST:,} tokens",
                        hint="Export windows instead of documents.",
                    )
                offsets = pa.array((edges - edges[0]).astype(np.int32))
                lists = pa.ListArray.from_arrays(offsets, pa.array(ids.astype(np.int32)))
                writer.write_batch(pa.record_batch([lists], schema=schema))
                tokens += len(ids)
                batch = next(batches, None)
    for number, name in enumerate(names):
        folder.rename(name, _name(number, len(names)))
    files = [{"filename": _name(number, len(names))} for number in range(len(names))]
    digests = [folder.files[file["filename"]].sha256 for file in files]
    state: dict[str, object] = {
        "_data_files": files,
        "_fingerprint": digest(digests)[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    info = {"citation": "", "description": "", "features": _FEATURES, "homepage": "", "license": ""}
    for name, values in (("dataset_info.json", info), ("state.json", state)):
        with folder.open(name) as file:
            file.write(json.dumps(values, indent=2, sort_keys=True).encode())


def _name(number: int, total: int) -> str:
    return f"data-{number:05d}-of-{total:05d}.arrow"
