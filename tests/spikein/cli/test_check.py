"""`spikein check`: files that extend others, names, and the notes printed with the verdict."""

import copy
import gzip
import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from tokenizers import AddedToken

from inject.errors import InputError, InputErrors
from spikein.executors.protocol import StepsFailed
from tests.command_line import invoke
from tests.conftest import make_texts
from tests.spikein.tiny import run, stored, write_tiny
from tests.train.models.gguf_files import write_gguf


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def check(*arguments: str):
    result = invoke("check", *arguments)
    return result.exit_code, " ".join(result.output.split())


def test_a_file_that_extends_another_is_checked_as_a_whole(tmp_path):
    write_tiny(tmp_path)
    Path("sub").mkdir()
    Path("sub/child.yaml").write_text("extends: ../tiny.yaml\nseeds: [0, 1]\n")
    code, output = check("sub/child.yaml")
    assert code == 0
    assert output.startswith("sub/child.yaml: nothing wrong was found; 2 arms, ")
    text = Path("tiny.yaml").read_text().replace("members: 24, non", "members: none, non")
    Path("tiny.yaml").write_text(text)
    line = 1 + text[: text.index("members: none")].count("\n")
    code, output = check("sub/child.yaml", "train.lr=0")
    assert code == 2
    assert f"sub/../tiny.yaml:{line}: contaminants.0.members: is the text 'none'" in output
    assert "override train.lr=0: train.lr: is the number 0" in output


DESIGN = (
    "arms={a: {}, b: {corpus.tokens: 60_000}, c: {train.batch_tokens: 2048}, "
    "d: {corpus.tokens: 60_000, placement.between: [0, 0.5]}}"
)


def test_design_of_arms_is_printed(tmp_path):
    write_tiny(tmp_path)
    code, output = check("tiny.yaml", DESIGN, "pool.long_examples=truncate")
    assert code == 0, output
    assert output.startswith("arm tokens batch_tokens between steps batch tail share ")
    assert " c 40,000 2,048 0-1 20 2,048 0 7." in output
    # 937 windows of 64 tokens, copies in the first 468.
    assert " d 60,000 1,024 0-0.5 59 1,024 30,016 5." in output
    assert "the axes 4 of 4 corpus.tokens 2.0, train.batch_tokens 1.5, placement.between" in output
    # Without claims a share has no limit.
    assert "Copies are more than" not in output
    aliased = "arms={a: {}, b: {train.epochs: 2, train.lr: 0.02}}"
    code, output = check("tiny.yaml", aliased)
    assert code == 0, output
    assert "the axes 2 of 3 train.epochs infinite, train.lr infinite" in output
    assert "Note: the axes: train.lr is a combination of train.epochs; their effects" in output


def test_unread_files_are_named(tmp_path):
    write_tiny(tmp_path)
    Path("background").mkdir()
    Path("texts.jsonl").rename("background/texts.jsonl")
    Path("background/more.warc.xz").touch()
    options = ("tiny.yaml", "corpus.sources=[{kind: files, path: background}]")
    code, output = check(*options)
    assert code == 0
    assert "corpus.sources: 1 of the files have an unknown format and are not read:" in output
    assert "background/more.warc.xz." in output
    Path("background/more.warc.xz").unlink()
    assert "unknown format" not in check(*options)[1]


def check_refused(message: str, *overrides: str) -> None:
    """Check that the tiny experiment is refused with a message."""
    code, output = check("tiny.yaml", *overrides)
    assert code == 2, output
    assert message in output


def documents(*texts: str) -> bytes:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


def test_check_and_run_refuse_an_unreadable_background_alike(tmp_path):
    write_tiny(tmp_path)
    utf_16 = documents("caf\u00e9 ").decode().encode("utf-16")
    for content, name, message in (
        (b"", "empty.jsonl", "empty.jsonl: background: the file contains no rows"),
        (utf_16, "utf-16.jsonl", "utf-16.jsonl"),
        (gzip.compress(documents("a river " * 40_000))[:-30], "cut.jsonl.gz", "cut.jsonl.gz"),
    ):
        Path(name).write_bytes(content)
        source = f"corpus.sources=[{{kind: files, path: {tmp_path / name}}}]"
        check_refused(message, source)
        with pytest.raises((InputError, StepsFailed)) as caught:
            run(tmp_path, source)
        assert message in " ".join(str(caught.value).split())


def test_a_background_that_is_too_small_is_refused_and_a_large_one_is_not(tmp_path):
    write_tiny(tmp_path)
    code, output = check("tiny.yaml", "corpus.tokens=9_000_000")
    assert code == 2
    assert "the background has at most" in output
    assert "in 900 documents, fewer than the 9,004,000 requested" in output
    assert check("tiny.yaml")[0] == 0
    # A background of the examples is empty once they are dropped, which only a run detects.
    rows = [{"id": str(at), "text": text} for at, text in enumerate(make_texts(60, words=50))]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("texts.jsonl").write_bytes(documents(*(row["text"] for row in rows)))
    dataset = f"{{dataset: rows, name: own, path: {tmp_path}/rows.jsonl, template: '{{text}}'"
    check_refused(
        "the background has 0 tokens in 0 documents, fewer than the 44,000 requested",
        f"contaminants=[{dataset}, members: 24, nonmembers: 24}}]",
    )


