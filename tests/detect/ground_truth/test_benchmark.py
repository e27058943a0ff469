"""A benchmark withholds the labels of one seed's models: nothing in its bundle depends on them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from detect.evidence.membership import Sides
from detect.ground_truth.benchmark import LEAST_SEED, WITHHELD, withhold_labels
from detect.ground_truth.bundle import HEADER, read_bundle
from detect.ground_truth.ground_truth import GroundTruth
from detect.ground_truth.hub_bundle import CARD, write_card
from detect.ground_truth.packing import write_bundle
from inject.errors import InputError
from inject.examples.example import read_examples
from tests.detect.ground_truths import make_examples, make_model, make_truth, same, store_truth

SECRET = LEAST_SEED + 918_273_645
EXPERIMENT = f"name: made-up\nseeds:\n- 0\n- {SECRET}\ncopies:\n  fixed: 1\n"


def make_benchmark(relabelled: bool = False) -> GroundTruth:
    """Two arms of a public seed, and two of the secret one, whose sides may be drawn again."""
    truth = make_truth(10, arms=(1, 4))
    rows = make_examples(10, datasets=("other",))
    hidden = [
        make_model(rows, axes={"copies": f"fixed={dose}"}, seed=SECRET, dose=dose, key=dose)
        for dose in (1, 4)
    ]
    if relabelled:
        hidden = [_relabel(model) for model in hidden]
    twin = make_model(hidden[0].rows, model="twin", seed=SECRET, key=40)
    return replace(truth, models=(*truth.models, *hidden, twin), experiment=EXPERIMENT)


def _relabel(model):
    """Return the same statistics with other sides and splits, and so another order of rows."""
    draw = np.random.default_rng(5).permutation(len(model.rows))
    half = len(draw) // 2
    rows = tuple(
        replace(
            model.rows[row],
            side="member" if at < half else "nonmember",
            split="tune" if at % 3 == 0 else "test",
        )
        for at, row in enumerate(draw)
    )
    evidence = model.evidence.take(draw.tolist())
    copies = {row.example_id: 3 for row in rows[:half]}
    exposures = pa.Table.from_pylist(
        [{**model.exposures.to_pylist()[0], "example_id": name} for name in copies],
        schema=model.exposures.schema,
    )
    scores = model.scores.slice(0, 0)
    return replace(
        model, rows=rows, evidence=evidence, copies=copies, exposures=exposures, scores=scores
    )


def publish(truth: GroundTruth, folder: Path) -> tuple[Path, Path, str]:
    described = store_truth(truth, folder / "store")
    public, organiser, unlabelled = withhold_labels(described, SECRET)
    root = folder / "store"
    write_bundle(folder / "labels", organiser, root, parts=["shadows"])
    facts = write_bundle(folder / "bench", public, root, parts=["shadows"], unlabelled=unlabelled)
    write_card(folder / "bench")
    return folder / "bench", folder / "labels", facts.content


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> tuple[Path, Path, str]:
    return publish(make_benchmark(), tmp_path_factory.mktemp("benchmark"))


def test_public_bundle_is_the_same_whatever_the_held_out_sides_are(published, tmp_path):
    _, labels, content = published
    _, other_labels, other = publish(make_benchmark(relabelled=True), tmp_path)
    assert other == content
    sides = [
        {row.example_id: row.side for row in read_bundle(folder).models[0].rows}
        for folder in (labels, other_labels)
    ]
    assert sides[0] != sides[1]


def test_public_bundle_does_not_depend_on_the_run_and_its_time(published, tmp_path):
    truth = make_benchmark()
    changed = {"run": "another", "finished": "2027-01-01T00:00:00Z"}
    again = truth.provenance.model_copy(update=changed)
    assert publish(replace(truth, provenance=again), tmp_path)[2] == published[2]


def test_unlabelled_models_have_evidence_and_no_labels(published):
    bench, labels, _ = published
    truth, organiser = read_bundle(bench), read_bundle(labels)
    assert len(truth.models) == 4
    assert [model.model for model in organiser.models] == ["contaminated", "contaminated", "twin"]
    for hidden, own in zip(truth.unlabelled, organiser.models[:2], strict=True):
        assert (hidden.axes, hidden.seed, hidden.model) == (own.axes, WITHHELD, "contaminated")
        assert (hidden.copies, hidden.exposures, len(hidden.scores)) == (None, None, 0)
        assert not Sides().met_by(hidden.evidence)
        assert {(row.side, row.split) for row in hidden.rows} == {("nonmember", "test")}
        ids = [row.example_id for row in hidden.rows]
        assert ids == sorted(row.example_id for row in own.rows)
        order = [[row.example_id for row in own.rows].index(name) for name in ids]
        expected = own.evidence.take(order)
        for name in ("texts", "reference", "shadows"):
            assert same(getattr(hidden.evidence, name), getattr(expected, name)), name
        assert same(hidden.evidence.statistics["text"], expected.statistics["text"])


def test_no_file_of_the_public_bundle_contains_the_seed(published):
    bench, _, _ = published
    for path in bench.rglob("*.*"):
        table = str(pq.read_table(path).to_pydict()) if path.suffix == ".parquet" else ""
        assert str(SECRET) not in table + path.read_bytes().decode(errors="replace"), path
    assert "seeds:\\n- 0\\ncopies" in (bench / HEADER).read_text()
    pools = set(bench.glob("examples/unlabelled-*"))
    assert len(pools) == 3, "the scored pool, and the sides of two shadow models"
    assert sum({row.side for row in read_examples(pool)} == {"nonmember"} for pool in pools) == 1


def test_a_clean_twin_is_not_the_reference_of_an_unlabelled_model(tmp_path):
    described = store_truth(make_benchmark(), tmp_path)
    *others, twin = described.models
    own = {"reference": twin.inputs["view-text"]}
    arms = [model.model_copy(update={"inputs": {**model.inputs, **own}}) for model in others]
    public, _, unlabelled = withhold_labels(
        described.model_copy(update={"models": (*arms, twin)}), SECRET
    )
    assert all("reference" not in model.inputs for model in public.unlabelled)
    assert twin.inputs["view-text"] not in unlabelled.values()


def test_card_describes_benchmark(published):
    card = (published[0] / CARD).read_text()
    for words in ("held out", published[2], "--bench", "Limits", "withheld"):
        assert words in card
    assert str(SECRET) not in card


@pytest.mark.parametrize("seed", [SECRET + 1, 0])
def test_another_seed_and_one_that_can_be_guessed_are_rejected(tmp_path, seed):
    described = store_truth(make_benchmark(), tmp_path)
    with pytest.raises(InputError, match=rf"cannot hold out the seed {seed}.*\[0, {SECRET}\]"):
        withhold_labels(described, seed)
