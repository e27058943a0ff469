"""What an audit must know first: each kind of model gets its own verdict, wherever it is read."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.spikein.unlearning_audit.conftest import write_rows

NOT_WORKING = "not a working language model"


def said_everywhere(found, verdict: str) -> None:
    assert found.record["verdict"] == verdict
    start = found.html.index('<p class="lead">')
    lead, about = re.findall(r"<p.*?>(.*?)</p>", found.html[start:])[:2]
    assert lead.endswith(f"Verdict: {verdict}.")
    for where in (found.record["headline"], found.output, about):
        assert f"{verdict.capitalize()}: " in where


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        ("shards", "same weights"),
        ("random", NOT_WORKING),
        ("another", "another model"),
        ("untouched", "still written"),
        ("over-forgotten", "over-forgotten"),
        ("contaminated", "cannot be judged"),
    ],
)
def test_each_kind_of_model_has_its_own_verdict(judged, audit, kind: str, verdict: str):
    found = audit(judged.original, judged.unlearned[kind])
    said_everywhere(found, verdict)
    answers = found.answers()
    weights = {"shards": "they are the same", "random": "no", "another": "no"}.get(kind, "yes")
    assert (answers["knew"], answers["weights"]) == ("yes", weights)
    assert (answers["working"] == "no") == (verdict == NOT_WORKING)
    assert ("control is contaminated" in found.record["headline"]) == (kind == "contaminated")
    assert found.record["headline"].startswith("The unlearned model still writes ")


@pytest.mark.parametrize("kind", ["forgot", "honest"])
def test_clean_bill_can_be_obtained(judged, audit, kind: str):
    """By unlearning, and by a model that was honestly retrained a second time."""
    found = audit(judged.original, judged.unlearned[kind], judged.retrained)
    said_everywhere(found, "forgotten as far as can be seen")
    assert set(found.answers().values()) == {"yes"}


def test_model_that_lost_retained_texts_gets_no_clean_bill(judged, audit, store):
    files = [
        write_rows(store.with_name(f"{name}.jsonl"), texts)
        for name, texts in (("forget", judged.texts[:8]), ("retain", judged.texts[8:]))
    ]
    models = (judged.original, judged.unlearned["forgot"], judged.retrained)
    found = audit(*models, texts=files[0], options=("all_chunks=true", f"retain={files[1]}"))
    said_everywhere(found, "retained texts lost")


def test_an_original_that_never_saw_the_texts(judged, audit):
    models = [judged.retrained, judged.unlearned["forgot"], judged.unlearned["another"]]
    said_everywhere(audit(*models), "the original did not know these texts")


def test_without_control_texts_the_audit_says_what_it_cannot_judge(judged, audit):
    found = audit(judged.original, judged.unlearned["forgot"], holdout=False)
    said_everywhere(found, "cannot be judged")
    for name in ("working", "knew", "level"):
        assert found.answers()[name] == "cannot be told"
        assert np.isnan(found.value(name))
        assert "no control texts (--control-texts" in found.findings[name]["note"]
        assert found.record["checks"][name]["question"] in found.record["headline"]
    # What is written is said all the same: the longest run of all that the models wrote.
    for model in ("unlearned", "original"):
        run = max(found.longest(model).values())
        assert f"{run:g}" in found.record["headline"].partition("whether")[0]
    assert {row["remembered"] for row in found.chunks} == {None}
    # No model of language does worse than guessing; which of the two it is remains open.
    found = audit(judged.original, judged.unlearned["random"], holdout=False)
    said_everywhere(found, "another model")
    found = audit(judged.original, judged.unlearned["ruined"], holdout=False)
    said_everywhere(found, "over-forgotten or not a working language model")


def losses(found, model: str, rows: str) -> np.ndarray:
    return np.array([row[f"loss_{model}"] for row in getattr(found, rows)])


def test_intervals_are_those_of_the_losses_on_disk(judged, audit, tiny_tokenizer):
    import torch
    from transformers import AutoModelForCausalLM

    unlearned = judged.unlearned["over-forgotten"]
    found = audit(judged.original, unlearned)
    for name, path in (("original", judged.original), ("unlearned", unlearned)):
        model = AutoModelForCausalLM.from_pretrained(path)
        expected = []
        for text in [*judged.texts, *judged.control]:
            ids = tiny_tokenizer(text, return_tensors="pt")["input_ids"]
            with torch.inference_mode():
                expected.append(model(input_ids=ids, labels=ids).loss.item())
        stored = [*losses(found, name, "chunks"), *losses(found, name, "held_out")]
        assert np.allclose(stored, expected, atol=1e-4)
    before, after = (losses(found, name, "held_out") for name in ("original", "unlearned"))
    assert np.isclose(found.value("working"), np.mean(after - before))
    for quantity, interval in (
        ("working", stats.ttest_rel(after, before)),
        ("level", stats.ttest_ind(losses(found, "unlearned", "chunks"), after, equal_var=False)),
        ("knew", stats.ttest_ind(losses(found, "original", "chunks"), before, equal_var=False)),
    ):
        assert np.allclose(found.ends(quantity), interval.confidence_interval(0.95))
    found = audit(judged.original, unlearned, judged.retrained)
    own, theirs = (losses(found, name, "chunks") for name in ("unlearned", "retrained"))
    paired = stats.ttest_rel(own, theirs).confidence_interval(0.95)
    assert np.allclose(found.ends("level"), paired)


def test_the_cosine_is_that_of_all_matrices(judged, audit):
    from transformers import AutoModelForCausalLM

    def matrices(path: Path) -> np.ndarray:
        model = AutoModelForCausalLM.from_pretrained(path)
        values = [value for value in model.state_dict().values() if value.dim() > 1]
        return np.concatenate([value.double().numpy().ravel() for value in values])

    first, second = matrices(judged.original), matrices(judged.unlearned["ruined"])
    found = audit(judged.original, judged.unlearned["ruined"])
    expected = first @ second / np.sqrt((first @ first) * (second @ second))
    assert np.isclose(found.value("weights"), expected, atol=1e-5)
