"""All kinds of evidence in one experiment: computed once and shared, stored, and scored."""

import json

import pytest

import spikein
from detect.choices import read_answers
from detect.evidence.entities import read_entities
from detect.generation.word_statistics import read_words
from detect.scores.table import read_scores
from detect.target_identity import read_cost
from detect.text_measures import read_means, read_neighbours
from inject.errors import InputError
from inject.examples.example import read_examples
from spikein.scoring.detect_file import plan_file, score_file
from spikein.scoring.options import ScoringOptions
from tests.conftest import make_texts
from tests.detect.evidence_samples import scores_record
from tests.detect.masked_models import tiny_masked_parts
from tests.detect.taggers import write_tagger
from tests.spikein.tiny import build, graph_of, stored, write_tiny

ROWS = (
    "contaminants.0={dataset: fictional, members: 4, nonmembers: 4, held_out: 4, "
    "options: {forms: [question, choice]}}"
)
DETECTORS = (
    "detect.detectors=[loss, de_cop, neighbour, grad_norm, pac, 'tag_tab:k=1:entities=one_word', "
    "prefix, ngram_coverage:samples=3, 'info_probe:prompt=plain:limit=2', "
    "'info_probe:prompt=plain:filtered=true:limit=2', 'ts_slot:slot=option:prompt=plain']"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_model_path):
    """An experiment with all evidence of its two models, base and arm."""
    folder = tmp_path_factory.mktemp("evidence")
    write_tiny(folder)
    shape = folder / "shape.yaml"
    shape.write_text(shape.read_text().replace("context: 128", "context: 2048"))
    model, tokenizer = tiny_masked_parts()
    model.save_pretrained(folder / "bert")
    tokenizer.save_pretrained(folder / "bert")
    tagger = write_tagger(folder / "tagger", A="the", B="in", C="of", D="was", E="a", F="is")
    (node,) = graph_of(
        folder,
        ROWS,
        DETECTORS,
        f"detect.neighbours={{model: {folder / 'bert'}, count: 4}}",
        f"detect.tagger={tagger}",
        f"detect.knowledge_filter={tiny_model_path}",
        "corpus.tokens=10_000",
    ).nodes
    build(folder, node.scores, node.base.scores)
    return folder


def pool(folder):
    [examples] = stored(folder, "examples")
    return read_examples(examples)


@pytest.mark.slow
def test_all_detectors_score_both_models(folder):
    for path in stored(folder, "scores"):
        scores = read_scores(path).to_pylist()
        scored = {row["detector"] for row in scores if row["reason"] is None}
        assert scored >= {
            *("loss", "de_cop", "neighbour", "grad_norm", "pac", "tag_tab"),
            *("prefix", "ngram_coverage", "info_probe"),
        }
        assert all(0 <= row["score"] <= 1 for row in scores if row["detector"] == "de_cop")
        notes = scores_record(path / "scores.parquet")["notes"]
        assert any("calibrated on 4 clean passages" in note for note in notes)
    assert len(stored(folder, "scores")) == 2


@pytest.mark.slow
def test_answers_cover_examples_and_held_out_rows(folder):
    answers = [(path, read_answers(path)) for path in stored(folder, "choices")]
    assert sorted(len(rows) for _, rows in answers) == [4, 4, 8, 8]
    for path, rows in answers:
        assert all(row.document.startswith("fictional\n") for row in rows.values())
        answered = [row for row in rows.values() if row.log_probability is not None]
        assert all(row.log_probability.shape == (24, 4) for row in answered)
        cost = read_cost(path)
        assert cost.passes == 24 * len(answered) < cost.tokens_in


@pytest.mark.slow
def test_one_set_of_neighbours_entities_and_words_serves_all_models(folder):
    ids = {row.example_id for row in pool(folder)}
    (texts,) = stored(folder, "neighbours")
    assert all(len(row.texts) == 4 for row in read_neighbours(texts).values())
    assert len(stored(folder, "neighbour_means")) == 2
    for path in stored(folder, "neighbour_means"):
        assert all(len(row.means) == 4 for row in read_means(path).values())
    (entities,) = stored(folder, "entities")
    assert set(read_entities(entities)) == ids
    assert any(read_entities(entities).values())
    (words,) = stored(folder, "words")
    words_by_id = read_words(words)
    assert set(words_by_id) == ids
    for row in pool(folder):
        assert all(
            row.text[word.start : word.stop].isascii() for word in words_by_id[row.example_id]
        )


