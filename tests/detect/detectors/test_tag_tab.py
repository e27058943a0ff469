"""`tag_tab` against a second writing-down of its definition, and the mistakes of its code."""

import math
import re

import numpy as np
import pytest

from detect.detector_settings import parse_detectors
from detect.detectors.tag_tab import sentence_spans
from detect.evidence import Evidence
from detect.evidence.entities import Entities, NamedEntity
from detect.evidence.token_counts import count_words
from detect.registry import get_detector
from detect.token_frequency import TokenFrequency, WordFrequency
from tests.detect.evidence_samples import statistics_of

CORPUS = ["the the the the of of of and and a a in river bank was is were it to for he she"] * 5
FREQUENCY = count_words(CORPUS)
SENTENCE = "The river and the old bank of Zanzibar was quiet."


def tokens_of(text: str, values: dict[str, float] | None = None):
    """One token a word, with the space before it; punctuation apart. The first is not scored."""
    spans = [found.span() for found in re.finditer(r"\s?\w+|[^\w\s]", text)]
    random = np.random.Generator(np.random.Philox(key=len(text)))
    drawn = [-float(value) for value in random.gamma(1.0, 2.0, len(spans))]
    for index, (start, stop) in enumerate(spans):
        word = text[start:stop].strip()
        if values is not None:
            drawn[index] = values.get(word, -100.0)
    return statistics_of(drawn, offsets=spans)


def score(text: str, statistics, **given):
    return columns(text, statistics, **given).scores[0]


def columns(
    text: str, statistics, words: WordFrequency | None = FREQUENCY, given=None, **parameters
):
    detector = get_detector("tag_tab").detector
    evidence = Evidence(
        texts=[text],
        statistics={"text": [statistics]},
        frequency=TokenFrequency(counts=np.ones(4, np.int64), words=words),
        further={} if given is None else {Entities(): [given]},
    )
    (column,) = detector.score(evidence, [detector.parameters.model_validate(parameters)])
    return column


PLACES = (
    "Mister Ada Lovelace and the old river of Zanzibar was to it for London. Too short to count. "
    "She went to Paris. He was in the river and the bank of York for a while! "
    "It is the river, it is the river, it is the bank and the river again?"
)
ENTITIES = [
    NamedEntity(PLACES.index(one), PLACES.index(one) + len(one), label)
    for one, label in (
        ("Ada Lovelace", "PERSON"), ("Zanzibar", "GPE"), ("London", "GPE"), ("Paris", "GPE"),
        ("York", "GPE"),
    )
]  # fmt: skip


def keyword_places(k: int, entities: str) -> set[int]:
    """Return the first character of each keyword of `PLACES`, word by word.

    Entities of one word or every word of them; a sentence of four words has none, and what the
    text repeats counts where it stands first.
    """
    total, kinds = FREQUENCY.total, len(FREQUENCY.counts)
    places: set[int] = set()
    for sentence in re.finditer(r"[^.!?]+[.!?]?", PLACES):
        words = [
            (sentence.start() + match.start(), match.group().lower())
            for match in re.finditer(r"\w+", sentence.group())
        ]
        if not 7 <= len(words) <= 40:
            continue
        first: dict[str, int] = {}
        for place, word in words:
            first.setdefault(word, place)

        def information(word: str) -> float:
            p = (FREQUENCY.counts.get(word, 0) + 1) / (total + kinds + 1)
            return -p * math.log2(p)

        ranked = sorted(first, key=lambda word: (information(word), first[word]))
        places |= {first[word] for word in ranked[:k]}
        for start, stop, _ in ENTITIES:
            inside = sentence.start() <= start < sentence.end()
            if inside and (entities == "every_word" or " " not in PLACES[start:stop]):
                named = [word for place, word in words if start <= place < stop]
                places |= {first[word] for word in named} if entities != "none" else set()
    return places


@pytest.mark.parametrize("entities", ["none", "one_word", "every_word"])
def test_named_entities_come_on_top_of_the_rare_words(entities):
    """Both of the authors' codes cut the union to K again, which takes most entities out."""
    statistics = tokens_of(PLACES)
    for k in range(1, 11):
        places = keyword_places(k, entities)
        values = [
            float(value)
            for value, (start, stop) in zip(
                statistics.log_probability, statistics.offsets.tolist(), strict=True
            )
            if {start, start + 1} & places and stop - start > 1
        ]
        found = score(PLACES, statistics, given=ENTITIES, k=k, entities=entities)
        assert found.value == pytest.approx(math.fsum(values) / len(values), rel=1e-6)


