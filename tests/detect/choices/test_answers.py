import numpy as np

from detect.choices.answers import ChoiceAnswers, read_answers, write_answers


def test_answers_are_read_as_they_were_written(tmp_path):
    random = np.random.Generator(np.random.Philox(key=0))
    probabilities = ChoiceAnswers(
        log_probability=-random.gamma(1.0, 1.0, (24, 4)).astype(np.float32)
    )
    letters = ChoiceAnswers(letters=random.integers(-1, 4, 24).astype(np.int8))
    write_answers(tmp_path, ["a", "b", "c"], [probabilities, letters, ChoiceAnswers(reason="why")])
    assert read_answers(tmp_path)["a"].document == ""
    write_answers(
        tmp_path,
        ["a", "b", "c"],
        [probabilities, letters, ChoiceAnswers(reason="why")],
        ["one", "one", "two"],
    )
    found = read_answers(tmp_path)
    assert np.array_equal(found["a"].log_probability, probabilities.log_probability)
    assert found["a"].letters is None
    assert np.array_equal(found["b"].letters, letters.letters)
    assert found["b"].log_probability is None
    assert found["c"].reason == "why"
    assert found["a"].reason is None
    assert [one.document for one in found.values()] == ["one", "one", "two"]
