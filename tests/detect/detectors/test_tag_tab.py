"""`tag_tab` against a reimplementation of its definition, and mistakes of published code."""

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
    """One token per word with its leading space, separate punctuation; the first is not scored."""
    spans = [match.span() for match in re.finditer(r"\s?\w+|[^\w\s]", text)]
    random = np.random.Generator(np.random.Philox(key=len(text)))
    log_probabilities = [-float(value) for value in random.gamma(1.0, 2.0, len(spans))]
    for index, (start, stop) in enumerate(spans):
        word = text[start:stop].strip()
        if values is not None:
            log_probabilities[index] = values.get(word, -100.0)
    return statistics_of(log_probabilities, offsets=spans)


def score(text: str, statistics, **options):
    return columns(text, statistics, **options).scores[0]


def columns(
    text: str, statistics, words: WordFrequency | None = FREQUENCY, tagged=None, **parameters
):
    detector = get_detector("tag_tab").detector
    evidence = Evidence(
        texts=[text],
        statistics={"text": [statistics]},
        frequency=TokenFrequency(counts=np.ones(4, np.int64), words=words),
        further={} if tagged is None else {Entities(): [tagged]},
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

    Entities of one word or every word of them; a sentence of four words has none, and an
    entity that the text repeats counts at its first occurrence.
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
def test_named_entities_are_added_to_the_rare_words(entities):
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
        result = score(PLACES, statistics, tagged=ENTITIES, k=k, entities=entities)
        assert result.value == pytest.approx(math.fsum(values) / len(values), rel=1e-6)


def test_word_absent_from_the_corpus_is_the_rarest():
    """The authors' code gives such a word infinity, and never chooses it."""
    text = "he was in it for a zanzibar and she was it"
    statistics = tokens_of(text, {"zanzibar": -4.0})
    assert score(text, statistics, k=1).value == -4.0


def test_equally_rare_words_are_chosen_in_text_order():
    text = "unseen other strange odd queer weird novel"
    statistics = tokens_of(text, {"unseen": -1.0, "other": -3.0})
    assert [score(text, statistics, k=2).value for _ in range(3)] == [-2.0] * 3


def test_keyword_is_located_at_its_own_position_not_at_an_earlier_substring():
    text = "Cataracts. He was in it for a very long cat and she was it."
    statistics = tokens_of(text, {"cat": -2.0, "very": -2.0, "long": -2.0, "Cataracts": -50.0})
    assert score(text, statistics, k=3).value == pytest.approx(-2.0)


def test_all_tokens_of_a_word_count_or_only_its_first():
    text = "he was in it for a zanzibar and she was it"
    start = text.index("zanzibar")
    offsets = [(start - 1, start + 3), (start + 3, start + 8), (start + 8, start + 12)]
    statistics = statistics_of([-1.0, -3.0, -90.0], offsets=offsets)
    assert score(text, statistics, k=1).value == pytest.approx(-2.0)
    assert score(text, statistics, k=1, tokens="first").value == pytest.approx(-1.0)


def test_unscored_first_token_is_not_confused_with_the_next():
    """Without a start token the code is off by one: x_2 stands for x_1."""
    text = "Zanzibar was in it for a he she and was it"
    start = text.index(" was")
    tail = tokens_of(text)
    statistics = statistics_of(
        tail.log_probability[1:].tolist(),
        offsets=[tuple(span) for span in tail.offsets[1:].tolist()],
    )
    assert statistics.offsets[0].tolist() == [start, start + 4]
    assert "no token of a keyword" in score(text, statistics, k=1).reason
    # Its second half is scored; as the word's first token it does not count.
    half = statistics_of([-7.0], offsets=[(4, 8)])
    assert score(text, half, k=1).value == -7.0
    assert "no token of a keyword" in score(text, half, k=1, tokens="first").reason


def test_unscorable_text_reports_its_reason():
    statistics = tokens_of(SENTENCE)
    assert "no word frequencies" in score(SENTENCE, statistics, words=None).reason
    short = "The river bank."
    assert "no sentence of 7 to 40 words" in score(short, tokens_of(short)).reason
    long = "river " * 41
    assert "no sentence of 7 to 40 words" in score(long, tokens_of(long)).reason
    nowhere = statistics_of([-1.0] * 3)
    assert "does not report the positions" in score(SENTENCE, nowhere).reason


def test_sentences_end_at_their_punctuation():
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


def test_repeated_entity_counts_once_at_its_first_occurrence():
    text = "It was in Paris for a while and he was in Paris."
    statistics = tokens_of(text, {"Paris": -2.0, "while": -4.0})
    again = text.rindex("Paris")
    entity = NamedEntity(again, again + 5, "GPE")
    # `while` and `Paris` are rarest: with K = 1 the first of them, and the entity.
    result = score(text, statistics, tagged=[entity], k=1, entities="one_word")
    assert result.value == pytest.approx(-2.0)
    assert score(text, statistics, tagged=[], k=2).value == pytest.approx(-3.0)


def test_tagger_is_needed_only_for_entities_and_the_note_counts_texts_with_entities():
    plain, named = parse_detectors("tag_tab:entities=none,tag_tab:entities=one_word")
    assert [str(need) for need in plain.needs] == ["view text", "token frequencies"]
    assert [str(need) for need in named.needs][2:] == ["named entities"]
    statistics = tokens_of(PLACES)
    assert columns(PLACES, statistics, tagged=ENTITIES).notes == ()
    for tagged, note in ((ENTITIES, "in 1 of 1 texts"), ([], "NO named entity in any text")):
        assert note in columns(PLACES, statistics, tagged=tagged, entities="one_word").notes[0]
