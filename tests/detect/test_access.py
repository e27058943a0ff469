"""Access levels follow from needs and declarations; excluded statistics are withheld."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from detect.access import Access, AccessRefusedError, allowed_evidence
from detect.detector import Column, Detector, Score, one_score
from detect.detector_settings import DetectorSetting, parse_detectors
from detect.evidence import Evidence, ExampleEvidence, HeldOutRows
from detect.evidence.membership import Sides
from detect.evidence.views import View
from detect.registry import KnownDetector
from detect.scoring import score_rows
from detect.token_statistics import TemperedStatistics, TokenStatistics
from inject.errors import InputError
from tests.detect.evidence_samples import DISTRIBUTION, evidence_of, random_statistics


def test_detectors_declare_their_access_level() -> None:
    def level(name: str) -> Access:
        (setting,) = parse_detectors(name)
        return setting.detector.access_with(setting.parameters)

    assert level("blind") is Access.NONE
    assert level("loss") is level("reference") is level("lira") is Access.TOKENS
    assert level("surp") is level("min_k_plus_plus") is Access.DISTRIBUTION


def scoring(read: str, **declared: Any) -> DetectorSetting:
    """A detector that evaluates `read` for each example, as a user might write it."""

    def one(example: ExampleEvidence) -> float:
        eval(read, {"example": example, "np": np})
        return 1.0

    detector = Detector(
        **{"name": "mine", "summary": "", "needs": (View("text"),), **declared},
        score=one_score(one),
    )
    registered = KnownDetector(detector=detector, origin="a test", code=())
    return DetectorSetting(known=registered, parameters=detector.parameters())


def score(setting: DetectorSetting, **more: Any) -> list[float]:
    rows = [tempered_statistics(4), tempered_statistics(1)]
    evidence = evidence_of(*rows, reference=rows, members=[True, False], **more)
    table, notes = score_rows(["a", "b"], evidence, [setting])
    scores: list[float] = table.column("score").to_pylist()
    if notes:
        assert np.isnan(scores).all()
        raise InputError(notes[0])
    return scores


def tempered_statistics(size: int) -> TokenStatistics:
    rows = random_statistics(size)
    tempered = TemperedStatistics(
        log_probability=rows.log_probability,
        mean_log_prob=rows.mean_log_prob,
        std_log_prob=rows.std_log_prob,
    )
    return replace(rows, tempered={2.0: tempered})


COLUMNS = (*DISTRIBUTION, "tempered")
TEXT_VIEW = "example.statistics['text']"


@pytest.mark.parametrize("column", COLUMNS)
def test_log_probability_access_excludes_the_distribution(column: str) -> None:
    read = f"{TEXT_VIEW}.{column}"
    with pytest.raises(InputError) as caught:
        score(scoring(read))
    message = str(caught.value)
    assert "detector mine" in message
    assert f"`{column}`" in message
    assert "'token log-probabilities'" in message
    assert f"access=Access.{'RANKS' if column == 'rank' else 'DISTRIBUTION'}" in message
    assert score(scoring(read, access=Access.DISTRIBUTION)) == [1.0, 1.0]
    assert score(scoring(read, access=Access.WEIGHTS)) == [1.0, 1.0]


def test_columns_have_an_access_level() -> None:
    columns = {field.name for field in fields(TokenStatistics)}
    assert columns == {*COLUMNS, "ids", "log_probability", "offsets", "reason"}
    for column in columns - set(COLUMNS):
        assert score(scoring(f"{TEXT_VIEW}.{column}")) == [1.0, 1.0]


@pytest.mark.parametrize("level", [Access.NONE, Access.TEXT, Access.LABELS])
def test_text_access_excludes_all_statistics(level: Access) -> None:
    declared = {"needs": (), "access": level}
    assert score(scoring("example.text", **declared)) == [1.0, 1.0]
    assert score(scoring("len(example.statistics) and 1 / 0", **declared)) == [1.0, 1.0]
    for view in ("text", "lowercase"):
        with pytest.raises(InputError, match=rf"view '{view}'.*Access\.TOKENS"):
            score(scoring(f"example.statistics['{view}']", **declared))


def test_statistics_in_other_evidence_are_also_limited() -> None:
    @dataclass(frozen=True)
    class Pool:
        rows: Sequence[TokenStatistics]
        by_view: Mapping[str, Sequence[TokenStatistics]]
        shadows: Sequence[TokenStatistics]
        texts: Sequence[str] = ("a",)

    rows = [random_statistics(3)]
    evidence = allowed_evidence(
        evidence_of(*rows, frequency=Pool(rows, {"text": rows}, rows)), Access.TOKENS
    ).frequency
    for statistics in (evidence.rows[0], evidence.by_view["text"][0]):
        assert np.shares_memory(statistics.log_probability, rows[0].log_probability)
        assert len(statistics) == 3
        with pytest.raises(AccessRefusedError, match="entropy"):
            statistics.entropy  # noqa: B018
        with pytest.raises(AttributeError):
            statistics.entropie  # noqa: B018
    assert evidence.shadows[0].entropy is rows[0].entropy
    assert evidence.texts == ("a",)
    held_out = HeldOutRows(
        datasets=["one"], texts=["a"], statistics=rows, reference=rows, shadows=[rows]
    )
    held_out_evidence = allowed_evidence(
        evidence_of(*rows, held_out=held_out), Access.TOKENS
    ).held_out
    with pytest.raises(AccessRefusedError, match="entropy"):
        held_out_evidence.statistics[0].entropy  # noqa: B018
    for own in (held_out_evidence.reference, *held_out_evidence.shadows):
        assert own[0].entropy is rows[0].entropy


def test_only_detectors_that_need_labels_receive_them() -> None:
    seen = []

    def note(evidence: Evidence, settings: Sequence[Any]) -> list[Column]:
        seen.append(evidence.members)
        return [Column([Score(0.0)] * len(evidence.texts)) for _ in settings]

    for needs in ((View("text"),), (View("text"), Sides())):
        detector = Detector(name="mine", summary="", needs=needs, score=note)
        registered = KnownDetector(detector=detector, origin="a test", code=())
        score(DetectorSetting(known=registered, parameters=detector.parameters()))
    assert seen == [None, (True, False)]
