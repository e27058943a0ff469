"""Named entities in a whole experiment, and for a file of rows: found once, stored, and scored."""

import json

import pyarrow.parquet as pq
import pytest

from detect.evidence.entities import read_entities
from inject.errors import InputError
from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import build_graph
from spikein.scoring.detect_file import DetectFileRequest, detect_file
from tests.detect.evidence_samples import scores_record
from tests.detect.taggers import write_tagger
from tests.spikein.tiny import run, write_tiny

ASKED = "detect.detectors=[loss,  'tag_tab:k=1:entities=one_word']"


def test_one_set_of_entities_serves_every_model(tmp_path):
    write_tiny(tmp_path)
    tagger = write_tagger(tmp_path / "tagger", A="the", B="in", C="of", D="was", E="a", F="is")
    result = run(
        tmp_path,
        "contaminants.0={dataset: fictional, members: 6, nonmembers: 6}",
        f"detect.tagger={tagger}",
        ASKED,
        "analysis.min_members=2",
    )
    (stored,) = [path for path in (tmp_path / "store" / "entities").iterdir() if path.is_dir()]
    rows = read_entities(stored)
    assert len(rows) == 12
    assert any(rows.values())
    scores = pq.read_table(result.folder / "scores.parquet").to_pylist()
    by_setting = {
        row["setting"]: row["score"]
        for row in scores
        if row["detector"] == "tag_tab" and row["score"] is not None
    }
    assert "k=1:entities=one_word" in by_setting


def test_without_a_tagger_it_is_refused_by_name_and_all_is_as_before(tmp_path):
    write_tiny(tmp_path)
    with pytest.raises(InputError, match=r"tag_tab needs named entities, which are not given.*"):
        build_graph(read_experiment(tmp_path / "tiny.yaml", overrides=[ASKED]))
    graph = build_graph(
        read_experiment(tmp_path / "tiny.yaml", overrides=["detect.detectors=all"])
    ).graph
    assert "entities" not in [step.kind for step in graph.steps]


def test_a_file_of_rows_is_tagged_too(tmp_path, tiny_model_path):
    tagger = str(write_tagger(tmp_path / "tagger", GPE="Zanzibar"))
    text = "the old river bank was quiet in Zanzibar and the boats were gone"
    rows = [{"text": text}, {"text": text.replace("Zanzibar", "winter")}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "words.jsonl").write_text(json.dumps({"text": "the river was in and"}) + "\n")

    def detected(detectors, **more):
        return detect_file(
            DetectFileRequest(
                model=str(tiny_model_path),
                examples=str(tmp_path / "rows.jsonl"),
                out=tmp_path / "scores.parquet",
                frequency=str(tmp_path / "words.jsonl"),
                cache=tmp_path / "cache",
                detectors=detectors,
                **more,
            )
        )

    found = detected("tag_tab:k=1,tag_tab:k=1:entities=one_word", tagger=tagger)
    plain, plain_other, tagged, tagged_other = found.scores["score"].to_pylist()
    assert (tagged != plain, tagged_other == plain_other) == (True, True)
    assert any("finds named entities in 1 of 2 texts" in note for note in found.notes)
    record = scores_record(tmp_path / "scores.parquet")
    assert record["tagger"]["name"] == "en_patterns"
    assert len(record["tagger"]["files"]) == 64
    with pytest.raises(InputError, match="--tagger NAME"):
        detected("tag_tab:entities=one_word")
    unused = detected("loss", tagger=tagger)
    assert f"{tagger} is not used: no detector asked for needs named entities" in unused.notes
    with pytest.raises(InputError, match="no such spaCy pipeline"):
        detected("tag_tab:entities=one_word", tagger="no_such_pipeline")
