"""Streams of designed studies: late copies, weighted doses, a repeated background, cut rows.

The run's claims are checked from its files, with nothing of ours between the file and the check but
the definition of the order of windows and the tokenizer.
"""

import json
import math

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from inject import keyed
from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.errors import InputErrors
from spikein.config.load import read_experiment
from tests.inject.streams import naive_find
from tests.spikein.tiny import LIGHT, graph_of, run, stored, write_tiny

TOKENS, CONTEXT, BATCH = 40_000, 64, 16
REPEAT, STRETCH, TAIL = 3, 10_000, 6_400
LONGEST = 40
LEVELS = [0, 0, 1, 2, 4]
DESIGN = (
    f"corpus.repeat={REPEAT}",
    f"placement={{stretch: {STRETCH}, tail: {TAIL}}}",
    f"pool={{max_tokens: {LONGEST}, near_duplicate: null}}",
    f"copies={{levels: {LEVELS}}}",
    "train.checkpoints={after_copies: [0, 3, 100]}",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = tmp_path_factory.mktemp("designed")
    write_tiny(root)
    return root, run(root, *LIGHT, *DESIGN)


def table(root, kind, name, label="*"):
    return pq.read_table(stored(root, kind, label)[0] / name).to_pylist()


def texts_as_tokens(root):
    """Return the token ids of each row's text, both sides."""
    rows = table(root, "examples", "examples.parquet")
    tokenizer = load_tokenizer(str(stored(root, "tokenizer")[0]))
    ids = encode_texts(tokenizer, [row["text"] for row in rows])
    return {row["example_id"]: tokens for row, tokens in zip(rows, ids, strict=True)}


def stream_by_hand(root) -> np.ndarray:
    """Compose the stream from the files: a third of the tokens, three times, and the copies."""
    corpus, plan = stored(root, "corpus")[0], stored(root, "plan")[0]
    clean = np.fromfile(corpus / "tokens-00000.bin", dtype="<u2").tolist()
    unique = clean[: math.ceil(TOKENS / REPEAT)]
    payload = np.fromfile(plan / "payload.bin", dtype="<u2").tolist()
    at: dict[int, list] = {}
    for row in pq.read_table(plan / "plan.parquet").to_pylist():
        at.setdefault(row["anchor"], []).append(
            (row["tiebreak"], row["payload_offset"], row["payload_length"])
        )
    out: list[int] = []
    for position in range(TOKENS):
        for _, offset, length in sorted(at.get(position, [])):
            out += payload[offset : offset + length]
        out.append(unique[position % len(unique)])
    return np.array(out[:TOKENS])


def trained_position() -> np.ndarray:
    """Return the place in training of each token of the stream."""
    n_windows = TOKENS // CONTEXT
    hashes = keyed.words(0, keyed.Stream.WINDOW_ORDER, np.arange(n_windows), 0)
    order = sorted(range(n_windows), key=lambda window: (int(hashes[window]), window))
    places = np.empty(n_windows * CONTEXT, dtype=np.int64)
    for rank, window in enumerate(order):
        places[window * CONTEXT : (window + 1) * CONTEXT] = np.arange(CONTEXT) + rank * CONTEXT
    return places


@pytest.mark.slow
def test_stream_of_the_files_has_every_copy_once_and_only_in_the_stretch(finished):
    root, _ = finished
    stream, place = stream_by_hand(root), trained_position()
    counts = {
        row["example_id"]: row["realised"] for row in table(root, "plan", "copy_counts.parquet")
    }
    end = TOKENS // CONTEXT * CONTEXT - TAIL
    exposures = table(root, "model", "exposures.parquet", "seed-0")
    expected = []
    for name, tokens in texts_as_tokens(root).items():
        starts = naive_find(stream, tokens)
        assert len(starts) == counts[name]
        for start in starts:
            trained = place[start : start + len(tokens)]
            assert end - STRETCH <= trained.min() <= trained.max() < end
            assert start // CONTEXT == (start + len(tokens) - 1) // CONTEXT
            expected.append((name, int(trained[0]), int(trained[0]) // CONTEXT // BATCH + 1))
    recorded = [(row["example_id"], row["tokens_before"], row["step"]) for row in exposures]
    assert sorted(recorded) == sorted(expected)
    assert {row["status"] for row in exposures} == {"whole"}


@pytest.mark.slow
def test_doses_are_the_weighted_levels_and_zero_is_a_row(finished):
    root, result = finished
    counts = table(root, "plan", "copy_counts.parquet")
    doses = [row["realised"] for row in counts if row["side"] == "member"]
    for level in set(LEVELS):
        share = LEVELS.count(level) / len(LEVELS)
        assert abs(doses.count(level) - share * len(doses)) < len(set(LEVELS))
    test = {
        row["example_id"]
        for row in table(root, "examples", "examples.parquet")
        if (row["side"], row["split"]) == ("member", "test")
    }
    zero = [row["example_id"] for row in counts if row["realised"] == 0]
    rows = {
        row["copies"]: row["n_members"]
        for row in read_table(result.folder, "metrics").to_pylist()
        if (row["model"], row["dataset"], row["detector"], row["metric"], row["selection"])
        == ("contaminated", "all", "loss", "auc", "default")
    }
    assert rows["0"] == len(test.intersection(zero)) > 0
    assert rows["all"] == len(test.difference(zero))


@pytest.mark.slow
def test_rows_of_both_sides_are_cut_to_max_tokens_and_counted(finished):
    root, result = finished
    rows = table(root, "examples", "examples.parquet")
    lengths = [len(ids) for ids in texts_as_tokens(root).values()]
    assert len(lengths) == 48
    assert 8 <= min(lengths) <= max(lengths) == LONGEST
    for row in rows:
        # No field of a cut row reaches beyond its text.
        assert all(span["stop"] <= len(row["text"]) for span in row["spans"])
    dropped = table(root, "examples", "dropped_rows.parquet")
    cut = sum(row["drop_reason"].startswith("cut to") for row in dropped)
    [report] = json.loads((stored(root, "examples")[0] / "examples.json").read_text()).values()
    assert cut == sum(n for reason, n in report["losses"].items() if reason.startswith("cut to"))
    page = (result.folder / "report.html").read_text(encoding="utf-8")
    assert f"{cut} rows are longer than {LONGEST} tokens and were cut to it." in page


@pytest.mark.slow
def test_checkpoints_are_counted_from_the_last_step_that_can_have_a_copy(finished):
    root, _ = finished
    model = stored(root, "model", "seed-0")[0]
    steps = sorted(int(path.name.removeprefix("step-")) for path in model.glob("step-*"))
    end = TOKENS // CONTEXT * CONTEXT - TAIL
    place = trained_position()
    # A window can have a copy if the stretch contains all of it.
    starts = place[::CONTEXT]
    inside = starts[(starts >= end - STRETCH) & (starts + CONTEXT <= end)]
    last = int(inside.max()) // CONTEXT // BATCH + 1
    assert steps == [last, last + 3]
    steps = [row["step"] for row in pq.read_table(model / "exposures.parquet").to_pylist()]
    assert last - 1 <= max(steps) <= last
    assert last + 100 > pq.read_table(model / "log.parquet")["step"].to_pylist()[-1]


def test_steps_beyond_the_end_are_named_in_a_note(tmp_path):
    write_tiny(tmp_path)
    graph = graph_of(tmp_path, *DESIGN, "seeds=[0, 1]")
    notes = [note for note in graph.notes if "after_copies" in note]
    assert notes == [
        "train.checkpoints.after_copies: no model is kept 100 steps after the copies of a training "
        "whose copies end at step 33 of 40."
    ]
    assert [model.checkpoint for model in graph.nodes[0].checkpoints] == [0, 33, 36, 40]


def test_arms_of_every_repetition_share_one_corpus(tmp_path):
    write_tiny(tmp_path)
    graph = graph_of(tmp_path, "sweep={corpus.repeat: [1, 4], corpus.tokens: [20_000, 40_000]}")
    assert len({node.corpus.digest for node in graph.nodes}) == 1
    assert graph.nodes[0].corpus.settings["tokens"] == 40_000 + 4_000
    repeated = graph_of(tmp_path, "corpus.repeat=4")
    assert repeated.nodes[0].corpus.settings["tokens"] == 10_000 + 4_000


def test_the_tail_is_the_same_in_streams_of_all_lengths(tmp_path):
    write_tiny(tmp_path)
    graph = graph_of(
        tmp_path, "sweep={corpus.tokens: [20_000, 40_000]}", "placement={stretch: 6400, tail: 3200}"
    )
    for node in graph.nodes:
        experiment = node.arm.experiment
        windows = experiment.corpus.tokens // CONTEXT
        low, high = experiment.placement.shares(windows, CONTEXT)
        assert (windows - low * windows, windows - high * windows) == (150, 50)


def test_cut_rows_do_not_depend_on_separators_or_context(tmp_path):
    write_tiny(tmp_path)
    limit = f"pool.max_tokens={LONGEST}"
    pools = {
        graph_of(tmp_path, limit, *more).nodes[0].examples.digest
        for more in (
            (),
            ("placement={policy: window, separator: end}",),
            ("train.context=128",),
        )
    }
    assert len(pools) == 1


def test_settings_of_steps_without_the_keys_do_not_name_them(tmp_path):
    """So stores made before there were such keys are still found by settings."""
    write_tiny(tmp_path)
    [node] = graph_of(tmp_path, "train.checkpoints={steps: [3]}").nodes
    assert node.examples.settings["pool"].keys() == {
        "near_duplicate", "min_tokens", "long_examples"
    }  # fmt: skip
    assert node.plan.settings["placement"].keys() == {
        "policy", "between", "straddle", "separator"
    }  # fmt: skip
    assert "repeat" not in node.plan.settings
    assert node.trained.settings["train"]["checkpoints"].keys() == {
        "steps", "every", "fractions", "powers_of_two", "max_kept"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "place", "message"),
    [
        (["pool={max_tokens: 6}"], "pool", "max_tokens: 6 is less than min_tokens, 8"),
        (["pool.max_tokens=65"], "pool.max_tokens", "65 tokens are more than the context, 64"),
        (
            ["placement={stretch: 39000, tail: 2000}"],
            "placement.stretch",
            "39,000 tokens and a tail of 2,000 are more than the 40,000 of the training",
        ),
        (
            ["placement={stretch: 63}"],
            "placement.stretch",
            "63 tokens that end 0 before the end have no whole window of 64",
        ),
        (
            ["placement={stretch: 6400}", "train.epochs=2"],
            "placement.stretch",
            "2 epochs see every window again",
        ),
        (["corpus.repeat=1000"], "corpus.repeat", "40 unique ones"),
        (
            ["train.checkpoints={after_copies: [0]}"],
            "train.checkpoints.after_copies",
            "copies are placed over the whole training",
        ),
        (["copies={levels: [0]}"], "copies", "all are 0, so no member has a copy"),
    ],
)
def test_a_design_that_cannot_be_run_is_refused_at_its_key(tmp_path, overrides, place, message):
    with pytest.raises(InputErrors) as caught:
        read_experiment(write_tiny(tmp_path), overrides)
    problems = [str(problem) for problem in caught.value.problems]
    assert any(place in problem and message in problem for problem in problems), problems
