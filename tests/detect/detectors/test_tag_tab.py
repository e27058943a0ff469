"""`tag_tab` against a second writing-down of its definition, and the mistakes of its code."""

import math
import re

import numpy as np
import pytest

from detect.detector_settings import parse_detectors
from detect.detectors.tag_tab import sentence_spans
from detect.evidence import Evidence
from detect.evidence.entities import Entities
from detect.evidence.token_counts import count_words
from detect.named_entities import NamedEntity
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


def naive(text: str, statistics, k: int, *, first: bool = False) -> float:
    total, kinds = FREQUENCY.total, len(FREQUENCY.counts)
    chosen = set()
    for sentence in re.finditer(r"[^.!?]+[.!?]?", text):
        words = [
            (sentence.start() + found.start(), sentence.start() + found.end())
            for found in re.finditer(r"\w+", sentence.group())
        ]
        if not 7 <= len(words) <= 40:
            continue
        ranked, seen = [], set()
        for place, (start, stop) in enumerate(words):
            word = text[start:stop].lower()
            if word not in seen:
                seen.add(word)
                p = (FREQUENCY.counts.get(word, 0) + 1) / (total + kinds + 1)
                ranked.append((-p * math.log2(p), place, start, stop))
        for _, _, start, stop in sorted(ranked)[:k]:
            inside = [
                index
                for index, (one, end) in enumerate(statistics.offsets.tolist())
                if one < stop and end > start
            ]
            chosen.update(inside[:1] if first else inside)
    return math.fsum(float(statistics.log_probability[index]) for index in chosen) / len(chosen)


TEXT = (
    SENTENCE
    + " Too short to count. He was in Timbuktu and she was in Samarkand for a very long while! "
    + "It is the river, it is the river, it is the bank and the river again?"
)


@pytest.mark.parametrize("k", range(1, 11))
@pytest.mark.parametrize("tokens", ["all", "first"])
def test_it_follows_the_definition(k, tokens):
    statistics = tokens_of(TEXT)
    expected = naive(TEXT, statistics, k, first=tokens == "first")
    assert score(TEXT, statistics, k=k, tokens=tokens).value == pytest.approx(expected, rel=1e-6)


def test_rare_words_count_and_frequent_ones_do_not():
    rare = tokens_of(SENTENCE, {"old": -1.0, "Zanzibar": -2.0, "quiet": -6.0})
    assert score(SENTENCE, rare, k=3).value == pytest.approx(-3.0)


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
    assert "does not say where" in score(SENTENCE, nowhere).reason


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


def test_the_defaults():
    (setting,) = parse_detectors("tag_tab")
    assert setting.text == "k=5"
    assert [one.k for one in setting.detector.grid] == list(range(1, 11))


PLACES = (
    "Mister Ada Lovelace and the old river of Zanzibar was to it for London. "
    "She went to Paris. He was in the river and the bank of York for a while!"
)
ENTITIES = [
    NamedEntity(7, 19, "PERSON"),
    *(
        NamedEntity(PLACES.index(one), PLACES.index(one) + len(one), "GPE")
        for one in ("Zanzibar", "London", "Paris", "York")
    ),
]


def keyword_places(k: int, entities: str) -> set[int]:
    """Return the first character of each keyword of `PLACES`, word by word."""
    total, kinds = FREQUENCY.total, len(FREQUENCY.counts)
    found: set[int] = set()
    for sentence in re.finditer(r"[^.!?]+[.!?]?", PLACES):
        words = [
            (sentence.start() + one.start(), one.group().lower())
            for one in re.finditer(r"\w+", sentence.group())
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
        found |= {first[word] for word in ranked[:k]}
        for start, stop, _ in ENTITIES:
            inside = sentence.start() <= start < sentence.end()
            if inside and (entities == "every_word" or " " not in PLACES[start:stop]):
                named = [word for place, word in words if start <= place < stop]
                found |= {first[word] for word in named} if entities != "none" else set()
    return found


@pytest.mark.parametrize("entities", ["none", "one_word", "every_word"])
@pytest.mark.parametrize("tokens", ["all", "first"])
@pytest.mark.parametrize("k", range(1, 11))
def test_named_entities_come_on_top_of_the_rare_words(k, tokens, entities):
    """Both of the authors' codes cut the union to K again, which takes most entities out."""
    statistics = tokens_of(PLACES)
    places = keyword_places(k, entities)
    values = [
        float(value)
        for value, (start, stop) in zip(
            statistics.log_probability, statistics.offsets.tolist(), strict=True
        )
        if {start, start + 1} & places and stop - start > 1
    ]
    found = score(PLACES, statistics, given=ENTITIES, k=k, tokens=tokens, entities=entities)
    assert found.value == pytest.approx(math.fsum(values) / len(values), rel=1e-6)


def test_which_entities_are_keywords():
    """Of one word, or every word; a sentence of four words has none, one that the text repeats
    counts where it stands first."""
    rare = keyword_places(1, "none")
    single = [PLACES.index(one) for one in ("Zanzibar", "London", "York")]
    assert keyword_places(1, "one_word") == {*rare, *single}
    both = [PLACES.index(one) for one in ("Ada", "Lovelace")]
    assert keyword_places(1, "every_word") == {*rare, *single, *both}


def test_an_entity_that_the_text_repeats_counts_once_where_it_stands_first():
    text = "It was in Paris for a while and he was in Paris."
    statistics = tokens_of(text, {"Paris": -2.0, "while": -4.0})
    again = text.rindex("Paris")
    entity = NamedEntity(again, again + 5, "GPE")
    # `while` and `Paris` are rarest: with K = 1 the first of them, and the entity.
    found = score(text, statistics, given=[entity], k=1, entities="one_word")
    assert found.value == pytest.approx(-2.0)
    assert score(text, statistics, given=[], k=2).value == pytest.approx(-3.0)


def test_without_a_tagger_the_setting_and_the_score_are_those_of_before():
    (setting,) = parse_detectors("tag_tab:entities=none")
    assert setting.text == "k=5"
    assert [str(need) for need in setting.needs] == ["view text", "token frequencies"]
    (named,) = parse_detectors("tag_tab:entities=one_word")
    assert named.text == "k=5:entities=one_word"
    assert [str(need) for need in named.needs][2:] == ["named entities"]
    statistics = tokens_of(PLACES)
    assert score(PLACES, statistics, given=ENTITIES) == score(PLACES, statistics)


@pytest.mark.parametrize(
    ("given", "note"), [(ENTITIES, "in 1 of 1 texts"), ([], "NO named entity in any text")]
)
def test_how_many_texts_have_entities_is_said(given, note):
    column = columns(PLACES, tokens_of(PLACES), given=given, entities="one_word")
    assert note in column.notes[0]
    assert columns(PLACES, tokens_of(PLACES), given=given).notes == ()
