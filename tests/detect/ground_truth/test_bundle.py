"""Bundles: they round-trip, omit protected texts, and report damage."""

import json
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from detect.choices import ChoiceAnswers, read_answers, write_answers
from detect.evidence import Evidence, HeldOutRows
from detect.evidence.entities import NamedEntity, read_entities, write_entities
from detect.evidence.needs import every_kind
from detect.evidence.prefixed import Prefixed, Shots, read_shots, shot_notes, write_shots
from detect.evidence.views import View
from detect.generation.continuations import Continued, read_continuations, write_continuations
from detect.generation.guesses import GuessedText, read_guesses, write_guesses
from detect.generation.masked_parts import WordStatistics
from detect.generation.word_statistics import read_words, write_words
from detect.ground_truth import packing
from detect.ground_truth.bundle import HEADER, read_bundle
from detect.ground_truth.ground_truth import read_ground_truth, readable
from detect.ground_truth.packing import write_bundle
from detect.guarded_call import read_only
from detect.text_measures import (
    GradientNorms,
    NeighbourMeans,
    Neighbours,
    read_means,
    read_neighbours,
    read_norms,
    write_means,
    write_neighbours,
    write_norms,
)
from detect.token_statistics import (
    TEXT_COLUMNS,
    TemperedStatistics,
    read_statistics,
    write_statistics,
)
from inject.errors import InputError
from inject.examples.example import read_examples, read_held_out, write_examples, write_held_out
from tests.detect.evidence_samples import statistics_of
from tests.detect.ground_truths import make_examples, make_statistics, same


@pytest.mark.parametrize("packed", [False, True])
def test_bundle_round_trip(truth, described, store, bundle, packed):
    restored = read_bundle(bundle) if packed else read_ground_truth(described, store)
    for name in ("name", "analysis", "experiment", "provenance", "axes"):
        assert getattr(restored, name) == getattr(truth, name), name
    for original, copy in zip(truth.models, restored.models, strict=True):
        for name in ("axes", "seed", "model", "defaults", "copies", "fixed_levels"):
            assert getattr(original, name) == getattr(copy, name), name
        for column in original.scores.column_names:
            first, second = original.scores[column].to_pylist(), copy.scores[column].to_pylist()
            assert repr(first) == repr(second)
        assert (original.exposures is None) == (copy.exposures is None)
        assert original.exposures is None or original.exposures.equals(copy.exposures)
        readable = [at for at, row in enumerate(original.rows) if not (packed and row.protected)]
        assert np.flatnonzero(~copy.withheld).tolist() == readable
        assert [original.rows[row] for row in readable] == [copy.rows[row] for row in readable]
        before, after = original.evidence.take(readable), copy.evidence.take(readable)
        for field in fields(Evidence):
            assert same(
                read_only(getattr(before, field.name)), read_only(getattr(after, field.name))
            ), field.name


def test_bundle_omits_protected_texts_and_everything_that_reveals_them(truth, bundle):
    for path in bundle.rglob("*.*"):
        if path.suffix == ".parquet":
            assert "secret <b>" not in json.dumps(pq.read_table(path).to_pydict(), default=str)
        assert b"secret <b>" not in path.read_bytes(), path
        # Records next to a table contain paths of the machine that made it.
        assert b"/home/somebody" not in path.read_bytes(), path
    assert not list(bundle.rglob("*.safetensors"))
    model = read_bundle(bundle).models[0]
    secret = [at for at, row in enumerate(truth.models[0].rows) if row.protected]
    assert np.flatnonzero(model.withheld).tolist() == secret
    original = truth.models[0]
    for row in secret:
        assert model.evidence.texts[row] is None
        assert model.rows[row].fields == {}
        assert model.rows[row].text == " " * len(original.rows[row].text)
        for statistics, own in (
            (model.evidence.statistics["text"][row], original.evidence.statistics["text"][row]),
            (
                model.evidence.shadows[1].statistics[row],
                original.evidence.shadows[1].statistics[row],
            ),
        ):
            assert len(statistics) == len(own)
            assert np.array_equal(statistics.log_probability, own.log_probability)
            assert np.array_equal(statistics.rank, own.rank)
            for name in TEXT_COLUMNS:
                with pytest.raises(AttributeError):
                    getattr(statistics, name)


IDS = ("shown", "hidden")
POOLS = ("examples/pool", "examples/shadow-0")


