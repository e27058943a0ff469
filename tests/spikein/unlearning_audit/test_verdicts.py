"""What an audit must know first: each kind of model gets its own verdict, wherever it is read."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

from spikein.cli.main import app
from tests.pages import Page
from tests.spikein.unlearning_audit.models import Judged, make_judged

DID_NOT_KNOW = "the original did not know these texts"
NOT_WORKING = "not a working language model"


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer) -> Judged:
    return make_judged(tmp_path_factory.mktemp("judged"), tiny_tokenizer)


class Audited:
    """An audit as it is read: its files, and what the terminal said."""

    def __init__(self, folder: Path, output: str) -> None:
        self.json = json.loads((folder / "unlearning_audit.json").read_text())
        self.chunks = pq.read_table(folder / "chunks.parquet").to_pylist()
        self.continuations = pq.read_table(folder / "continuations.parquet").to_pylist()
        self.html = (folder / "audit.html").read_text()
        self.page = Page(self.html)
        self.output = " ".join(output.split())

    def losses(self, model: str, part: str) -> np.ndarray:
        return np.array([row[f"loss_{model}"] for row in self.chunks if row["part"] == part])

    def lead(self) -> str:
        start = self.html.index('<p class="lead">')
        return self.html[start : self.html.index("</p>", start)]


@pytest.fixture
def audit(judged: Judged, tmp_path: Path):
    def write(name: str, texts: list[str]) -> Path:
        path = tmp_path / name
        path.write_text("\n".join(json.dumps({"text": text}) for text in texts))
        return path

    def run(*models: Path, holdout: bool = True) -> Audited:
        out = tmp_path / f"audit-{len(list(tmp_path.iterdir()))}"
        command = ["audit-unlearning", *map(str, models), "--out", str(out)]
        command += ["--texts", str(write("texts.jsonl", judged.texts)), "--all-chunks"]
        if holdout:
            command += ["--holdout", str(write("control.jsonl", judged.control))]
        result = CliRunner().invoke(app, [*command, "--prompt-words", "30", "--samples", "2"])
        assert result.exit_code == 0, result.output
        return Audited(out, result.output)

    return run


def said_everywhere(found: Audited, verdict: str) -> None:
    assert found.json["verdict"] == verdict
    words = f"{verdict.capitalize()}: "
    for where in (found.json["headline"], found.output, found.lead()):
        assert words in where


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        ("copy", "same weights"),
        ("shards", "same weights"),
        ("random", NOT_WORKING),
        ("ruined", NOT_WORKING),
        ("another", "another model"),
        ("untouched", "still written"),
        ("over-forgotten", "over-forgotten"),
    ],
)
def test_each_kind_of_model_has_its_own_verdict(judged: Judged, audit, kind: str, verdict: str):
    found = audit(judged.original, judged.unlearned[kind])
    said_everywhere(found, verdict)
    answers = {name: check["answer"] for name, check in found.json["checks"].items()}
    assert answers["knew"] == "yes"
    assert answers["weights"] == {
        **dict.fromkeys(["copy", "shards"], "they are the same"),
        **dict.fromkeys(["random", "another"], "no"),
    }.get(kind, "yes")
    assert (answers["working"] == "no") == (verdict == NOT_WORKING)
    assert found.json["headline"].startswith("The unlearned model still writes ")


def test_a_model_that_forgot_is_told_by_the_retrained_one(judged: Judged, audit):
    found = audit(judged.original, judged.unlearned["forgot"], judged.retrained)
    said_everywhere(found, "forgotten as far as can be seen")
    assert {name: check["answer"] for name, check in found.json["checks"].items()} == {
        "working": "yes",
        "knew": "yes",
        "level": "yes",
        "weights": "yes",
    }


@pytest.mark.parametrize("retrained", [False, True])
def test_an_original_that_never_saw_the_texts(judged: Judged, audit, retrained: bool):
    models = [judged.retrained, judged.unlearned["forgot"]]
    if retrained:
        models = [*models, judged.unlearned["another"]]
    found = audit(*models)
    said_everywhere(found, DID_NOT_KNOW)


def test_without_control_texts_the_audit_says_what_it_cannot_judge(judged: Judged, audit):
    found = audit(judged.original, judged.unlearned["forgot"], holdout=False)
    said_everywhere(found, "cannot be judged")
    for name in ("working", "knew", "level"):
        check = found.json["checks"][name]
        assert check["answer"] == "cannot be told"
        assert check["value"] is None
        assert "no control texts (--holdout" in check["reason"]
        assert check["question"] in found.json["headline"]
    # What is written is said all the same: the longest run of all that the models wrote.
    runs = {
        model: max(
            row["longest_common_substring"] for row in found.continuations if row["model"] == model
        )
        for model in ("original", "unlearned")
    }
    assert f"up to {runs['unlearned']:g} true words" in found.json["headline"]
    assert f"the original {runs['original']:g}" in found.json["headline"]
    # No model of language does worse than guessing; which of the two it is remains open.
    found = audit(judged.original, judged.unlearned["random"], holdout=False)
    said_everywhere(found, "another model")
    found = audit(judged.original, judged.unlearned["ruined"], holdout=False)
    said_everywhere(found, "over-forgotten or not a working language model")


def test_intervals_are_those_of_the_losses_on_disk(judged: Judged, audit, tiny_tokenizer):
    from transformers import AutoModelForCausalLM

    found = audit(judged.original, judged.unlearned["over-forgotten"])
    for name in ("original", "unlearned"):
        path = judged.original if name == "original" else judged.unlearned["over-forgotten"]
        model = AutoModelForCausalLM.from_pretrained(path)
        losses = []
        for text in [*judged.texts, *judged.control]:
            ids = tiny_tokenizer(text, return_tensors="pt")["input_ids"]
            with torch.inference_mode():
                losses.append(model(input_ids=ids, labels=ids).loss.item())
        stored = [*found.losses(name, "audited"), *found.losses(name, "holdout")]
        assert np.allclose(stored, losses, atol=1e-4)
    checks = found.json["checks"]
    before, after = (found.losses(name, "holdout") for name in ("original", "unlearned"))
    paired = stats.ttest_rel(after, before).confidence_interval(0.95)
    assert np.isclose(checks["working"]["value"], np.mean(after - before))
    assert np.allclose([checks["working"]["low"], checks["working"]["high"]], paired)
    welch = stats.ttest_ind(found.losses("unlearned", "audited"), after, equal_var=False)
    ends = welch.confidence_interval(0.95)
    assert np.allclose([checks["level"]["low"], checks["level"]["high"]], ends)
    welch = stats.ttest_ind(found.losses("original", "audited"), before, equal_var=False)
    ends = welch.confidence_interval(0.95)
    assert np.allclose([checks["knew"]["low"], checks["knew"]["high"]], ends)
    with_retrained = audit(judged.original, judged.unlearned["over-forgotten"], judged.retrained)
    own, theirs = (with_retrained.losses(name, "audited") for name in ("unlearned", "retrained"))
    ends = stats.ttest_rel(own, theirs).confidence_interval(0.95)
    check = with_retrained.json["checks"]["level"]
    assert np.allclose([check["low"], check["high"]], ends)


def test_the_cosine_is_that_of_all_matrices(judged: Judged, audit):
    from transformers import AutoModelForCausalLM

    def matrices(path: Path) -> np.ndarray:
        model = AutoModelForCausalLM.from_pretrained(path)
        values = [value for value in model.state_dict().values() if value.dim() > 1]
        return np.concatenate([value.double().numpy().ravel() for value in values])

    one, other = matrices(judged.original), matrices(judged.unlearned["ruined"])
    found = audit(judged.original, judged.unlearned["ruined"])
    expected = one @ other / np.sqrt((one @ one) * (other @ other))
    assert np.isclose(found.json["checks"]["weights"]["value"], expected, atol=1e-5)


def test_every_table_is_there_where_nothing_was_flagged(judged: Judged, audit):
    found = audit(judged.original, judged.unlearned["forgot"])
    audited = [row for row in found.chunks if row["part"] == "audited"]
    assert not any(row["suspicious"] for row in audited)
    facts, chunks = found.page.tables
    names = [row[0].text for row in facts.rows]
    for wanted in (
        "Remembered by the unlearned model",
        "The unlearned model is a working language model",
        "The original knew the texts",
        "The texts are as likely as the control",
        "Its weights were made from the original's",
        "Flagged by the rule",
        "Flagged and not remembered",
        "Upper edge for 5 % false alarms",
    ):
        assert wanted in names
    for line in ("The original knew the texts", "no chunk beyond what the control reaches"):
        assert line in found.output
    assert len(chunks.rows) - 1 == len(audited) == 16
    assert set(chunks.column("Suspicious")) == {"no"}


def test_each_chunk_says_whether_it_is_remembered(judged: Judged, audit):
    found = audit(judged.original, judged.unlearned["untouched"])
    best: dict[int, float] = {}
    for row in found.continuations:
        if row["model"] == "unlearned":
            run = row["longest_common_substring"]
            best[row["chunk"]] = max(best.get(row["chunk"], 0), run)
    level = max(best[row["chunk"]] for row in found.chunks if row["part"] == "holdout")
    audited = [row for row in found.chunks if row["part"] == "audited"]
    for row in audited:
        assert row["remembered"] == (best[row["chunk"]] > level)
    known = sum(row["remembered"] for row in audited)
    assert known > 8
    column = found.page.tables[1].column("Remembered")
    assert column == ["yes"] * known + ["no"] * (16 - known)
    assert {row["remembered"] for row in found.chunks if row["part"] == "holdout"} == {None}
    # Without a control nobody can say, and the column says that.
    found = audit(judged.original, judged.unlearned["untouched"], holdout=False)
    assert {row["remembered"] for row in found.chunks} == {None}
    assert set(found.page.tables[1].column("Remembered")) == {"not judged"}
