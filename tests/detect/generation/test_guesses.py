"""Which parts are masked, how the prompts request them, and how answers are parsed."""

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


def test_words_below_the_threshold_are_sorted_by_probability():
    parts = surprising_words(TEXT, WORDS, "prob", limit=10, threshold=-12)
    assert [part.wanted for part in parts] == ["four", "three"]
    assert parts[1] == MaskedPart("three", "one two ", "one two [MASK] four")
    # Known pitfall: with ten words or more, the most surprising ones are kept.
    assert surprising_words(TEXT, WORDS, "prob", limit=1, threshold=-12) == parts[:1]


NOUNS = (
    "The old river carried 300 bottles quickly. Fred, of Wellington, counted bottles; the "
    "winter-market's 1,000 famous river stones shone. A fox walked on the beach near a harbour."
)


def test_rule_finds_nouns_and_numbers():
    """`bottles` and `river` occur twice; `harbour` is the last word; no list has `near`."""
    masked = [NOUNS[start:stop] for start, stop in nouns(NOUNS)]
    assert masked == ["old", "300", "Fred", "Wellington", "stones", "shone", "fox", "beach", "near"]
    # A word repeated far away is masked once, at its first occurrence.
    far = f"A bridge was there. {'It was of them. ' * 20} The bridge is by that lake."
    assert [far[start:stop] for start, stop in nouns(far)] == ["bridge"]
    assert nouns("") == []


def test_published_method_scores_the_first_piece_of_nouns():
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
        published = surprising_words(text, words, method, candidates="nouns", **ask)
        default = surprising_words(text, words, method, **ask)
        assert [part.wanted for part in published] == ["Brief", "voles", "1984"]
        assert [part.wanted for part in default] == [
            "friends",
            "Brief",
            "quickly",
            "voles",
            "kestrels",
        ]


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
def test_rule_finds_names(text, expected):
    assert [part.wanted for part in names(text, limit=10)] == expected


def test_informative_word_is_the_longest_uncommon_word():
    text = "Passage.\nQuestion: Which of these is produced during photosynthesis by plants?"
    question = "Which of these is produced during photosynthesis by plants?"
    part = informative_word(text, question)
    assert part.wanted == "photosynthesis"
    assert part.before == text[: text.index("photosynthesis")]
    assert part.shown == "Which of these is produced during [MASK] by plants?"
    assert informative_word("what is it", "what is it") is None


FIELDS = {"question": "Who?", "options": ["Ann", "Bob", "Cid", "Dee"], "answer": "B"}
RENDERED = "Who?\nA. Ann\nB. Bob\nC. Cid\nD. Dee\nAnswer: B"


@pytest.mark.parametrize("answer", ["B", "Bob"])
def test_only_wrong_options_are_masked(answer):
    seen = set()
    for number in range(40):
        text = f"{number} {RENDERED}"
        part = wrong_option(text, {**FIELDS, "answer": answer})
        seen.add(part.wanted)
        assert part.before == text[: text.rindex(part.wanted)]
        assert part.shown.count("[MASK]") == 1
        assert f"{part.option}: [MASK]" in part.shown
        assert part == wrong_option(text, {**FIELDS, "answer": answer})
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
def test_two_options_or_an_unknown_answer_mask_nothing(fields):
    """Deng et al. 2024: not defined for two-class data."""
    assert wrong_option(RENDERED, fields) is None
    result = mask_text(RENDERED, GuessRequest(method="option"), fields=fields)
    assert "three options or more" in result.reason


def test_prompts_match_the_paper():
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
def test_answers_are_stripped_of_surrounding_text(written, guess_):
    assert read_answer(written, 1, "passage") == guess_


class Oracle:
    """Knows the words and answers in a full sentence."""

    name = "oracle"

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    def answer(self, questions, sampling, *, progress=None):
        self.asked += questions
        completions = []
        for question in questions:
            for key, answer in self.answers.items():
                if key in question:
                    completions.append([Completion(answer, 9, 2)])
                    break
            else:
                completions.append([Completion("I do not know", 9, 2)])
        return completions

    complete = answer


def test_each_mask_has_one_prompt_and_costs_are_summed():
    masked = [
        mask_text(TEXT, GuessRequest(), words=WORDS),
        mask_text("", GuessRequest()),
        mask_text("dull", GuessRequest()),
    ]
    oracle = Oracle(**{"[MASK] four": "Output: three"})
    seen = []
    guesses = guess(
        oracle, masked, GuessRequest(), progress=lambda done, total: seen.append((done, total))
    )
    assert len(oracle.asked) == 2
    assert guesses[0].wanted == ("four", "three")
    assert guesses[0].exact("passage") == [False, True]
    assert (guesses[0].tokens_in, guesses[0].tokens_out) == (18, 4)
    assert guesses[1].reason == "empty text"
    assert "no word surprises" in guesses[2].reason
    assert seen == [(2, 2)]


def test_parts_guessed_by_the_knowledge_filter_are_not_requested():
    request = GuessRequest(filtered=True)
    masked = [mask_text(TEXT, request, words=WORDS)]

    def filtered(**answers):
        low = Oracle(**answers)
        single = guess(low, masked, GuessRequest(prompt="filter"))
        lists = guess(low, masked, GuessRequest(prompt="filter_100"))
        oracle = Oracle()
        guesses = guess(oracle, masked, request, is_known=known_parts(single, lists))[0]
        assert len(oracle.asked) == len(guesses.wanted)
        return guesses.wanted, guesses.filtered

    assert filtered() == (("four", "three"), 0)
    assert filtered(**{"three [MASK]": "1. none 2. FOUR"}) == (("three",), 1)
    assert filtered(**{"What is the word": "four"}) == (("three",), 1)
