"""A detector cannot change what the others read, and one that fails is named with its file."""

import importlib.util
import math

import numpy as np
import pytest

from detect.detector import Detector
from detect.detector_settings import DetectorSetting, parse_detectors
from detect.evidence import ShadowModel
from detect.needs import View
from detect.registry import KnownDetector
from detect.scoring import score_rows
from inject.errors import InputError
from tests.detect.evidence_samples import evidence_of, random_statistics, small_frequency

HEAD = """
import math, sys
from detect.detector import Column, Detector, NoParameters, Score, each_example, one_score
from detect.needs import View
"""


def detector_in(tmp_path, body: str, score: str = "score") -> DetectorSetting:
    """A detector in a file of its own, as a user would write it."""
    path = tmp_path / "mine.py"
    path.write_text(HEAD + body)
    spec = importlib.util.spec_from_file_location("mine", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = eval(score, vars(module))
    detector = Detector(
        name="mine", summary="mine", source="mine", needs=(View("text"),), score=made
    )
    known = KnownDetector(detector=detector, origin="a test", code=())
    return DetectorSetting(known=known, parameters=detector.parameters())


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


def scores(settings, given):
    table = score_rows([str(row) for row in range(len(given.texts))], given, settings).table
    return [row["score"] for row in table.to_pylist() if row["detector"] == "loss"]


CHANGES = {
    "an array in place": "evidence.statistics['text'][0].log_probability[:] = 0",
    "an array by sorting": "evidence.statistics['text'][0].log_probability.sort()",
    "an array with -=": "one = evidence.statistics['text'][0].log_probability; one -= 5",
    "the rows of a view": "evidence.statistics['text'].reverse()",
    "the views": "evidence.statistics['text'] = evidence.statistics['text'][::-1]",
    "the texts": "evidence.texts[0] = ''",
    "the labels": "evidence.members.sort()",
    "the groups": "evidence.groups.clear()",
    "the reference": "evidence.reference[0].rank[:] = 0",
    "the frequencies": "evidence.frequency.counts[:] = 0",
    "the frequencies' identity": "evidence.frequency.identity['a'] = 1",
    "a shadow's statistics": "evidence.shadows[0].statistics[0].mean[:] = 0",
    "who a shadow saw": "evidence.shadows[0].inside[0] = False",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_detector_cannot_change_what_the_others_read(tmp_path, change):
    given = evidence()
    before = scores(parse_detectors("loss"), given)
    body = f"""
def score(evidence, settings):
    try:
        {change}
    except (ValueError, TypeError, AttributeError):
        pass
    return [Column([Score(0.0)] * len(evidence.texts)) for _ in settings]
"""
    vandal = detector_in(tmp_path, body)
    assert scores([vandal, *parse_detectors("loss")], given) == before
    assert scores(parse_detectors("loss"), given) == before
    assert given.members == [True, False, True, False]
    np.testing.assert_array_equal(given.frequency.counts, small_frequency().counts)
    assert given.shadows[0].inside == [True, False, True, False]


def test_a_change_that_is_not_caught_names_the_file_the_line_and_the_way_out(tmp_path):
    body = """
def score(evidence, settings):
    evidence.statistics["text"][0].log_probability.sort()
"""
    with pytest.raises(InputError, match=r"detector mine \(.*mine\.py\): it stopped at mine\.py:7"):
        score_rows(list("abcd"), evidence(), [detector_in(tmp_path, body)])
    with pytest.raises(InputError, match=r"read-only.*array\.copy\(\)"):
        score_rows(list("abcd"), evidence(), [detector_in(tmp_path, body)])


def test_views_share_memory_and_what_was_given_stays_writable():
    from detect.guarded_call import read_only

    given = evidence()
    seen = read_only(given)
    own, shared = given.statistics["text"][0].mean, seen.statistics["text"][0].mean
    assert np.shares_memory(own, shared)
    assert own.flags.writeable
    assert not shared.flags.writeable


FAILURES = {
    "def score(e, s): raise ZeroDivisionError('by zero')": "with ZeroDivisionError: by zero",
    "def score(e, s): return 1 / 0": "stopped at mine.py:6 with ZeroDivisionError",
    "def score(e, s): e.statistics['no such view']": "with KeyError",
    "def score(e, s): raise MemoryError": "with MemoryError",
    "def score(e, s): sys.exit(0)": "tried to end the program at mine.py:6 with SystemExit: 0",
    "def score(e, s): quit()": "tried to end the program",
    "class Odd(BaseException): pass\ndef score(e, s): raise Odd('x')": "with Odd: x",
    "def score(e, s): pass": "it returned nothing",
    "def score(e, s): return 0.5": "it returned a float",
    "def score(e, s): return iter([])": "it returned a list_iterator",
    "def score(e, s): return []": "it returned 0 columns for 1 settings",
    "def score(e, s): return [Column([Score(1.0)])] * 2": "it returned 2 columns for 1 settings",
    "def score(e, s): return Column([Score(1.0)] * 4)": "it returned a Column",
    "def score(e, s): return [[0.1] * 4]": "it returned a list as column 1",
    "def score(e, s): return [None]": "it returned a NoneType as column 1",
    "def score(e, s): return [Column([Score(1.0)] * 3)]": "it returned 3 scores for 4 rows",
    "def score(e, s): return [Column([1.0] * 4)]": "it returned a float for row 1",
    "def score(e, s): return [Column([Score(1.0)] * 3 + [None])]": "returned nothing for row 4",
    "def score(e, s): return [Column([Score(None)] * 4)]": "no value for row 1",
    "def score(e, s): return [Column([Score('1')] * 4)]": "a value that is a str for row 1",
    "def score(e, s): return [Column([Score(1j)] * 4)]": "a value that is a complex for row 1",
    "def score(e, s): return [Column([Score(True)] * 4)]": "a value that is a bool for row 1",
    "def score(e, s): return [Column([Score(1.0, 5)] * 4)]": "a reason that is a int for row 1",
    "def score(e, s): return [Column([Score(1.0)] * 4, 'note')]": "notes that are no list",
}


@pytest.mark.parametrize(("body", "said"), FAILURES.items())
def test_a_detector_that_fails_or_returns_no_scores_is_named_with_its_file(tmp_path, body, said):
    with pytest.raises(InputError) as caught:
        score_rows(list("abcd"), evidence(), [detector_in(tmp_path, "\n" + body)])
    message = str(caught.value)
    assert f"detector mine ({tmp_path / 'mine.py'})" in message
    assert said in message


@pytest.mark.parametrize(
    ("body", "made", "said"),
    [
        ("def one(example): raise ValueError('no')", "one_score(one)", "ValueError: no"),
        ("def one(example): pass", "one_score(one)", "no value for row 1"),
        ("def one(example, settings): pass", "each_example(one)", "nothing returned for 1"),
        ("def one(example, settings): return 3.0", "each_example(one)", "float returned for 1"),
        ("def one(example, settings): return []", "each_example(one)", "0 scores returned for 1"),
    ],
)
def test_a_function_of_one_example_is_named_with_its_own_file(tmp_path, body, made, said):
    with pytest.raises(InputError) as caught:
        score_rows(list("abcd"), evidence(), [detector_in(tmp_path, body, made)])
    assert f"detector mine ({tmp_path / 'mine.py'})" in str(caught.value)
    assert said in str(caught.value)


def test_an_interruption_passes(tmp_path):
    setting = detector_in(tmp_path, "def score(e, s): raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        score_rows(list("abcd"), evidence(), [setting])


def test_numbers_of_numpy_are_numbers_and_nan_has_a_reason(tmp_path):
    body = """
import numpy as np
def score(e, s):
    values = (np.float32(1.5), np.int64(2), 3, math.nan)
    return [Column([Score(value) for value in values])]
"""
    rows = score_rows(list("abcd"), evidence(), [detector_in(tmp_path, body)]).table.to_pylist()
    assert [row["score"] for row in rows[:3]] == [1.5, 2.0, 3.0]
    assert math.isnan(rows[3]["score"])
    assert rows[3]["reason"] == "not a number"
