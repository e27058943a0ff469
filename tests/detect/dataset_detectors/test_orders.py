"""Orders of reading: the source's, and random shuffles for each shard."""

from detect.dataset_detectors.orders import read_orders
from tests.analysis.synthetic import make_examples


def test_orders_match_the_pool_and_keyed_shuffles():
    examples = make_examples(0, n=10)
    orders = read_orders(examples, shards=3, shuffles=2, seed=0)
    members = [order for order in orders if (order.dataset, order.rows) == ("news", "members")]
    assert len(members) == 3 * 3
    texts = [row.text for row in examples if (row.dataset, row.side) == ("news", "member")]
    canonical = [order.text for order in members if order.number == 0]
    assert "\n\n".join(canonical) == "\n\n".join(texts), "the canonical shards are the dataset"
    for order in members:
        same = next(x.text for x in members if x.shard == order.shard and x.number == 0)
        assert sorted(order.text.split("\n\n")) == sorted(same.split("\n\n"))
    assert any(order.text != canonical[order.shard] for order in members if order.number)
    assert orders == read_orders(examples, shards=3, shuffles=2, seed=0)
    alone = [row for row in examples if row.dataset == "news"]
    again = read_orders(alone, shards=3, shuffles=2, seed=0)
    assert [order for order in orders if order.dataset == "news"] == again
    assert read_orders(examples, shards=3, shuffles=2, seed=1) != orders
    assert read_orders(examples[:1], shards=3, shuffles=2, seed=0) == []