EARLY = {
    "documents": (
        "copies fit between no two documents",
        "placement={policy: document, straddle: forbid}",
        "copies={fixed: 10}",
        "pool.long_examples=truncate",
        "train.context=128",
    ),
    "windows": (
        "no window with room was found for",
        "placement={policy: window, between: [0.5, 1]}",
        "copies={fixed: 3}",
        "contaminants=[{dataset: fictional, members: 23, nonmembers: 23, options: {forms: "
        "[question]}}]",
        "pool.long_examples=truncate",
        "train={context: 300, batch_tokens: 1200}",
    ),
    "model": ("nosuch/folder", "model={pretrained: nosuch/folder}", "base=null"),
    "pool": ("usable rows in", "pool.min_tokens=290"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", EARLY)
def test_refusals_of_first_steps_come_before_a_run(tmp_path, case):
    path = write_tiny(tmp_path)
    shape = path.parent / "shape.yaml"
    shape.write_text(shape.read_text().replace("context: 128", "context: 512"))
    message, *overrides = EARLY[case]
    check_refused(message, *overrides)
    planned = invoke("plan", "tiny.yaml", "--no-time-training", *overrides)
    # Without a network a plan names what it could not look up.
    assert planned.exit_code == (0 if case == "model" else 2)
    assert message in " ".join(planned.output.split())
    with pytest.raises((InputError, StepsFailed)) as caught:
        run(tmp_path, *overrides)
    assert message in " ".join(str(caught.value).split())


def test_store_that_cannot_be_written_is_refused(tmp_path):
    write_tiny(tmp_path)
    for command in (["check"], ["plan", "--no-time-training"]):
        done = invoke(*command, "tiny.yaml", "--store", "/proc/store", code=2)
        assert "/proc/store: cannot be written" in done.output
    assert check("tiny.yaml", "--store", "new/store")[0] == 0
    assert not Path("new").exists()


def test_missing_devices_and_libraries_are_refused(tmp_path, monkeypatch):
    write_tiny(tmp_path)
    check_refused("'cuda:63' is not a device that can be used here", "detect.device=cuda:63")
    # On a cluster another machine scores.
    code, _ = check("tiny.yaml", "detect.device=cuda:63", "executor={kind: slurm}")
    assert code == 0
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "trackio" else find_spec(name)
    )
    check_refused("the tracker trackio is not installed", "training_runtime.trackers=[trackio]")


def test_a_model_and_a_tokenizer_that_do_not_fit_are_refused(
    tmp_path, tiny_model_path, tiny_tokenizer
):
    write_tiny(tmp_path)
    model = Path(shutil.copytree(tiny_model_path, tmp_path / "model"))
    pretrained = ("base=null", "train.context=64", "detect.detectors=[loss, blind]")
    larger = copy.deepcopy(tiny_tokenizer)
    larger.add_tokens([f"zqx{at}" for at in range(200)])
    larger.save_pretrained(tmp_path / "larger")
    message = "the tokenizer makes ids up to 586, and the model's embedding has 512 rows"
    named = f"model={{pretrained: {model}, tokenizer: {tmp_path}/larger}}"
    check_refused(message, named, *pretrained)
    for file in model.glob("tokenizer*"):
        file.unlink()
    check_refused("has no tokenizer", f"model={{pretrained: {model}}}", *pretrained)
    check_refused("its tokenizer cannot be loaded", f"detect.reference={model}")


BAD_INPUT = {
    "context of the base": (
        "base.context: a context of 256 is more than the model's 128 positions",
        "base={tokens: 4_000, context: 256}",
    ),
    "windows of processes": (
        "training_runtime.processes: 8 windows of a step cannot be divided evenly among 3 "
        "processes. Allowed: 1, 2, 4, 8",
        "training_runtime={engine: torchrun, processes: 3}",
        "train.batch_tokens=512",
    ),
    "compiler": (
        "no-such-compiler is missing",
        "training_runtime={engine: deepspeed, processes: 2}",
    ),
    "end token": (
        "the tokenizer makes ids up to 512, and the model's embedding has 512 rows",
        "model={pretrained: model}",
        "base=null",
        "detect.detectors=[loss, blind]",
    ),
    "truncated": (
        "it ends before its last tensor",
        "model={pretrained: bad.gguf}",
        "base=null",
    ),
}
"""One case for each check; the tests of the checks have the others."""


def prepare_bad_input(case: str, model: Path, tokenizer, monkeypatch) -> None:
    """Make the files of a case of `BAD_INPUT` in the working directory, and break this machine."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    monkeypatch.setenv("SPIKEIN_CACHE", "cache")
    monkeypatch.setenv("CXX", "no-such-compiler")
    if case == "truncated":
        content = write_gguf(Path("bad.gguf"), tokenizer).read_bytes()
        Path("bad.gguf").write_bytes(content[:-100])
    elif case == "end token":
        shutil.copytree(model, "model")
        longer = copy.deepcopy(tokenizer)
        longer.add_tokens([AddedToken(f"<{at}>", special=True) for at in range(len(longer), 513)])
        longer.eos_token = "<512>"
        longer.save_pretrained("model")


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_refused_before_the_first_step(
    tmp_path, monkeypatch, tiny_model_path, tiny_tokenizer, case
):
    write_tiny(tmp_path)
    prepare_bad_input(case, tiny_model_path, tiny_tokenizer, monkeypatch)
    message, *overrides = BAD_INPUT[case]
    check_refused(message, *overrides)
    planned = invoke("plan", "tiny.yaml", "--no-time-training", *overrides)
    # A plan is often of another machine's run, so it looks for no compiler.
    assert planned.exit_code == (0 if case == "compiler" else 2), planned.output
    with pytest.raises((InputError, InputErrors, StepsFailed)) as caught:
        run(tmp_path, *overrides)
    assert message in " ".join(str(caught.value).split())
    assert stored(tmp_path, "*") == []
