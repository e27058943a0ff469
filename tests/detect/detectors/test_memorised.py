"""All kinds of detectors on a model that has memorised its members, and on its base model."""

from copy import deepcopy

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from detect.detector_settings import needs_of, parse_detectors
from detect.engine.forward_pass import token_statistics
from detect.engine.gradients import gradient_norms
from detect.engine.masked_model import make_masked_model
from detect.engine.target import make_target
from detect.engine.tuning import train_adapter, with_adapter
from detect.evidence import Evidence, HeldOutRows, PrefixedStatistics
from detect.evidence.continuations import Continuations
from detect.evidence.entities import Entities, NamedEntity
from detect.evidence.guesses import Guesses
from detect.evidence.held_out import Tuned
from detect.evidence.prefixed import Prefixed
from detect.evidence.shots import choose_shots, statistics_behind
from detect.evidence.token_counts import count_texts
from detect.generation.continuations import continue_texts
from detect.generation.guesses import guess, mask_text
from detect.generation.neighbour_proposals import find_neighbours, neighbour_means
from detect.generation.word_statistics import causal_words
from detect.scoring import score_rows
from detect.settings import ScoringPolicy
from detect.targets.local import LocalTextModel
from detect.views import SWAPPED, view_text
from tests.conftest import make_texts
from tests.detect.masked_models import tiny_masked_parts

POLICY = ScoringPolicy(inverse_temperatures=(0.5, 2.0))
CDD = "cdd:samples=10:temperature=1:top_k=50"
"""With the samples of `samia` instead of fifty separate ones."""
PROBE = "info_probe:prompt=plain:candidates=words"
LEAST_AUC = {
    0.95: (
        "pd", "pac", "grad_norm", "grad_norm:of=tensors", "grad_norm:of=embeddings:p=1",
        "neighbour", "wbc", "ez_mia", "ez_mia:skip_first=true", "gap_k", "min_k:window=3",
        "min_k_plus_plus:window=3", "acmia", "acmia:form=derivative",
        "acmia:form=contrast:beta=0.5", "acmia:form=contrast:beta=2", "acmia:beta=2", "tag_tab",
        "tag_tab:tokens=first", "tag_tab:k=1:entities=one_word", "prefix", "prefix:measure=exact",
        "prefix:beginning=tokens:amount=12:measure=correct", "samia", "samia:zlib=true", CDD,
        "ngram_coverage",
    ),
    0.9: (
        "recall:shots=2", "con_recall:shots=1", "codec:draws=2:skip=4", "fsd", "camia",
        f"{PROBE}:log_probability=-3.5", f"{PROBE}:select=rank:rank=12",
        f"{PROBE}:log_probability=-3.5:measure=share",
        f"{PROBE}:log_probability=-3.5:measure=decision", "ts_slot:prompt=plain",
    ),
}  # fmt: skip
SETTINGS = [(text, least) for least, texts in LEAST_AUC.items() for text in texts]
OTHERS = ("ez_mia:empty=zero",)


