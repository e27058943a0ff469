"""The exposures of an unlearning run: when each forget and retain text was fed, read back.

`exposures.parquet` has the columns of a training run's (`inject.stream.exposures`), and `role`:
`forget`, `retain`, or `alternative` (the forget text's prompt with another answer). A row of the
batch is compared, id by id, with the tokens of the text itself; a long text comes in fragments.
Texts that were never fed are marked. `window` is the forget piece's number, `start` and `stop`
count from the window's first row.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from inject.stream.exposures import NEVER, SCHEMA, TrainedWindow, write_exposures
from train.unlearn.texts import Piece, UnlearningTexts

UNLEARNING_SCHEMA = SCHEMA.append(pa.field("role", pa.string()))
VARIANT = "whole"


class UnlearningRecorder:
    """Collects the exposures of an unlearning run's texts."""

    def __init__(self, texts: UnlearningTexts) -> None:
        self._texts = texts
        self._rows: list[dict[str, Any]] = []

    def record(self, fed: TrainedWindow, ids: npt.NDArray[np.int64]) -> None:
        """Record the rows of one window that were fed to the model.

        Args:
            fed: the window, whose index is the forget piece's number; the tokens before it include
                all rows and padding.
            ids: as fed, all rows concatenated.
        """
        for place, (role, piece) in enumerate(self._texts.rows(fed.epoch, fed.window)):
            start = place * self._texts.length
            stop = start + len(piece.ids)
            same = np.array_equal(ids[start:stop], piece.ids)
            whole = len(piece.ids) == piece.text_length
            self._rows.append(
                {
                    **_name_columns(role, piece),
                    **fed._asdict(),
                    "status": "altered" if not same else "whole" if whole else "fragment",
                    "intact": same and whole,
                    "tokens_before": fed.tokens_before + start,
                    "start": start,
                    "stop": stop,
                    "text_start": piece.start,
                    "text_stop": piece.stop,
                }
            )

    def restore(self, exposures: pa.Table) -> None:
        """Load the record of an earlier start of the run, or of another process."""
        self._rows += [row for row in exposures.to_pylist() if row["status"] != NEVER]

    def recorded(self) -> pa.Table:
        """Return the exposures so far, in training order."""
        rows = sorted(self._rows, key=lambda row: row["tokens_before"])
        return pa.Table.from_pylist(rows, schema=UNLEARNING_SCHEMA)

    def write(self, folder: Path) -> None:
        """Write the exposures, then the texts that were never fed, into a folder."""
        fed = {(row["role"], row["example_id"]) for row in self._rows}
        never = {
            (role, piece.example_id): {
                **_name_columns(role, piece),
                "status": NEVER,
                "intact": False,
            }
            for role, piece in self._texts.every()
            if (role, piece.example_id) not in fed
        }
        unfed_rows = pa.Table.from_pylist(list(never.values()), schema=UNLEARNING_SCHEMA)
        write_exposures(folder, pa.concat_tables([self.recorded(), unfed_rows]))


def _name_columns(role: str, piece: Piece) -> dict[str, Any]:
    return {
        "example_id": piece.example_id,
        "dataset": piece.dataset,
        "copy": 0,
        "variant": VARIANT,
        "text_length": piece.text_length,
        "role": role,
    }
