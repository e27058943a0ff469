"""`spikein export` on a run whose artifacts are made by hand, without any training."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from inject.corpus.background.document import Document
from inject.corpus.build import build_corpus
from inject.corpus.corpus import Corpus
from inject.corpus.separators import separators_for
from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.examples.example import Example, example_id, write_examples
from inject.plan.make_plan import PlanSettings, make_plan
from inject.plan.plan import read_plan, write_plan
from inject.plan.settings import Copies, Placement
from inject.step import Recipe
from spikein.runs.folder import link_artifact
from spikein.runs.publication import publish_run
from spikein.store.artifact import Artifact
from spikein.store.store import Store
from tests.command_line import invoke
from tests.conftest import make_texts
from tests.inject.examples.drawing import plain_row
from tests.inject.formats.readers import read_lines, read_megatron

TOKENS, CONTEXT = 2_000, 64
PLACEMENT = Placement(policy="document")


def pool(protected: bool) -> list[Example]:
    texts = make_texts(8, seed=9, words=12)
    return [
        plain_row(
            example_id(text),
            text=text,
            side="member" if number < 4 else "nonmember",
            protected=protected,
        )
        for number, text in enumerate(texts)
    ]


class Run:
    """A run of two arms that share corpus and examples, linked like a real one."""

    def __init__(self, root: Path, tokenizer_path: Path, *, protected: bool = False) -> None:
        self._store = Store(root / "store")
        self._tokenizer = load_tokenizer(str(tokenizer_path))
        self._pool = pool(protected)
        self.corpus = self._obtain("corpus", "texts", self._corpus)
        examples = self._obtain("examples", "toy", lambda out: write_examples(out, self._pool))
        self.plans: dict[str, Artifact] = {}
        linked = [self.corpus, examples]
        for arm, copies in (("copies fixed=1, seed 0", 1), ("copies fixed=3, seed 0", 3)):
            inputs = {"corpus": self.corpus.digest, "examples": examples.digest}
            plan = self._obtain("plan", arm, self._plan(copies), inputs)
            audit = self._obtain("audit", arm, lambda out: (out / "audit.json").touch())
            model = self._obtain(
                "model",
                arm,
                lambda out: (out / "model").touch(),
                {**inputs, "plan": plan.digest, "audit": audit.digest},
            )
            self.plans[arm] = plan
            linked += [plan, audit, model]
        linked.append(self._obtain("model", "base", lambda out: (out / "model").touch()))

        def fill(folder: Path) -> None:
            for artifact in linked:
                link_artifact(folder, artifact)

        self.folder = publish_run(root / "runs", "first", fill).folder

    def _obtain(self, kind, label, build, inputs=None) -> Artifact:
        recipe = Recipe(
            kind=kind, function="made:build", settings={"label": label}, inputs=inputs or {}
        )
        return self._store.obtain(recipe, build, label=label).artifact

    def _corpus(self, out: Path) -> None:
        documents = (Document(text, "here") for text in make_texts(200, seed=1))
        build_corpus(out, documents=documents, tokenizer=self._tokenizer, tokens=TOKENS)

    def _plan(self, copies: int):
        def build(out: Path) -> None:
            corpus = Corpus.open(self.corpus.path)
            encoded = encode_texts(self._tokenizer, [example.text for example in self._pool])
            plan = make_plan(
                self._pool,
                {example.example_id: ids for example, ids in zip(self._pool, encoded, strict=True)},
                PlanSettings(
                    copies=Copies(fixed=copies),
                    placement=PLACEMENT,
                    budget=TOKENS,
                    context=CONTEXT,
                    seed=0,
                ),
                source=corpus,
                separators=separators_for(PLACEMENT.separation, self._tokenizer),
                vocabulary=corpus.facts.vocabulary,
            )
            write_plan(out, plan)

        return build

    def stream(self, arm: str | None) -> list[int]:
        corpus = Corpus.open(self.corpus.path)
        if arm is None:
            return corpus.read(0, TOKENS).tolist()
        return read_plan(self.plans[arm].path).view(corpus).read(0, TOKENS).tolist()


@pytest.fixture
def run(tmp_path, monkeypatch, tiny_model_path):
    monkeypatch.chdir(tmp_path)
    return Run(tmp_path, tiny_model_path)


def test_an_arm_is_exported_with_its_copies(run, tmp_path):
    for arm, copies in zip(run.plans, (4, 12), strict=True):
        out = tmp_path / str(copies)
        result = invoke(
            "export", "first", "--format", "megatron", "--arm", arm, "--out", out, code=0
        )
        assert f"{copies} copies" in result.stdout
        assert result.stdout.strip().endswith(f"Export: {out}")
        stream = run.stream(arm)
        assert read_megatron(out / "tokens").stream == stream
        table = pq.read_table(out / "copies.parquet").to_pylist()
        texts = {example.example_id: example.text for example in pool(False)}
        tokenizer = load_tokenizer(str(out / "tokenizer"))
        assert len(table) == copies
        for row in table:
            assert row["variant"] == "whole"
            tokens = stream[row["start"] : row["stop"]]
            assert tokens == encode_texts(tokenizer, [texts[row["example_id"]]])[0].tolist()


def test_the_shared_clean_twin_needs_no_arm(run, tmp_path):
    result = invoke(
        "export", run.folder, "--format", "olmo", "--clean", "--out", tmp_path / "a", code=0
    )
    tokens = np.fromfile(tmp_path / "a" / "tokens.npy", dtype="<u2")
    assert tokens.tolist() == run.stream(None)
    assert "0 copies" in result.stdout


def test_windows_and_texts_report_losses(run, tmp_path):
    arm = next(iter(run.plans))
    windows = invoke(
        *("export", "first", "--format", "datasets", "--rows", "windows", "--arm", arm),
        *("--out", tmp_path / "a"),
        code=0,
    )
    assert f"{TOKENS // CONTEXT * CONTEXT:,} tokens" in windows.stdout
    text = invoke("export", "first", "--format", "jsonl", "--arm", arm, "--out", tmp_path / "b")
    lines = read_lines(tmp_path / "b" / "documents.jsonl")
    changed = sum(not line.get("same_tokens", True) for line in lines)
    assert ("does not tokenize to the same tokens" in text.stderr) == bool(changed)


def test_export_without_a_chosen_arm_lists_them(run, tmp_path):
    call = ("export", "first", "--format", "olmo", "--out", tmp_path / "out")
    result = invoke(*call, code=2)
    assert "choose one by --arm" in result.stderr
    assert all(arm in result.stderr for arm in run.plans)
    wrong = invoke(*call, "--arm", "copies fixed=2, seed 0", code=2)
    assert "Did you mean 'copies fixed=" in wrong.stderr
    assert not (tmp_path / "out").exists()


def test_protected_texts_need_a_flag(tmp_path, monkeypatch, tiny_model_path):
    monkeypatch.chdir(tmp_path)
    arm = next(iter(Run(tmp_path, tiny_model_path, protected=True).plans))
    call = ["export", "first", "--format", "jsonl", "--arm", arm, "--out", tmp_path / "out"]
    refused = invoke(*call, code=2)
    assert "--show-protected" in refused.stderr
    assert not (tmp_path / "out").exists()
    assert "do not share them" in invoke(*call, "--show-protected").stderr
    invoke(*call[:-1], tmp_path / "clean", "--clean", code=0)


def test_a_full_disk_is_reported(run, tmp_path, monkeypatch):
    import errno

    from inject.formats import export as export_module

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(export_module, "write_tokens", full)
    result = invoke(
        "export", "first", "--format", "olmo", "--clean", "--out", tmp_path / "out", code=2
    )
    assert "the disk is full" in result.stderr
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]