def evidence_of(target, memorised, folder, needs):
    """All that the detectors read of one model; the first member is known and is not scored."""
    held_out = make_texts(24, seed=501, words=24)
    first_member, *texts = memorised.texts
    datasets = ["one"] * len(texts)
    prefixed = {}
    for need in (item for item in needs if isinstance(item, Prefixed)):
        shots = choose_shots(
            need, "one", [first_member] if need.known == "members" else held_out,
            tokenizer=target.tokenizer, context=target.context, policy=POLICY,
        )  # fmt: skip
        behind = statistics_behind(target, texts, datasets, {"one": shots}, POLICY)
        prefixed[need.name] = PrefixedStatistics(statistics=behind)
    train_adapter(folder, copied(target), held_out, POLICY, context=target.context)
    tuned = with_adapter(copied(target), folder)
    words = causal_words(memorised.before, texts)
    masked = make_masked_model(*tiny_masked_parts(), name="tiny")
    neighbours = find_neighbours(masked, texts, count=8)
    writer = LocalTextModel(target)
    return Evidence(
        texts=texts,
        statistics={
            view: token_statistics(target, [view_text(view, text) for text in texts], POLICY)
            for view in ("text", *SWAPPED)
        },
        datasets=datasets,
        reference=token_statistics(memorised.before, texts, POLICY),
        frequency=count_texts(target.tokenizer, make_texts(200, seed=5)),
        further={Entities(): [second_word(text) for text in texts]},
        prefixed=prefixed,
        tuned={Tuned().name: token_statistics(tuned, texts, POLICY)},
        held_out=HeldOutRows(
            datasets=["one"] * len(held_out),
            texts=held_out,
            statistics=token_statistics(target, held_out, POLICY),
        ),
        continuations={
            need.request: continue_texts(writer, texts, need.request)
            for need in needs
            if isinstance(need, Continuations)
        },
        guesses={
            need.request: guess(
                writer,
                [
                    mask_text(text, need.request, fields={"question": text}, words=own)
                    for text, own in zip(texts, words, strict=True)
                ],
                need.request,
            )
            for need in needs
            if isinstance(need, Guesses)
        },
        gradients=gradient_norms(target, texts, POLICY),
        neighbours=neighbour_means(target, neighbours, POLICY),
    )


def copied(target):
    return make_target(deepcopy(target.model), target.tokenizer, name=target.name)


def second_word(text: str) -> list[NamedEntity]:
    """Return the second word of a text, as a tagger would return a name."""
    start = text.index(" ") + 1
    return [NamedEntity(start, text.index(" ", start), "PERSON")]


@pytest.fixture(scope="module")
def scored(memorised, tmp_path_factory):
    """Scores by (model, specification of the setting)."""
    specifications = [*(text for text, _ in SETTINGS), *OTHERS]
    needs = needs_of(parse_detectors(specifications))
    scores = {}
    for target in (memorised.before, memorised.after):
        evidence = evidence_of(target, memorised, tmp_path_factory.mktemp("adapter"), needs)
        ids = [str(row) for row in range(len(evidence.texts))]
        for text in specifications:
            column = score_rows(ids, evidence, parse_detectors(text))[0].column("score")
            scores[target.name, text] = column.to_numpy()
    return scores


@pytest.fixture(scope="module")
def members(memorised):
    return np.array(memorised.labels[1:])


@pytest.mark.parametrize(("text", "least"), SETTINGS)
def test_members_score_higher_once_memorised(scored, members, text, least):
    assert roc_auc_score(members, scored["after", text]) >= least
    assert 0.15 < roc_auc_score(members, scored["before", text]) < 0.85


def test_published_code_mistakes_perfectly_learned_texts_for_nonmembers(scored, members):
    """`ez_mia:empty=zero` follows the authors' code; the default follows the paper."""
    values = scored["after", "ez_mia:empty=zero"]
    assert (values[members] == 0).any()
    assert roc_auc_score(members, values) < 0.3


@pytest.mark.parametrize("text", ["wbc", "ez_mia"])
def test_equal_models_give_equal_scores(scored, text):
    assert len(set(scored["before", text].tolist())) == 1


def test_published_decisions_find_members_only_after_training(scored, members):
    """A token sort ratio of 80, Dong et al.'s share of 0.01, and two or more restored words."""
    correct = scored["after", "prefix:beginning=tokens:amount=12:measure=correct"]
    assert (correct[members] == 1).mean() >= 0.9
    assert (correct[~members] == 0).all()
    assert (scored["after", CDD][members] > 0.01).all()
    decision = f"{PROBE}:log_probability=-3.5:measure=decision"
    flagged = scored["after", decision] == 1
    assert flagged[members].mean() >= 0.9
    assert members[flagged].mean() >= 0.75
    assert scored["before", decision][members].mean() <= 0.25
