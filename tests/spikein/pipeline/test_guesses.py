"""Guesses of masked words through the whole graph, and through `spikein detect`."""

import json

import pytest

from detect.engine.measured_cost import read_cost
from detect.generation.guesses import read_guesses
from detect.generation.word_statistics import read_words
from detect.scores.table import read_scores
from inject.errors import InputError
from inject.examples.example import read_examples
from spikein.scoring.detect_file import DetectFileRequest, detect_file
from tests.conftest import make_texts
from tests.spikein.tiny import run, write_tiny


@pytest.mark.slow
def test_the_base_model_chooses_words_and_every_model_is_asked(tmp_path, tiny_model_path) -> None:
    write_tiny(tmp_path)
    run(
        tmp_path,
        "detect.detectors=[loss, info_probe:prompt=plain:limit=2, "
        "info_probe:prompt=plain:filtered=true:limit=2, ts_slot:slot=option:prompt=plain]",
        f"detect.knowledge_filter={tiny_model_path}",
    )
    store = tmp_path / "store"

    def stored(kind):
        return sorted(store.glob(f"{kind}/*-????????????"))

    [examples] = stored("examples")
    rows = read_examples(examples)
    [words] = stored("words")
    found = read_words(words)
    assert set(found) == {row.example_id for row in rows}
    for row in rows:
        assert all(row.text[one.start : one.stop].isascii() for one in found[row.example_id])
    # Base and arm, for two ways to ask and one slot; the filter twice, for both of them alike.
    assert len(stored("guesses")) == 8
    for path in stored("guesses"):
        guessed = read_guesses(path)
        cost = read_cost(path)
        assert cost.passes == sum(len(one.wanted) for one in guessed.values())
        assert (cost.tokens_in > cost.passes) == (cost.passes > 0)
        for row in rows:
            one = guessed[row.example_id]
            assert all(part in row.text for part in one.wanted)
            assert len(one.wanted) <= 2
            if "option" in path.name:
                assert (one.reason is None) == (row.fields["form"] == "choice")
    for path in stored("scores"):
        table = read_scores(path).to_pandas()
        assert set(table["detector"]) >= {"info_probe", "ts_slot"}
        assert table[table["detector"] == "info_probe"]["score"].between(0, 2).all()


def test_a_filter_that_is_not_named_is_asked_for(tmp_path) -> None:
    write_tiny(tmp_path)
    with pytest.raises(InputError, match=r"detect\.knowledge_filter"):
        run(tmp_path, 'detect.detectors=["info_probe:filtered=true"]')
    with pytest.raises(InputError, match=r"detect\.word_reference"):
        run(tmp_path, "detect.detectors=[info_probe]", "detect.reference=null")


def test_detect_asks_for_masked_words(tmp_path, tiny_model_path) -> None:
    rows = [{"text": text, "label": number % 2} for number, text in enumerate(make_texts(4))]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def detected(detectors, **more):
        return detect_file(
            DetectFileRequest(
                model=str(tiny_model_path),
                examples=str(tmp_path / "rows.jsonl"),
                out=tmp_path / "scores.parquet",
                detectors=detectors,
                **more,
            )
        )

    path = str(tiny_model_path)
    probe = "info_probe:prompt=plain:log_probability=-1:filtered=true:limit=3"
    found = detected(f"{probe},ts_slot", word_reference=path, knowledge_filter=path)
    assert len(found.scores) == 8
    assert any("of 12 masked parts were put back" in note for note in found.notes)
    assert len(detected("info_probe", reference=path).scores) == 4
    with pytest.raises(InputError, match="--word-reference or --reference PATH"):
        detected("info_probe")
    with pytest.raises(InputError, match="--knowledge-filter PATH"):
        detected("info_probe:filtered=true", reference=path)
    assert len(detected("info_probe:select=person").scores) == 4