def written(folder: Path) -> dict[Callable[[Path], Any], Any]:
    """Write each kind of evidence of a text; return its reader and the expected result."""
    random = np.random.Generator(np.random.Philox(key=1))
    letters = random.integers(-1, 4, 24).astype(np.int8)
    labels = -random.gamma(1.0, 1.0, (24, 4)).astype(np.float32)
    made = {
        (write_continuations, read_continuations): Continued("secret", "w", ("secret", "x"), 3, 4),
        (write_guesses, read_guesses): GuessedText(("secret",), ("secret!",), 1, 2, 3),
        (write_entities, read_entities): [NamedEntity(3, 9, "PERSON")],
        (write_words, read_words): [WordStatistics(0, 3, -1.5, 7, -1.0, 7)],
        (write_answers, read_answers): ChoiceAnswers(
            letters=letters, log_probability=labels, document="d"
        ),
        (write_norms, read_norms): GradientNorms(whole=1.5, tensors=(1.0,), embeddings=(0.5,)),
        (write_neighbours, read_neighbours): Neighbours(texts=("secret",)),
        (write_means, read_means): NeighbourMeans(means=(-1.5, 2 / 7)),
    }
    for (write, _), record in made.items():
        write(folder, IDS, [record] * 2)
    plain = statistics_of([-1.0, -2.0, -0.5], ids=[11, 12, 13], offsets=[(0, 2), (2, 5), (5, 6)])
    half = TemperedStatistics(
        log_probability=plain.log_probability / 2,
        mean_log_prob=plain.mean_log_prob,
        std_log_prob=plain.std_log_prob,
    )
    tempered = replace(plain, tempered={0.5: half})
    write_statistics(folder, IDS, [tempered] * 2)
    write_shots(folder, SHOTS)
    return {read_statistics: tempered, **{read: record for (_, read), record in made.items()}}


SHOTS = {"news": Shots(texts=("secret", "b"), ids=(1, 2), separator=(3,), too_long=True)}
REASONS = {
    (write_continuations, read_continuations): Continued("", "", (), reason="why"),
    (write_guesses, read_guesses): GuessedText((), reason="why"),
    (write_entities, read_entities): [],
    (write_words, read_words): [],
    (write_answers, read_answers): ChoiceAnswers(reason="why"),
    (write_norms, read_norms): GradientNorms(reason="why"),
    (write_neighbours, read_neighbours): Neighbours(reason="why"),
    (write_means, read_means): NeighbourMeans(reason="why"),
}
"""Each kind's value for a text without evidence."""


def test_held_out_rows_paraphrases_and_shadow_pools_omit_protected_texts(
    described, store, tmp_path
):
    root = Path(shutil.copytree(store, tmp_path / "store"))
    apart = [
        replace(row, example_id=f"apart{at}", text=f"apart {row.text}", paraphrases=(row.text,))
        for at, row in enumerate(make_examples(2, datasets=("news", "secret"), protected="secret"))
    ]
    rows = [
        replace(row, paraphrases=(f"again {row.text}",)) for row in read_examples(root / POOLS[0])
    ]
    for pool in POOLS:
        write_examples(root / pool, rows)
        write_held_out(root / pool, apart)
    ids = [row.example_id for row in apart]
    (root / "statistics/apart").mkdir()
    write_statistics(root / "statistics/apart", ids, make_statistics(apart, {}, key=1))
    (first, *others) = described.models
    first = first.model_copy(
        update={"inputs": {**first.inputs, "held_out-text": "statistics/apart"}}
    )
    out = tmp_path / "bundle"
    changed = described.model_copy(update={"models": (first, *others)})
    write_bundle(out, changed, root, parts=["held_out", "shadows"])
    scored, shadow = (out / pool for pool in POOLS)
    held_out = read_held_out(scored)
    assert [row.example_id for row in held_out] == ids
    for row, own in zip([*read_examples(scored), *held_out], [*rows, *apart], strict=True):
        blank = replace(own, text=" " * len(own.text), fields={}, spans={}, paraphrases=())
        assert row == (blank if own.protected else own)
    for name, statistics in read_statistics(out / "statistics/apart").items():
        assert hasattr(statistics, "ids") != apart[ids.index(name)].protected
    # Only the sides of an unscored pool are useful.
    assert {row.text.strip() for row in read_examples(shadow)} == {""}
    assert read_held_out(shadow) == []