@pytest.mark.parametrize(
    ("overrides", "kind"),
    [
        (["detect.detectors=all"], None),
        (["detect.detectors=all", "detect.generate=true"], "continuations choices"),
        (["detect.detectors=[prefix, de_cop]"], "continuations choices"),
    ],
)
def test_models_generate_only_for_detectors_that_need_it(tmp_path, overrides, kind):
    """Expensive detectors of `all` are skipped with a note, unless models may generate."""
    write_tiny(tmp_path)
    graph = graph_of(tmp_path, *overrides)
    kinds = {step.kind for step in graph.graph.steps}
    assert {"continuations", "choices"} & kinds == {*(kind or "").split()}
    notes = " ".join(graph.notes)
    assert ("Set detect.generate=true, or name the detector." in notes) == (kind is None)
    assert "entities" not in kinds


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["detect.detectors=[tag_tab:entities=one_word]"], "tag_tab needs named entities, which"),
        (["detect.detectors=[info_probe:filtered=true]"], r"detect\.knowledge_filter"),
        (["detect.detectors=[info_probe]", "detect.reference=null"], r"detect\.word_reference"),
        (["detect.detectors=[neighbour]"], r"detect\.neighbours\.model"),
        (["detect.detectors=[lira]"], r"twins\.shadows"),
        (
            ["detect.detectors=[acmia:beta=3]"],
            r"acmia needs inverse temperature 3\.0.*detect\.inverse_temperatures",
        ),
        (
            [
                "contaminants=[{dataset: rows, path: ROWS, members: 9, nonmembers: 9}]",
                "detect.detectors=[de_cop]",
            ],
            "Spike a dataset that brings paraphrases",
        ),
    ],
)
def test_a_named_detector_without_its_input_names_the_key(tmp_path, overrides, message):
    write_tiny(tmp_path)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"text": "a row of {n} words"}}\n' for n in range(40)))
    filled_overrides = [override.replace("ROWS", str(rows)) for override in overrides]
    with pytest.raises(InputError, match=message):
        graph_of(tmp_path, *filled_overrides)


@pytest.fixture
def detected(tmp_path, tiny_model_path):
    rows = [{"text": text, "label": at % 2} for at, text in enumerate(make_texts(6))]
    rows[0]["text"] = "the old river bank was quiet in Zanzibar and the boats were gone"
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "words.jsonl").write_text(json.dumps({"text": "the river was in and"}) + "\n")

    def run(detectors, **more):
        words = str(tmp_path / "words.jsonl")
        options = ScoringOptions(detectors=detectors, frequency=words, **more)
        examples, out = str(tmp_path / "rows.jsonl"), tmp_path / "scores.parquet"
        return score_file(plan_file(examples, str(tiny_model_path), out, options), out)

    return run


def test_a_file_of_rows_is_also_tagged(detected, tmp_path):
    tagger = str(write_tagger(tmp_path / "tagger", GPE="Zanzibar"))
    result = detected("tag_tab:k=1,tag_tab:k=1:entities=one_word", tagger=tagger)
    scores = result.scores["score"].to_pylist()
    assert scores[0] != scores[6]
    assert repr(scores[1:6]) == repr(scores[7:])
    assert any("finds named entities in 1 of 6 texts" in note for note in result.notes)
    record = scores_record(tmp_path / "scores.parquet")
    assert (record["tagger"]["name"], len(record["tagger"]["files"])) == ("en_patterns", 64)
    unused = detected("loss", tagger=tagger)
    assert f"{tagger} is not used: no requested detector needs named entities" in unused.notes
    with pytest.raises(InputError, match="no such spaCy pipeline"):
        detected("tag_tab:entities=one_word", tagger="no_such_pipeline")


def test_a_model_generates_for_a_file_of_rows(detected, tiny_model_path):
    named = detected("prefix,samia:samples=2")
    scores = {row["detector"]: row["score"] for row in named.scores.to_pylist()}
    assert set(scores) == {"prefix", "samia"}
    assert all(0 <= score <= 1 for score in scores.values())
    quiet = detected("all")
    assert any(
        "prefix needs continuations" in note and "generate=true" in note for note in quiet.notes
    )
    assert "prefix" not in set(quiet.scores["detector"].to_pylist())
    options = spikein.ScoringOptions(generate=True)
    result = spikein.score_texts(tiny_model_path, make_texts(6), detectors="all", options=options)
    assert {"prefix", "cdd"} <= set(result.scores["detector"].to_pylist())


def test_a_model_predicts_masked_words_of_a_file(detected, tiny_model_path):
    path = str(tiny_model_path)
    probe = "info_probe:prompt=plain:log_probability=-1:filtered=true:limit=3"
    result = detected(f"{probe},ts_slot", word_reference=path, knowledge_filter=path)
    assert len(result.scores) == 12
    assert any("masked parts were put back" in note for note in result.notes)
    assert len(detected("info_probe", reference=path).scores) == 6
    assert len(detected("info_probe:select=person").scores) == 6
    with pytest.raises(InputError, match="word_reference=PATH or reference=PATH"):
        detected("info_probe")
    with pytest.raises(InputError, match="knowledge_filter=PATH"):
        detected("info_probe:filtered=true", reference=path)
