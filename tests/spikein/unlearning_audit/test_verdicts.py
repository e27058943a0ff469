"""Verdicts: each kind of model gets its own, the same in record, terminal and page."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.spikein.unlearning_audit.conftest import write_rows

NOT_WORKING = "not a working language model"


def check_verdict(audited, verdict: str) -> None:
    assert audited.record["verdict"] == verdict
    start = audited.html.index('<p class="lead">')
    lead, about = re.findall(r"<p.*?>(.*?)</p>", audited.html[start:])[:2]
    assert lead.endswith(f"Verdict: {verdict}.")
    for text in (audited.record["headline"], audited.output, about):
        assert f"{verdict.capitalize()}: " in text


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
    audited = audit(judged.original, judged.unlearned[kind])
    check_verdict(audited, verdict)
    answers = audited.answers()
    weights = {"shards": "they are the same", "random": "no", "another": "no"}.get(kind, "yes")
    assert (answers["knew"], answers["weights"]) == ("yes", weights)
    assert (answers["working"] == "no") == (verdict == NOT_WORKING)
    assert ("control is contaminated" in audited.record["headline"]) == (kind == "contaminated")
    assert audited.record["headline"].startswith("The unlearned model still writes ")


@pytest.mark.parametrize("kind", ["forgot", "honest"])
def test_clean_bill_can_be_obtained(judged, audit, kind: str):
    """By unlearning, and by a model that was honestly retrained a second time."""
    audited = audit(judged.original, judged.unlearned[kind], judged.retrained)
    check_verdict(audited, "forgotten as far as can be seen")
    assert set(audited.answers().values()) == {"yes"}


def test_model_that_lost_retained_texts_gets_no_clean_bill(judged, audit, store):
    files = [
        write_rows(store.with_name(f"{name}.jsonl"), texts)
        for name, texts in (("forget", judged.texts[:8]), ("retain", judged.texts[8:]))
    ]
    models = (judged.original, judged.unlearned["forgot"], judged.retrained)
    audited = audit(*models, texts=files[0], options=("all_chunks=true", f"retain={files[1]}"))
    check_verdict(audited, "retained texts lost")


def test_an_original_that_never_saw_the_texts_is_reported(judged, audit):
    models = [judged.retrained, judged.unlearned["forgot"], judged.unlearned["another"]]
    check_verdict(audit(*models), "the original did not know these texts")


def test_without_control_texts_open_questions_are_named(judged, audit):
    audited = audit(judged.original, judged.unlearned["forgot"], holdout=False)
    check_verdict(audited, "cannot be judged")
    for name in ("working", "knew", "level"):
        assert audited.answers()[name] == "cannot be told"
        assert np.isnan(audited.value(name))
        assert "no control texts (--control-texts" in audited.findings[name]["note"]
        assert audited.record["checks"][name]["question"] in audited.record["headline"]
    # The longest run that each model wrote is still reported.
    for model in ("unlearned", "original"):
        run = max(audited.longest(model).values())
        assert f"{run:g}" in audited.record["headline"].partition("whether")[0]
    assert {row["remembered"] for row in audited.chunks} == {None}
    # A working language model is never worse than guessing; which of the two it is remains open.
    audited = audit(judged.original, judged.unlearned["random"], holdout=False)
    check_verdict(audited, "another model")
    audited = audit(judged.original, judged.unlearned["ruined"], holdout=False)
    check_verdict(audited, "over-forgotten or not a working language model")


def losses(audited, model: str, rows: str) -> np.ndarray:
    return np.array([row[f"loss_{model}"] for row in getattr(audited, rows)])


def test_intervals_match_the_losses_on_disk(judged, audit, tiny_tokenizer):
    import torch
    from transformers import AutoModelForCausalLM

    unlearned = judged.unlearned["over-forgotten"]
    audited = audit(judged.original, unlearned)
    for name, path in (("original", judged.original), ("unlearned", unlearned)):
        model = AutoModelForCausalLM.from_pretrained(path)
        expected = []
        for text in [*judged.texts, *judged.control]:
            ids = tiny_tokenizer(text, return_tensors="pt")["input_ids"]
            with torch.inference_mode():
                expected.append(model(input_ids=ids, labels=ids).loss.item())
        stored = [*losses(audited, name, "chunks"), *losses(audited, name, "held_out")]
        assert np.allclose(stored, expected, atol=1e-4)
    before, after = (losses(audited, name, "held_out") for name in ("original", "unlearned"))
    assert np.isclose(audited.value("working"), np.mean(after - before))
    for quantity, interval in (
        ("working", stats.ttest_rel(after, before)),
        ("level", stats.ttest_ind(losses(audited, "unlearned", "chunks"), after, equal_var=False)),
        ("knew", stats.ttest_ind(losses(audited, "original", "chunks"), before, equal_var=False)),
    ):
        assert np.allclose(audited.ends(quantity), interval.confidence_interval(0.95))
    audited = audit(judged.original, unlearned, judged.retrained)
    own, retrained_losses = (losses(audited, name, "chunks") for name in ("unlearned", "retrained"))
    paired = stats.ttest_rel(own, retrained_losses).confidence_interval(0.95)
    assert np.allclose(audited.ends("level"), paired)


def test_the_cosine_covers_all_matrices(judged, audit):
    from transformers import AutoModelForCausalLM

    def matrices(path: Path) -> np.ndarray:
        model = AutoModelForCausalLM.from_pretrained(path)
        values = [value for value in model.state_dict().values() if value.dim() > 1]
        return np.concatenate([value.double().numpy().ravel() for value in values])

    first, second = matrices(judged.original), matrices(judged.unlearned["ruined"])
    audited = audit(judged.original, judged.unlearned["ruined"])
    expected = first @ second / np.sqrt((first @ first) * (second @ second))
    assert np.isclose(audited.value("weights"), expected, atol=1e-5)
