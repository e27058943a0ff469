"""Steps read exactly the files that they were named by, or refuse: edited, copied, moved files."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from detect.engine.open_target import open_target
from detect.settings import DetectSettings
from detect.target_identity import target_execution
from inject.corpus.corpus import Corpus
from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.formats.export import ExportSettings, export_view
from inject.step import Step, StepContext
from inject.stream.audit_report import read_audit
from inject.stream.view import clean_view
from spikein.runs.streams import open_run_corpus
from spikein.store.store import Artifact
from tests.spikein.tiny import build, graph_of, stored, write_tiny
from train.execution import ExecutionSettings
from train.job import TrainingJob, _model
from train.models.model_node import GivenModel, pretrained_node
from train.models.shapes import Shape, build_model
from train.settings import TrainSettings

FAST = ("train.mode=pretrain", "base=null", "corpus.tokens=12000", "detect.detectors=[loss]")


def made(folder: Path, step: Step) -> Artifact:
    return build(folder, step)[0]


def edited(file: Path, old: bytes, new: bytes) -> None:
    """Change a file at equal length, and set its time back."""
    before, content = file.stat(), file.read_bytes()
    assert old in content
    assert len(old) == len(new)
    with file.open("r+b") as handle:
        handle.write(content.replace(old, new))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The tiny experiment with its own rows, in files old enough for their digests to be cached."""
    monkeypatch.setenv("SPIKEIN_CACHE", str(tmp_path / "cache"))
    path = write_tiny(tmp_path)
    rows = [
        {"text": f"The mayor of town{n} drinks tea number{n} with {n} guests on a wet morning."}
        for n in range(80)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path.write_text(
        path.read_text().replace(
            "{dataset: fictional, members: 24, nonmembers: 24}",
            f"{{dataset: rows, path: {tmp_path}/rows.jsonl, members: 24, nonmembers: 24}}",
        )
    )
    for file in tmp_path.iterdir():
        os.utime(file, (1.6e9, 1.6e9))
    return tmp_path


def test_rows_edited_between_two_seeds_are_refused_and_the_file_is_named(tiny):
    first, second = graph_of(tiny, "seeds=[0, 1]", *FAST).nodes
    made(tiny, first.examples)
    edited(tiny / "rows.jsonl", b"drinks tea", b"spills tea")
    with pytest.raises(InputError, match=r"rows\.jsonl changed after it was hashed"):
        made(tiny, second.examples)
    assert len(list((tiny / "store" / "examples").glob("*-????????????"))) == 1


def test_background_edited_before_it_is_read_is_refused(tiny):
    [node] = graph_of(tiny, *FAST).nodes
    made(tiny, node.tokenizer)
    word = json.loads((tiny / "texts.jsonl").read_text().splitlines()[0])["text"].split()[0]
    edited(tiny / "texts.jsonl", word.encode(), b"x" * len(word))
    with pytest.raises(InputError, match=r"corpus\.sources: texts\.jsonl changed"):
        made(tiny, node.corpus)
    assert not stored(tiny, "corpus")


def test_background_that_appears_while_the_run_waits_is_refused(tiny):
    (tiny / "texts").mkdir()
    shutil.move(tiny / "texts.jsonl", tiny / "texts" / "a.jsonl")
    path = tiny / "tiny.yaml"
    path.write_text(path.read_text().replace("/texts.jsonl", "/texts"))
    [node] = graph_of(tiny, *FAST).nodes
    shutil.copy(tiny / "rows.jsonl", tiny / "texts" / "b.jsonl")
    with pytest.raises(InputError, match=r"b\.jsonl appeared"):
        made(tiny, node.tokenizer)


def test_docstrings_edited_before_they_are_read_are_refused(tiny, monkeypatch):
    package = tiny / "site" / "talkative"
    package.mkdir(parents=True)
    source = "".join(
        f'def f{n}():\n    """{"Number " + str(n) + " of many sentences " * 9}."""\n'
        for n in range(300)
    )
    (package / "__init__.py").write_text(source)
    monkeypatch.syspath_prepend(tiny / "site")
    path = tiny / "tiny.yaml"
    path.write_text(
        path.read_text().replace(
            f'{{kind: files, path: "{tiny}/texts.jsonl"}}',
            "{kind: docstrings, packages: [talkative]}",
        )
    )
    [node] = graph_of(tiny, *FAST).nodes
    edited(package / "__init__.py", b"many sentences", b"some sentences")
    with pytest.raises(InputError, match=r"corpus\.sources: .*after it was hashed"):
        made(tiny, node.tokenizer)


def test_texts_of_frequencies_edited_before_they_are_counted_are_refused(tiny):
    shutil.copy(tiny / "texts.jsonl", tiny / "counted.jsonl")
    [node] = graph_of(
        tiny, *FAST, "detect.detectors=[dc_pdd]", f"detect.frequency={tiny}/counted.jsonl"
    ).nodes
    counted = node.scores.inputs["frequency"]
    made(tiny, node.corpus)
    edited(tiny / "counted.jsonl", b'"text"', b'"body"')
    with pytest.raises(InputError, match=r"counted\.jsonl changed"):
        made(tiny, counted)


def test_a_tokenizer_edited_before_it_is_copied_is_refused(tiny):
    [node] = graph_of(tiny, *FAST).nodes
    shutil.copytree(made(tiny, node.tokenizer).path, tiny / "tok")
    for file in (tiny / "tok").iterdir():
        file.chmod(0o644)
    [node] = graph_of(tiny, *FAST, f"model.tokenizer={tiny}/tok").nodes
    (tiny / "tok" / "added_tokens.json").write_text('{"<extra>": 299}')
    with pytest.raises(InputError, match=r"added_tokens\.json appeared"):
        made(tiny, node.tokenizer)


@pytest.fixture
def imports(tiny):
    """The corpus of the tiny experiment, exported to `a` and imported from there."""
    [node] = graph_of(tiny, *FAST).nodes
    corpus = Corpus.open(made(tiny, node.corpus).path)
    tokenizer = load_tokenizer(str(corpus.path / "tokenizer"))
    view = clean_view(corpus, tokens=corpus.n_tokens, context=64)
    export_view(view, tiny / "a", ExportSettings(format="megatron"), tokenizer=tokenizer)
    tokenizer.save_pretrained(tiny / "tok")
    path = tiny / "tiny.yaml"
    text = path.read_text()
    sources = text[text.index("  sources:") : text.index("contaminants:")]
    text = text.replace(sources, f"  imported: {{kind: megatron, path: {tiny}/a}}\n")
    path.write_text(text.replace("{vocab_size: 300}", f"{tiny}/tok"))
    shutil.rmtree(tiny / "store")
    return tiny


def spoiled(imports: Path, examples: Artifact) -> int:
    """Write a non-member five times over the tokens of `a`; return the number of copies."""
    [file] = (imports / "a").glob("*.bin")
    tokenizer = load_tokenizer(str(imports / "tok"))
    text = next(row.text for row in read_examples(examples.path) if row.side == "nonmember")
    [ids] = encode_texts(tokenizer, [text])
    tokens = np.fromfile(file, dtype="<u2")
    for at in range(1000, 11_000, 2000):
        tokens[at : at + len(ids)] = ids
    with file.open("r+b") as handle:
        handle.write(tokens.tobytes())
    return 5


def occurrences(corpus: Corpus, imports: Path, text: str) -> int:
    [ids] = encode_texts(load_tokenizer(str(imports / "tok")), [text])
    stream = corpus.read(0, corpus.n_tokens)
    windows = np.lib.stride_tricks.sliding_window_view(stream, len(ids))
    return int((windows == ids).all(axis=1).sum())


def test_an_import_is_read_from_its_current_path(imports):
    """Import from A, edit A, then name the unedited copy B: the store must read B."""
    [node] = graph_of(imports, *FAST).nodes
    made(imports, node.audit)
    examples = made(imports, node.examples)
    shutil.copytree(imports / "a", imports / "b")
    spoiled(imports, examples)
    [node] = graph_of(imports, *FAST, f"corpus.imported.path={imports}/b", "train.lr=0.02").nodes
    made(imports, node.trained)
    clean = read_audit(made(imports, node.audit).path)
    assert clean.passed
    corpus = Corpus.open(
        made(imports, node.corpus).path, outside=[next((imports / "b").glob("*.bin"))]
    )
    withheld = [row.text for row in read_examples(examples.path) if row.side == "nonmember"]
    assert sum(occurrences(corpus, imports, text) for text in withheld) == 0


def test_an_import_edited_in_place_is_another_corpus_or_refused(imports):
    [node] = graph_of(imports, *FAST).nodes
    made(imports, node.plan)
    spoiled(imports, made(imports, node.examples))
    # The graph named before the edit trains only on the files that it was named by.
    with pytest.raises(InputError, match=r"\.bin: the token file is not the one"):
        made(imports, node.trained)
    assert not stored(imports, "model")
    [after] = graph_of(imports, *FAST, "train.lr=0.02").nodes
    assert after.corpus.digest != node.corpus.digest


def test_moved_imports_are_found_by_the_graph_and_by_commands_on_the_run(imports):
    [node] = graph_of(imports, *FAST).nodes
    stored = made(imports, node.corpus)
    (imports / "a").rename(imports / "moved")
    path = imports / "tiny.yaml"
    path.write_text(path.read_text().replace(f"{imports}/a", f"{imports}/moved"))
    [moved] = graph_of(imports, *FAST).nodes
    assert moved.corpus.digest == node.corpus.digest
    made(imports, moved.trained)
    assert len(list((imports / "store" / "corpus").iterdir())) == 1
    run = imports / "runs" / "tiny" / "latest"
    run.mkdir(parents=True)
    shutil.copy(path, run / "experiment.yaml")
    assert open_run_corpus(run, stored.path).read(0, 5).shape == (5,)


def test_a_pretrained_model_edited_before_it_is_loaded_is_refused(tmp_path, tiny_tokenizer):
    folder = tmp_path / "model"
    shape = Shape(architecture="llama", hidden=16, layers=1, heads=2, intermediate=32, context=64)
    build_model(shape, len(tiny_tokenizer), 0, 1).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    node = pretrained_node(str(folder))
    context = StepContext(
        out=tmp_path,
        inputs={},
        settings={},
        execution=target_execution(node, DetectSettings(device="cpu")),
        unfinished=tmp_path,
        report=lambda *_, **__: None,
    )
    open_target(context)
    # Only bytes of weights change, so the file can still be loaded.
    weights = folder / "model.safetensors"
    edited(weights, weights.read_bytes()[-64:], bytes(64))
    with pytest.raises(InputError, match=r"model\.safetensors changed after it was hashed"):
        open_target(context)
    job = TrainingJob(
        out=str(tmp_path),
        unfinished=str(tmp_path),
        identity="x",
        corpus=str(tmp_path),
        start=GivenModel(
            path=str(folder), pretrained=str(folder), identity=dict(node.identity or {})
        ),
        train=TrainSettings(),
        execution=ExecutionSettings(),
        seed=0,
    )
    with pytest.raises(InputError, match=r"model\.safetensors changed after it was hashed"):
        _model(job, clean=None)
