"""A retrained model that saw, or may still see, a forgotten example is refused."""

import pyarrow as pa
import pytest

from inject.errors import InputError
from inject.stream.exposures import NEVER, SCHEMA, require_unexposed, write_exposures


def exposure(name: str, copy: int, status: str) -> dict:
    return {
        "example_id": name,
        "dataset": "toy",
        "copy": copy,
        "variant": "whole",
        "status": status,
    }


def ledger(folder, *rows):
    write_exposures(folder, pa.Table.from_pylist(list(rows), schema=SCHEMA))
    return folder


def test_exposures_of_others_are_no_reason(tmp_path):
    require_unexposed(ledger(tmp_path, exposure("a", 0, "whole")), {"b", "c"})
    require_unexposed(ledger(tmp_path), {"b"})


@pytest.mark.parametrize("status", ["whole", "fragment", "altered"])
def test_a_single_exposure_is_found(tmp_path, status):
    folder = ledger(
        tmp_path,
        exposure("a", 0, "whole"),
        exposure("b", 3, status),
        exposure("b", 3, status),
        exposure("b", 4, status),
    )
    with pytest.raises(InputError, match=r"was fed copies of 1 forgotten.*: b \(2\)") as caught:
        require_unexposed(folder, ["b", "c"])
    assert caught.value.where.endswith("exposures.parquet")


def test_a_copy_that_was_never_reached_is_in_the_corpus_still(tmp_path):
    folder = ledger(tmp_path, exposure("a", 0, "whole"), exposure("b", 0, NEVER))
    with pytest.raises(InputError, match=r"has copies of 1 forgotten.*never reached them: b"):
        require_unexposed(folder, ["b"])
