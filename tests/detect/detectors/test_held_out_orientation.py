"""Detectors with shots, populations and tuning on a model that learned its members by heart."""

import numpy as np
import pytest

from detect.detector_settings import parse_detectors
from detect.engine.forward_pass import token_statistics
from detect.engine.target import make_target
from detect.engine.tuning import train_adapter, with_adapter
from detect.evidence import Evidence, HeldOutRows, PrefixedStatistics
from detect.evidence.prefixed import Prefixed
from detect.evidence.shots import choose_shots, statistics_behind
from detect.evidence.tuned import Tuned
from detect.policy import ScoringPolicy
from detect.scoring import score_rows
from detect.views import TEXT
from tests.conftest import make_texts

POLICY = ScoringPolicy()
ASKED = "recall:shots=2,con_recall:shots=1,codec:draws=2:skip=4,fsd,camia"


def auc(scores, labels):
    members = [one for one, label in zip(scores, labels, strict=True) if label]
    others = [one for one, label in zip(scores, labels, strict=True) if not label]
    return np.mean([[(a > b) + 0.5 * (a == b) for b in others] for a in members])


@pytest.fixture(scope="module")
def aucs(memorised, tmp_path_factory):
    """AUC of each detector under the model before and after it learned its members."""
    held_out = make_texts(24, seed=501, words=24)
    # One member is known, and is not scored.
    known, *texts = memorised.texts
    labels = memorised.labels[1:]
    found = {}
    for name, target in (("before", memorised.before), ("after", memorised.after)):
        prefixed = {}
        for need in {need for one in parse_detectors(ASKED) for need in one.needs}:
            if isinstance(need, Prefixed):
                shots = choose_shots(
                    need,
                    "one",
                    [known] if need.known == "members" else held_out,
                    tokenizer=target.tokenizer,
                    context=target.context,
                    policy=POLICY,
                )
                assert shots.texts
                prefixed[need.name] = PrefixedStatistics(
                    statistics=statistics_behind(
                        target, texts, ["one"] * len(texts), {"one": shots}, POLICY
                    )
                )

        def copied(target=target):
            from copy import deepcopy

            return make_target(deepcopy(target.model), target.tokenizer, name=target.name)

        adapter = tmp_path_factory.mktemp(name)
        train_adapter(adapter, copied(), held_out, POLICY, context=target.context)
        tuned = with_adapter(copied(), adapter)
        evidence = Evidence(
            texts=texts,
            statistics={TEXT: token_statistics(target, texts, POLICY)},
            datasets=["one"] * len(texts),
            prefixed=prefixed,
            tuned={Tuned().name: token_statistics(tuned, texts, POLICY)},
            held_out=HeldOutRows(
                datasets=["one"] * len(held_out),
                texts=held_out,
                statistics=token_statistics(target, held_out, POLICY),
            ),
        )
        ids = [str(row) for row in range(len(texts))]
        rows = score_rows(ids, evidence, parse_detectors(ASKED)).table.to_pylist()
        for detector in {row["detector"] for row in rows}:
            scores = [row["score"] for row in rows if row["detector"] == detector]
            found[name, detector] = auc(scores, labels)
    return found


@pytest.mark.parametrize("detector", [part.split(":")[0] for part in ASKED.split(",")])
def test_members_score_higher_once_they_are_known_by_heart(aucs, detector):
    assert aucs["after", detector] > 0.9
    assert 0.2 < aucs["before", detector] < 0.8
