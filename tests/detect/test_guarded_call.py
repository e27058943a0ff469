"""A detector cannot change the input of others; a failing one is named with its file."""

import importlib.util
import math
import re
import traceback
from dataclasses import replace

import numpy as np
import pytest

from detect.detector import Detector
from detect.detector_settings import DetectorSetting, parse_detectors
from detect.evidence import ShadowModel
from detect.evidence.views import View
from detect.registry import KnownDetector
from detect.scoring import score_rows
from inject.errors import InputError
from tests.detect.evidence_samples import evidence_of, random_statistics, small_frequency

HEAD = """
import math, sys
from detect.detector import Column, Detector, NoParameters, Score, each_example, one_score
from detect.evidence.views import View
"""


def detector_in(tmp_path, body: str, score: str = "score") -> DetectorSetting:
    """A detector in a separate file, as a user would write it."""
    path = tmp_path / "mine.py"
    path.write_text(HEAD + body)
    spec = importlib.util.spec_from_file_location("mine", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = eval(score, vars(module))
    detector = Detector(
        name="mine", summary="mine", source="mine", needs=(View("text"),), score=made
    )
    registered = KnownDetector(detector=detector, origin="a test", code=())
    return DetectorSetting(known=registered, parameters=detector.parameters())


def evidence(rows: int = 4):
    statistics = [random_statistics(9, seed=seed) for seed in range(rows)]
    return evidence_of(
        *statistics,
        reference=statistics,
        frequency=small_frequency(),
        members=[True, False] * (rows // 2),
        groups=[str(row) for row in range(rows)],
        shadows=[ShadowModel(statistics=statistics, inside=[True, False] * (rows // 2))],
    )


def scores(settings, rows):
    table = score_rows([str(row) for row in range(len(rows.texts))], rows, settings)[0]
    return [row["score"] for row in table.to_pylist() if row["detector"] == "loss"]


def failure(folder, body: str, made: str = "score", *, protected: bool = False) -> str:
    """Return the message about a detector that fails on all rows: only its column is empty."""
    setting = detector_in(folder, body, made)
    settings = [setting, *parse_detectors("loss")]
    table, notes = score_rows(list("abcd"), evidence(), settings, protected=protected)
    empty = [row for row in table.to_pylist() if row["detector"] == "mine"]
    assert all(math.isnan(row["score"]) for row in empty)
    assert len(empty) == 4
    assert scores([setting, *parse_detectors("loss")], evidence()) == scores(
        parse_detectors("loss"), evidence()
    )
    (note,) = notes
    assert "NO SCORE of ANY of the 4 rows" in note
    assert {row["reason"] for row in empty} == {empty[0]["reason"]}
    assert empty[0]["reason"].removeprefix("mine: ") in note
    return note


CHANGES = (
    "evidence.statistics['text'][0].log_probability[:] = 0",
    "evidence.statistics['text'][0].log_probability.sort()",
    "evidence.statistics['text'].reverse()",
    "evidence.statistics['text'] = evidence.statistics['text'][::-1]",
    "evidence.texts[0] = ''",
    "evidence.members.sort()",
    "evidence.groups.clear()",
    "evidence.reference[0].rank[:] = 0",
    "evidence.frequency.counts[:] = 0",
    "evidence.frequency.identity['a'] = 1",
    "evidence.shadows[0].statistics[0].mean_log_prob[:] = 0",
    "evidence.shadows[0].inside[0] = False",
)


def test_detector_cannot_change_the_input_of_others(tmp_path):
    rows = evidence()
    before = scores(parse_detectors("loss"), rows)
    body = f"""
def score(evidence, settings):
    for change in {CHANGES!r}:
        try:
            exec(change, {{"evidence": evidence}})
        except (ValueError, TypeError, AttributeError):
            pass
    return [Column([Score(0.0)] * len(evidence.texts)) for _ in settings]
"""
    vandal = detector_in(tmp_path, body)
    assert scores([vandal, *parse_detectors("loss")], rows) == before
    assert scores(parse_detectors("loss"), rows) == before
    assert rows.texts[0]
    assert rows.groups
    assert rows.members == [True, False, True, False]
    np.testing.assert_array_equal(rows.frequency.counts, small_frequency().counts)
    assert rows.shadows[0].inside == [True, False, True, False]


def test_write_to_read_only_input_names_file_line_and_fix(tmp_path):
    body = """
def score(evidence, settings):
    evidence.statistics["text"][0].log_probability.sort()
"""
    message = failure(tmp_path, body)
    assert re.search(r"detector mine \(.*mine\.py\): it stopped at mine\.py:7", message)
    assert re.search(r"read-only.*array\.copy\(\)", message)


FAILURES = {
    "raise ZeroDivisionError('by zero')": "stopped at mine.py:6 with ZeroDivisionError: by zero",
    "sys.exit(0)": "tried to end the program at mine.py:6 with SystemExit: 0",
    "pass": "it returned nothing",
    "return 0.5": "it returned a float",
    "return []": "it returned 0 columns for 1 settings",
    "return Column([Score(1.0)] * 4)": "it returned a Column",
    "return [[0.1] * 4]": "it returned a list as column 1",
    "return [Column([Score(1.0)] * 3)]": "it returned 3 scores for 4 rows",
    "return [Column([1.0] * 4)]": "it returned a float for row 1",
    "return [Column([Score(1.0)] * 3 + [None])]": "returned nothing for row 4",
    "return [Column([Score('1')] * 4)]": "a value that is a str for row 1",
    "return [Column([Score(1.0, 5)] * 4)]": "a reason that is a int for row 1",
    "return [Column([Score(1.0)] * 4, 'note')]": "notes that are not a list",
}


@pytest.mark.parametrize(("body", "problem"), FAILURES.items())
def test_a_detector_that_fails_or_returns_no_scores_is_named_with_its_file(tmp_path, body, problem):
    message = failure(tmp_path, f"\ndef score(e, s): {body}")
    assert f"detector mine ({tmp_path / 'mine.py'})" in message
    assert problem in message


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("None", "it returned nothing"),
        ("True", "a value that is a bool"),
        ("np.zeros(3)", "a value that is a ndarray of shape (3,)"),
    ],
)
def test_invalid_return_value_error_describes_allowed_values(tmp_path, value, problem):
    body = f"import numpy as np\ndef score(example): return {value}"
    message = failure(tmp_path, body, "one_score(score)", protected=True)
    assert (
        f"{problem}. Allowed: a number, or a text that gives the reason for its absence." in message
    )


QUOTES = (
    "def one(example): raise ValueError(example.text)",
    "from inject.errors import InputError\n"
    "def one(example): raise InputError(example.text, where=example.text, hint=example.text)",
    "def one(example): sys.exit(example.text)",
)


@pytest.mark.parametrize("body", QUOTES)
def test_exception_messages_are_dropped_if_texts_may_be_protected(tmp_path, body):
    """Texts count as protected unless declared free."""
    rows = replace(evidence(), texts=[f"quagga{row} axolotl{row}" for row in range(4)])
    setting = detector_in(tmp_path, body, "one_score(one)")
    free = str(score_rows(list("abcd"), rows, [setting], protected=False))
    assert "quagga" in free
    table, notes = score_rows(list("abcd"), rows, [setting])
    messages = [*notes, *(row["reason"] for row in table.to_pylist())]
    assert not any("quagga" in message or "axolotl" in message for message in messages)
    assert all(re.search(r"at mine\.py:\d+ with \w+", message) for message in messages)


def test_out_of_memory_ends_the_step_without_quoting_protected_text(tmp_path):
    """Scores are stored, so a file must not omit rows for reasons of one machine or moment."""
    body = "def score(e, s): raise MemoryError('quagga')"
    with pytest.raises(InputError, match=r"mine\.py:\d+ with MemoryError") as caught:
        score_rows(list("abcd"), evidence(), [detector_in(tmp_path, body)])
    assert "quagga" not in "".join(traceback.format_exception(caught.value)).replace(body, "")


ONE_BAD_ROW = {
    "a function of one example": (
        "def one(example):\n"
        "    if example.text == BAD: raise ValueError('no such word')\n"
        "    return float(example.statistics['text'].log_probability.sum())",
        "one_score(one)",
    ),
    "a loop over all rows": (
        "def score(evidence, settings):\n"
        "    found = []\n"
        "    for text, row in zip(evidence.texts, evidence.statistics['text']):\n"
        "        if text == BAD: raise ValueError('no such word')\n"
        "        found.append(Score(float(row.log_probability.sum())))\n"
        "    return [Column(found) for _ in settings]",
        "score",
    ),
    "a value that is not a number": (
        "def one(example):\n"
        "    if example.text == BAD: return [1.0]\n"
        "    return float(example.statistics['text'].log_probability.sum())",
        "one_score(one)",
    ),
}


@pytest.mark.parametrize(("body", "made"), ONE_BAD_ROW.values(), ids=ONE_BAD_ROW.keys())
def test_failure_on_one_row_is_a_missing_score_with_a_reason(tmp_path, body, made):
    inputs, bad = evidence(), 2
    inputs = replace(inputs, texts=[f"text {row}" for row in range(4)])
    setting = detector_in(tmp_path, f"BAD = 'text {bad}'\n{body}", made)
    table, notes = score_rows(
        list("abcd"), inputs, [*parse_detectors("loss"), setting], protected=False
    )
    rows = [row for row in table.to_pylist() if row["detector"] == "mine"]
    for row, statistics in enumerate(inputs.statistics["text"]):
        if row == bad:
            assert math.isnan(rows[row]["score"])
            assert rows[row]["reason"].startswith("mine: it ")
            assert ("ValueError: no such word" in rows[row]["reason"]) != ("[1.0]" in body)
            assert ("a value that is a list" in rows[row]["reason"]) == ("[1.0]" in body)
        else:
            assert rows[row]["score"] == float(statistics.log_probability.sum())
            assert rows[row]["reason"] is None
    (note,) = notes
    assert note.startswith("mine: NO SCORE of 1 of 4 rows")
    assert str(tmp_path / "mine.py") in note


def test_scorable_rows_are_scored_together(tmp_path):
    """A detector of all rows still receives every row that it does not fail on."""
    body = """
def score(evidence, settings):
    if "bad" in evidence.texts: raise ValueError("bad")
    return [Column([Score(float(len(evidence.texts)))] * len(evidence.texts))]
"""
    rows = replace(evidence(), texts=["a", "bad", "b", "c"])
    table, notes = score_rows(list("abcd"), rows, [detector_in(tmp_path, body)], protected=False)
    assert [row["score"] for row in table.to_pylist()] == pytest.approx(
        [3.0, math.nan, 3.0, 3.0], nan_ok=True
    )


NUMBERS = {
    "np.float32(1.5)": 1.5,
    "np.int64(2)": 2.0,
    "torch.tensor(1.5, dtype=torch.bfloat16)": 1.5,
    "torch.tensor(1.5, requires_grad=True)": 1.5,
    "torch.tensor([1.5])": "a value that is a Tensor of shape (1,)",
    "np.bool_(True)": "a value that is a bool",
    "2**53 + 1": "a value that is a int",
    "10**400": "a value that is a int",
    "1j": "a value that is a complex",
}


@pytest.mark.parametrize(("returned", "expected"), NUMBERS.items())
def test_library_scalars_are_numbers_and_other_values_are_named(tmp_path, returned, expected):
    body = f"import numpy as np, torch\ndef one(example): return {returned}"
    table, notes = score_rows(
        list("abcd"), evidence(), [detector_in(tmp_path, body, "one_score(one)")]
    )
    for row in table.to_pylist():
        if isinstance(expected, float):
            assert (row["score"], row["reason"]) == (expected, None)
        else:
            assert math.isnan(row["score"])
            assert expected in row["reason"]
