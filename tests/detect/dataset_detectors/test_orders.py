"""The orders that are read: those of the source, and shuffles that are drawn for each shard."""

from detect.dataset_detectors.orders import read_orders
from tests.analysis.synthetic import make_examples


def test_orders_are_those_of_the_pool_and_keyed_shuffles():
    examples = make_examples(0, n=10)
    orders = read_orders(examples, shards=3, shuffles=2, seed=0)
    members = [one for one in orders if (one.dataset, one.rows) == ("news", "members")]
    assert len(members) == 3 * 3
    texts = [one.text for one in examples if (one.dataset, one.side) == ("news", "member")]
    canonical = [one.text for one in members if one.number == 0]
    assert "\n\n".join(canonical) == "\n\n".join(texts), "the canonical shards are the dataset"
    for one in members:
        same = next(x.text for x in members if x.shard == one.shard and x.number == 0)
        assert sorted(one.text.split("\n\n")) == sorted(same.split("\n\n"))
    assert any(one.text != canonical[one.shard] for one in members if one.number)
    assert orders == read_orders(examples, shards=3, shuffles=2, seed=0)
    alone = [one for one in examples if one.dataset == "news"]
    again = read_orders(alone, shards=3, shuffles=2, seed=0)
    assert [one for one in orders if one.dataset == "news"] == again
    assert read_orders(examples, shards=3, shuffles=2, seed=1) != orders
    assert read_orders(examples[:1], shards=3, shuffles=2, seed=0) == []
