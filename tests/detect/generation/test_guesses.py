"""Which parts are masked, how they are asked for, and how answers are read."""

import pytest

from detect.generation.guesses import (
    GuessRequest,
    guess,
    known_parts,
    mask_text,
    prompt_text,
    read_answer,
)
from detect.generation.masked_parts import (
    MaskedPart,
    WordStatistics,
    informative_word,
    names,
    nouns,
    surprising_words,
    wrong_option,
)
from detect.targets.text_model import Completion

TEXT = "one two three four"
WORDS = [
    WordStatistics(0, 3, -3.0, 2500, -3.0, 2500),
    WordStatistics(4, 7, -12.0, 10, -12.0, 10),
    WordStatistics(8, 13, -12.5, 2000, -6.0, 2000),
    WordStatistics(14, 18, -20.0, 9000, -10.0, 9),
]


def test_words_below_the_probability_come_lowest_first():
    found = surprising_words(TEXT, WORDS, "prob", limit=10, threshold=-12)
    assert [one.wanted for one in found] == ["four", "three"]
    assert found[1] == MaskedPart("three", "one two ", "one two [MASK] four")
    # Known pitfall: with ten words and more, the most surprising ones are kept.
    assert surprising_words(TEXT, WORDS, "prob", limit=1, threshold=-12) == found[:1]


NOUNS = (
    "The old river carried 300 bottles quickly. Fred, of Wellington, counted bottles; the "
    "winter-market's 1,000 famous river stones shone. A fox walked on the beach near a harbour."
)


def test_nouns_and_numbers_by_the_rule():
    """`bottles` and `river` stand twice; `harbour` is the last of all; `near` no list knows."""
    found = [NOUNS[start:stop] for start, stop in nouns(NOUNS)]
    assert found == ["old", "300", "Fred", "Wellington", "stones", "shone", "fox", "beach", "near"]
    # What is repeated far away is masked where it stands first, and once.
    far = f"A bridge was there. {'It was of them. ' * 20} The bridge is by that lake."
    assert [far[start:stop] for start, stop in nouns(far)] == ["bridge"]
    assert nouns("") == []


def test_the_authors_way_goes_by_the_first_piece_of_nouns_alone():
    """Ravichander et al. 2025, their code: -12 and 2,000 are of the first piece of a word."""
    text = "Brief kestrels quickly ate 1984 voles today, friends"
    scores = {
        "Brief": (-30.0, -30.0), "kestrels": (-15.0, -11.0), "quickly": (-19.0, -19.0),
        "1984": (-13.0, -13.0), "voles": (-16.0, -14.0), "friends": (-40.0, -40.0),
    }  # fmt: skip
    words = [
        WordStatistics(
            text.index(word), text.index(word) + len(word), whole, round(-whole * 200),
            first, round(-first * 200),
        )
        for word, (whole, first) in scores.items()
    ]  # fmt: skip
    for method, threshold in (("prob", -12.0), ("rank", 2400.0)):
        ask = {"limit": 10, "threshold": threshold}
        theirs = surprising_words(text, words, method, candidates="nouns", **ask)
        ours = surprising_words(text, words, method, **ask)
        assert [one.wanted for one in theirs] == ["Brief", "voles", "1984"]
        assert [one.wanted for one in ours] == ["friends", "Brief", "quickly", "voles", "kestrels"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He saw Wemmick's book and told Mr. Jaggers so.", ["Wemmick", "Jaggers"]),
        ("Melkor fled. Arthur ran! “Emma,” he said. (Harriet left.)", []),
        ("On Monday in May the English met Sir John.", ["John"]),
        ("A Wolf is a wolf, and NASA is The Agency McDonald.", ["Agency"]),
        ("nothing here", []),
        ("", []),
        ("夜里有人 Ana 来了", ["Ana"]),
    ],
)
def test_names_by_the_rule(text, expected):
    assert [one.wanted for one in names(text, limit=10)] == expected


def test_the_informative_word_is_the_longest_that_is_not_common():
    text = "Passage.\nQuestion: Which of these is produced during photosynthesis by plants?"
    question = "Which of these is produced during photosynthesis by plants?"
    found = informative_word(text, question)
    assert found.wanted == "photosynthesis"
    assert found.before == text[: text.index("photosynthesis")]
    assert found.shown == "Which of these is produced during [MASK] by plants?"
    assert informative_word("what is it", "what is it") is None


FIELDS = {"question": "Who?", "options": ["Ann", "Bob", "Cid", "Dee"], "answer": "B"}
RENDERED = "Who?\nA. Ann\nB. Bob\nC. Cid\nD. Dee\nAnswer: B"


@pytest.mark.parametrize("answer", ["B", "Bob"])
def test_a_wrong_option_is_masked_and_never_the_right_one(answer):
    seen = set()
    for number in range(40):
        text = f"{number} {RENDERED}"
        found = wrong_option(text, {**FIELDS, "answer": answer})
        seen.add(found.wanted)
        assert found.before == text[: text.rindex(found.wanted)]
        assert found.shown.count("[MASK]") == 1
        assert f"{found.option}: [MASK]" in found.shown
        assert found == wrong_option(text, {**FIELDS, "answer": answer})
    assert seen == {"Ann", "Cid", "Dee"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"question": "Who?", "options": ["yes", "no"], "answer": "A"},
        {**FIELDS, "answer": "nobody"},
        {**FIELDS, "answer": "Ann", "options": ["Ann", "Ann", "Bob"]},
    ],
)
def test_an_option_of_two_or_without_a_known_answer_is_not_masked(fields):
    """Deng et al. 2024: not defined for two-class data."""
    assert wrong_option(RENDERED, fields) is None
    found = mask_text(RENDERED, GuessRequest(method="option"), fields=fields)
    assert "three options or more" in found.reason


