"""The orders of a dataset that the exchangeability test reads, and their log-likelihoods.

The rows of one side of a dataset, in the order of its source, are cut into shards of equal size.
The model reads each shard in that order and in shuffles that depend only on (seed, dataset, side,
shard, number). A text longer than the context is read in windows by the model's policy.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inject.examples.example import Example
from inject.keyed import Stream, generator, item_key
from inject.tables import read_parquet

ORDERS_FILE = "orders.parquet"
SEPARATOR = "\n\n"
CANONICAL = 0
SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("rows", pa.string()),
        ("shard", pa.int64()),
        ("number", pa.int64()),
        ("log_likelihood", pa.float64()),
        ("tokens", pa.int64()),
    ]
)
_FEWEST_ROWS = 2


class ReadOrder(NamedTuple):
    """One text that the model reads."""

    dataset: str
    rows: str
    """`members` or `non-members`."""
    shard: int
    number: int
    """0: the canonical order; from 1: a shuffle."""
    text: str


def read_orders(
    examples: Sequence[Example], *, shards: int, shuffles: int, seed: int
) -> list[ReadOrder]:
    """Return every order of every shard, dataset by dataset; the canonical one first.

    Args:
        examples: the pool; the file has the order of their source.
        shards: maximum number per dataset and side; each has two rows or more.
        shuffles: number for each shard.
        seed: seed of the shuffles.
    """
    orders = []
    for dataset in dict.fromkeys(example.dataset for example in examples):
        for side, rows in (("member", "members"), ("nonmember", "non-members")):
            texts = [row.text for row in examples if row.dataset == dataset and row.side == side]
            count = min(shards, len(texts) // _FEWEST_ROWS)
            for shard, part in enumerate(np.array_split(np.arange(len(texts)), max(1, count))):
                if len(part) < _FEWEST_ROWS:
                    continue
                documents = [texts[at] for at in part]
                orders.append(ReadOrder(dataset, rows, shard, CANONICAL, SEPARATOR.join(documents)))
                for number in range(1, shuffles + 1):
                    key = item_key(f"{dataset}\0{rows}\0{shard}\0{number}")
                    order = generator(seed, Stream.EXAMPLE_ORDER, key).permutation(len(documents))
                    text = SEPARATOR.join(documents[at] for at in order)
                    orders.append(ReadOrder(dataset, rows, shard, number, text))
    return orders


def write_orders(
    folder: Path,
    orders: Sequence[ReadOrder],
    log_likelihoods: Sequence[float],
    tokens: Sequence[int],
) -> None:
    """Write the log-likelihood of every order."""
    columns = [
        pa.array([getattr(order, name) for order in orders], SCHEMA.field(name).type)
        for name in SCHEMA.names[:4]
    ]
    columns += [pa.array(log_likelihoods, pa.float64()), pa.array(tokens, pa.int64())]
    pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), folder / ORDERS_FILE)


def load_orders(folder: Path) -> pa.Table:
    """Read the table that `write_orders` wrote."""
    return read_parquet(folder / ORDERS_FILE)