def test_a_word_that_the_corpus_lacks_is_the_rarest():
    """The authors' code gives such a word infinity, and never chooses it."""
    text = "he was in it for a zanzibar and she was it"
    statistics = tokens_of(text, {"zanzibar": -4.0})
    assert score(text, statistics, k=1).value == -4.0


def test_equal_words_are_chosen_as_they_stand():
    text = "unseen other strange odd queer weird novel"
    statistics = tokens_of(text, {"unseen": -1.0, "other": -3.0})
    assert [score(text, statistics, k=2).value for _ in range(3)] == [-2.0] * 3


def test_a_keyword_is_found_where_it_stands_not_at_its_first_letters_in_the_text():
    text = "Cataracts. He was in it for a very long cat and she was it."
    statistics = tokens_of(text, {"cat": -2.0, "very": -2.0, "long": -2.0, "Cataracts": -50.0})
    assert score(text, statistics, k=3).value == pytest.approx(-2.0)


def test_all_tokens_of_a_word_count_or_its_first_alone():
    text = "he was in it for a zanzibar and she was it"
    start = text.index("zanzibar")
    offsets = [(start - 1, start + 3), (start + 3, start + 8), (start + 8, start + 12)]
    statistics = statistics_of([-1.0, -3.0, -90.0], offsets=offsets)
    assert score(text, statistics, k=1).value == pytest.approx(-2.0)
    assert score(text, statistics, k=1, tokens="first").value == pytest.approx(-1.0)


def test_the_first_token_of_the_text_has_no_history_and_is_nobody_elses():
    """Without a start token the code is off by one: x_2 stands for x_1."""
    text = "Zanzibar was in it for a he she and was it"
    start = text.index(" was")
    rest = tokens_of(text)
    statistics = statistics_of(
        rest.log_probability[1:].tolist(), offsets=[tuple(one) for one in rest.offsets[1:].tolist()]
    )
    assert statistics.offsets[0].tolist() == [start, start + 4]
    assert "no token of a keyword" in score(text, statistics, k=1).reason
    # Its second half is scored; as the word's first token it does not count.
    half = statistics_of([-7.0], offsets=[(4, 8)])
    assert score(text, half, k=1).value == -7.0
    assert "no token of a keyword" in score(text, half, k=1, tokens="first").reason


def test_what_cannot_be_scored_says_why():
    statistics = tokens_of(SENTENCE)
    assert "no word frequencies" in score(SENTENCE, statistics, words=None).reason
    short = "The river bank."
    assert "no sentence of 7 to 40 words" in score(short, tokens_of(short)).reason
    long = "river " * 41
    assert "no sentence of 7 to 40 words" in score(long, tokens_of(long)).reason
    nowhere = statistics_of([-1.0] * 3)
    assert "does not report the positions" in score(SENTENCE, nowhere).reason


def test_sentences_end_where_readers_end_them():
    for text, expected in {
        "One. Two! Three?": ["One.", "Two!", "Three?"],
        'He said "Go." Then he went.': ['He said "Go.', "Then he went."],
        "No end": ["No end"],
        "A line\n\nanother 3.14 line": ["A line", "another 3.14 line"],
        "\u6771\u4eac\u3002\u5927\u962a\u3002": ["\u6771\u4eac\u3002", "\u5927\u962a\u3002"],
        "": [],
        "  ": ["  "],
    }.items():
        assert [text[start:stop] for start, stop in sentence_spans(text)] == expected


def test_an_entity_that_the_text_repeats_counts_once_where_it_stands_first():
    text = "It was in Paris for a while and he was in Paris."
    statistics = tokens_of(text, {"Paris": -2.0, "while": -4.0})
    again = text.rindex("Paris")
    entity = NamedEntity(again, again + 5, "GPE")
    # `while` and `Paris` are rarest: with K = 1 the first of them, and the entity.
    found = score(text, statistics, given=[entity], k=1, entities="one_word")
    assert found.value == pytest.approx(-2.0)
    assert score(text, statistics, given=[], k=2).value == pytest.approx(-3.0)


def test_a_tagger_is_needed_for_entities_alone_and_how_many_texts_have_some_is_said():
    plain, named = parse_detectors("tag_tab:entities=none,tag_tab:entities=one_word")
    assert [str(need) for need in plain.needs] == ["view text", "token frequencies"]
    assert [str(need) for need in named.needs][2:] == ["named entities"]
    statistics = tokens_of(PLACES)
    assert columns(PLACES, statistics, given=ENTITIES).notes == ()
    for given, note in ((ENTITIES, "in 1 of 1 texts"), ([], "NO named entity in any text")):
        assert note in columns(PLACES, statistics, given=given, entities="one_word").notes[0]