def test_evidence_round_trip(tmp_path):
    for read, record in written(tmp_path).items():
        assert same(read(tmp_path), dict.fromkeys(IDS, record)), read
    assert read_shots(tmp_path) == SHOTS
    for (write, read), record in REASONS.items():
        write(tmp_path, ["a"], [record])
        assert same(read(tmp_path), {"a": record}), read


def test_evidence_that_reveals_a_protected_text_is_omitted(tmp_path):
    made, out = tmp_path / "made", tmp_path / "out"
    made.mkdir()
    out.mkdir()
    written(made)
    leaving = [path for path in made.iterdir() if path.name in packing._leaf_columns()]
    # A reference model's surprise and the neighbours themselves are never exported.
    assert {path.name for path in made.iterdir()} - {path.name for path in leaving} == {
        *("words.parquet", "neighbours.parquet"),
    }
    for path in leaving:
        packing._pack(path, out / path.name, {"hidden"})
    # A new kind of need declares its exportable files in `leaves`, and is written above.
    absent = {name for name in packing._leaf_columns() if not (out / name).exists()}
    assert absent == {
        *("scores.parquet", "exposures.parquet", "statistics.arrow"),
        *("counts.npy", "frequency.json", "word_counts.parquet"),
    }
    before, after = read_statistics(made), read_statistics(out)
    assert same(before["shown"], after["shown"])
    assert vars(before["hidden"]).keys() - vars(after["hidden"]).keys() == set(TEXT_COLUMNS)
    assert same(before["hidden"].tempered, after["hidden"].tempered)
    for read in (read_continuations, read_guesses, read_entities):
        assert read(made)["shown"] == read(out)["shown"]
    assert read_continuations(out)["hidden"] == Continued(None, None, None, 3, 4)
    assert read_guesses(out)["hidden"] == GuessedText(None, None, 1, 2, 3)
    assert "hidden" not in read_entities(out)
    for name in ("choices.parquet", "gradients.parquet", "neighbour_means.parquet"):
        assert pq.read_table(made / name).equals(pq.read_table(out / name))
    for path in out.glob("*.parquet"):
        (_, hidden) = pq.read_table(path).to_pylist()
        assert "secret" not in json.dumps(hidden), path
    need = Prefixed(shots=3)
    assert shot_notes(need, read_shots(out), ["news"]) == shot_notes(need, SHOTS, ["news"])
    assert "secret" not in (out / "shots.json").read_text()


def test_file_contains_no_value_of_a_withheld_column(tmp_path):
    """Null in an Arrow table does not imply deletion: the buffer may still contain the values."""
    ids = np.full(50, 271_828_182, np.int32)
    row = statistics_of(np.full(50, -1.0), ids=ids)
    write_statistics(tmp_path, IDS, [statistics_of([-1.0]), row])
    packing._pack(tmp_path / "statistics.arrow", tmp_path / "statistics.arrow", {"hidden"})
    assert ids[:1].tobytes() in (tmp_path / "statistics.arrow").read_bytes()
    columns = pq.read_metadata(tmp_path / "statistics.parquet").row_group(0)
    lengths = {
        column.path_in_schema.partition(".")[0]: column.num_values
        for column in map(columns.column, range(columns.num_columns))
    }
    # One token of the shown row, and a mark that the other row is empty.
    assert (lengths["ids"], lengths["top_id"], lengths["rank"]) == (2, 2, 51)


def test_missing_held_out_rows_and_texts_are_omitted_together():
    rows, apart = make_examples(2), make_examples(2, datasets=("news", "secret"))
    statistics = make_statistics(apart, {}, key=1)
    held_out = HeldOutRows(
        datasets=[row.dataset for row in apart],
        texts=[None if row.dataset == "secret" else row.text for row in apart],
        statistics=statistics,
        shadows=[statistics],
    )
    texts = [row.text if at % 2 else None for at, row in enumerate(rows)]
    evidence = readable(Evidence(texts=texts, statistics={}, held_out=held_out))
    assert list(evidence.texts) == texts[1::2]
    assert evidence.held_out.datasets == ("news",) * 4
    assert same(evidence.held_out.shadows[0], statistics[:4])


def test_repacking_gives_the_same_content(described, store, bundle, tmp_path):
    facts = write_bundle(tmp_path / "again.bundle", described, store, parts=["all"])
    assert facts.content == read_bundle(bundle).content
    assert (facts.rows, facts.withheld, facts.models) == (32, 16, 4)
    assert facts.size == sum(path.stat().st_size for path in bundle.rglob("*.*"))
    with pytest.raises(InputError, match="never overwritten"):
        write_bundle(tmp_path / "again.bundle", described, store)