def test_the_prompts_are_those_of_the_paper():
    """Ravichander et al. 2025, appendix B, word for word."""
    part = MaskedPart("x", "a {b} ", "a {b} [MASK].")
    assert prompt_text(part, "passage") == (
        "You have seen the following passage in your training data. What is the word that fills in "
        "the [MASK] token in it? This word is a noun, verb, adjective, or adverb (not a pronoun, "
        "preposition or conjunction). You must make a guess, even if you are uncertain.\n\n"
        "Example:\n\n"
        "Input: Stay gold, [MASK], stay gold.\n\n"
        "Output: <word>Ponyboy</word>\n\n"
        "Input: The door opened, and [MASK], dressed and hatted, entered with a cup of tea.\n\n"
        "Output: <word>Gerty</word>\n\n"
        "Input: a {b} [MASK]."
    )
    assert prompt_text(part, "test") == (
        "Complete the sentence in one word:\n\nInput: a {b} [MASK].\n\nReply the answer only."
    )
    assert prompt_text(part, "filter") == (
        "What is the word that fills in the [MASK] token in the following passage?\n\n"
        "Passage: a {b} [MASK]."
    )
    assert prompt_text(part, "filter_100") == (
        "What are 100 words that can fill in the [MASK] token in the following passage?\n\n"
        "Passage: a {b} [MASK]."
    )
    assert prompt_text(part, "plain") == "a {b}"
    option = prompt_text(MaskedPart("x", "", "Question: q", "C"), "test")
    assert option.startswith("Please fill in the [MASK] in option C based on your benchmark")
    assert option.endswith("Question: q\n\nReply the answer only.")


@pytest.mark.parametrize(
    ("written", "guess_"),
    [
        # The four answers of the paper's Table 9.
        ("Melkor", "Melkor"),
        ("Emma", "Emma"),
        ("Output: Wemmick", "Wemmick"),
        (
            'I believe the word that fills in the [MASK] token in the passage is "Arthur."',
            "Arthur",
        ),
        ("<word>Ponyboy</word>", "Ponyboy"),
        ("\n\nOutput: <word> Gerty </word>\n\nInput: The", "Gerty"),
        ("<word>Gerty", "Gerty"),
        ("The word is Arthur.", "Arthur"),
        ("**Arthur**\n\nThis is a guess.", "Arthur"),
        ("answer: “Arthur”", "Arthur"),
        ("Arthur Dent", "Arthur Dent"),
        ("", ""),
        (" \n ", ""),
        ("Output:", ""),
    ],
)
def test_answers_are_read_without_what_models_put_around_them(written, guess_):
    assert read_answer(written, 1, "passage") == guess_


class Oracle:
    """Knows the words, in a sentence of its own."""

    name = "oracle"

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    def answer(self, questions, sampling, *, progress=None):
        self.asked += questions
        found = []
        for question in questions:
            for key, answer in self.answers.items():
                if key in question:
                    found.append([Completion(answer, 9, 2)])
                    break
            else:
                found.append([Completion("nobody knows", 9, 2)])
        return found

    complete = answer


def test_one_prompt_a_mask_and_costs_are_summed():
    masked = [
        mask_text(TEXT, GuessRequest(), words=WORDS),
        mask_text("", GuessRequest()),
        mask_text("dull", GuessRequest()),
    ]
    oracle = Oracle(**{"[MASK] four": "Output: three"})
    seen = []
    found = guess(
        oracle, masked, GuessRequest(), progress=lambda done, total: seen.append((done, total))
    )
    assert len(oracle.asked) == 2
    assert found[0].wanted == ("four", "three")
    assert found[0].exact("passage") == [False, True]
    assert (found[0].tokens_in, found[0].tokens_out) == (18, 4)
    assert found[1].reason == "empty text"
    assert "no word surprises" in found[2].reason
    assert seen == [(2, 2)]


def test_what_the_knowledge_filter_guesses_is_not_asked_for():
    request = GuessRequest(filtered=True)
    masked = [mask_text(TEXT, request, words=WORDS)]

    def filtered(**answers):
        low = Oracle(**answers)
        single = guess(low, masked, GuessRequest(prompt="filter"))
        lists = guess(low, masked, GuessRequest(prompt="filter_100"))
        oracle = Oracle()
        found = guess(oracle, masked, request, is_known=known_parts(single, lists))[0]
        assert len(oracle.asked) == len(found.wanted)
        return found.wanted, found.filtered

    assert filtered() == (("four", "three"), 0)
    assert filtered(**{"three [MASK]": "1. none 2. FOUR"}) == (("three",), 1)
    assert filtered(**{"What is the word": "four"}) == (("three",), 1)
