"""Neighbours and gradients in a whole experiment: made once, stored, and scored."""

import pyarrow.parquet as pq

from detect.engine.measured_cost import read_cost
from detect.gradients.norms import read_norms
from detect.neighbours.neighbours import read_means, read_neighbours
from tests.detect.masked_models import tiny_masked_parts
from tests.spikein.tiny import run, write_tiny


def test_one_set_of_neighbours_serves_every_model(tmp_path):
    write_tiny(tmp_path)
    model, tokenizer = tiny_masked_parts()
    model.save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    result = run(
        tmp_path,
        "contaminants.0={dataset: fictional, members: 6, nonmembers: 6}",
        f"detect.neighbours={{model: {tmp_path / 'bert'}, count: 4}}",
        "detect.detectors=[loss, neighbour, grad_norm, pac]",
        "analysis.min_members=2",
    )
    store = tmp_path / "store"

    def folders(kind):
        return [path for path in (store / kind).iterdir() if path.is_dir()]

    (texts,) = folders("neighbours")
    assert all(len(one.texts) == 4 for one in read_neighbours(texts).values())
    assert len(folders("neighbour_means")) == 2
    for folder in folders("neighbour_means"):
        assert all(len(one.means) == 4 for one in read_means(folder).values())
    for folder in folders("gradients"):
        assert all(one.whole for one in read_norms(folder).values())
        cost = read_cost(folder)
        assert cost.passes == 12
        (view,) = {read_cost(one).tokens_in for one in folders("statistics") if "text-" in one.name}
        assert cost.tokens_in == view
    scores = pq.read_table(result.folder / "scores.parquet").to_pylist()
    scored = {row["detector"] for row in scores if row["score"] is not None}
    assert scored >= {"neighbour", "grad_norm", "pac"}