def test_evidence_of_unknown_needs_is_omitted(described, store, tmp_path):
    """A plug-in of the run may have had needs that are unknown here."""
    (store / "odd" / "one").mkdir(parents=True)
    (store / "odd" / "one" / "odd.parquet").write_bytes(b"secret")
    (first, *others) = described.models
    odd = first.model_copy(update={"inputs": {**first.inputs, "odd": "odd/one"}})
    write_bundle(tmp_path / "b", described.model_copy(update={"models": (odd, *others)}), store)
    assert not list((tmp_path / "b").rglob("odd.*"))
    assert read_bundle(tmp_path / "b").models[0].evidence.reference is not None


# -- parts -----------------------------------------------------------------------------------


def test_default_bundle_contains_texts_and_scores_and_parts_are_optional(
    described, store, bundle, tmp_path
):
    assert packing.parts_of(described) == ["lowercase", "shadows"]
    small, more = tmp_path / "small", tmp_path / "more"
    facts = write_bundle(small, described, store)
    assert facts.left_out == ("lowercase", "shadows")
    facts_of_more = write_bundle(more, described, store, parts=["lowercase"])
    assert facts_of_more.left_out == ("shadows",)
    whole = read_bundle(bundle)
    for path, views in ((small, {"text"}), (more, {"text", "lowercase"})):
        for model, other in zip(whole.models, read_bundle(path).models, strict=True):
            assert set(other.evidence.statistics) == views
            assert other.evidence.shadows is None
            for name in ("reference", "frequency", "members", "texts"):
                assert same(getattr(model.evidence, name), getattr(other.evidence, name)), name
            assert same(model.evidence.statistics["text"], other.evidence.statistics["text"])
            assert repr(model.scores.to_pylist()) == repr(other.scores.to_pylist())
    sizes = packing.part_sizes(described, store)
    assert list(sizes) == ["", "lowercase", "shadows"]
    tables = sum(path.stat().st_size for path in small.rglob("*.*") if path.name != HEADER)
    assert 0.8 * tables < sizes[""] < 1.25 * tables
    added = facts_of_more.size - facts.size
    assert 0.8 * added < sizes["lowercase"] < 1.25 * added


def test_missing_part_is_rejected_by_name(described, store, tmp_path):
    with pytest.raises(InputError, match=r"'lowercased'\. Did you mean 'lowercase'") as caught:
        write_bundle(tmp_path / "b", described, store, parts=["lowercased"])
    assert caught.value.allowed == "lowercase, shadows, all"
    assert not (tmp_path / "b").exists()


def test_evidence_inputs_are_parts_or_always_included():
    by_input = {
        None: "examples reference frequency view-text what-a-plugin-names",
        "lowercase": "view-lowercase",
        "swapped": "view-swapped-1 view-swapped-5",
        "held_out": "held_out held_out-text held_out-reference 0003-shadow-held_out",
        "shadows": "0000-shadow 0011-membership",
        "shots": "behind-nonmembers-0-1 shots-members-0-7",
        "tuned": "tuned-text-all_linear",
        "choices": "choices clean-choices",
        "continuations": "continuations-0123456789ab",
        "guesses": "guesses-0123456789ab",
        "gradients": "gradients",
        "neighbours": "neighbours",
        "entities": "entities",
    }
    for part, names in by_input.items():
        assert {packing._part(name) for name in names.split()} == {part}
    assert set(by_input) - {None} == {part for kind in every_kind() for part in kind.parts}
    assert [View(name).part for name in ("text", "lowercase", "swapped-2")] == [
        None, "lowercase", "swapped",
    ]  # fmt: skip


def test_entropy_is_restored_exactly_or_stored(tmp_path):
    """It is restored exactly, or stored."""
    rows = [statistics_of([-1.0, -2.0], entropy=[0.5, 0.25]), statistics_of([-3.0])]
    odd = [replace(rows[0], entropy=np.nextafter(rows[0].entropy, np.float32(9))), rows[1]]
    for number, table in enumerate((rows, odd)):
        folder, out = tmp_path / f"{number}", tmp_path / f"{number}-packed"
        folder.mkdir()
        out.mkdir()
        write_statistics(folder, IDS, table)
        packing._pack(folder / "statistics.arrow", out / "statistics.arrow", set())
        assert same(read_statistics(folder), read_statistics(out))
        assert ("entropy" in pq.read_schema(out / "statistics.parquet").names) == bool(number)
