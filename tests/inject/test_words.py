"""Words: equivalent forms, scripts without spaces, and mixtures."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.background.document import Document
from inject.overlap.hashes import RollingHash, Vocabulary
from inject.overlap.index import OverlapIndex
from inject.overlap.settings import OverlapSettings
from inject.words import places, readings, run_stops, weight, words_of
from tests.inject.overlap import oracles
from tests.inject.overlap.oracles import best_jaccard, make_example, naive_offences

ENGLISH = (
    "The café at the old harbour, built in 1908 for the fishermen's office of the town, "
    "was sold to three brothers from the northern coast last winter"
)
CHINESE = (
    "从前有一位年轻的木匠住在河边的小镇上,他每天清晨都要划船到对岸的森林里去砍伐做家具用的木材。"
)
JAPANESE = (
    "むかしむかし、川のほとりの小さな町に若い大工が住んでいて、"
    "毎朝ボートで向こう岸の森へ木を切りに行きました。"
)
THAI = "กาลครั้งหนึ่งมีช่างไม้หนุ่มคนหนึ่งอาศัยอยู่ในเมืองเล็กริมแม่น้ำ เขาพายเรือข้ามฝั่งไปตัดไม้ในป่าทุกเช้า"
KHMER = "កាលពីព្រេងនាយមានជាងឈើវ័យក្មេងម្នាក់រស់នៅក្នុងទីប្រជុំជនតូចមួយក្បែរមាត់ទន្លេហើយគាត់អុំទូករាល់ព្រឹកទៅកាប់ឈើក្នុងព្រៃ"
MYANMAR = "ရှေးရှေးတုန်းကလက်သမားလူငယ်တစ်ယောက်သည်မြစ်ကမ်းနားရှိမြို့ငယ်လေးတွင်နေထိုင်ပြီးနံနက်တိုင်းလှေလှော်ကာတောထဲသို့သစ်ခုတ်သွားလေသည်"
LAO = "ຄັ້ງໜຶ່ງມີຊ່າງໄມ້ໜຸ່ມຄົນໜຶ່ງອາໄສຢູ່ໃນເມືອງນ້ອຍແຄມແມ່ນ້ຳລາວພາຍເຮືອຂ້າມຝັ່ງໄປຕັດໄມ້ໃນປ່າທຸກເຊົ້າ"
HINDI = "बहुत समय पहले नदी के किनारे एक छोटे शहर में एक युवा बढ़ई रहता था और वह हर सुबह नाव से जंगल जाता था"
MIXED = (
    "The word 木匠 means a carpenter, 住在河边的小镇上 is said of one who lives by the river 森林"
)

words = ENGLISH.split()
VARIANTS = {
    "underscored": " ".join(f"_{word}_" for word in words),
    "underscores for spaces": "_".join(words),
    "bold": " ".join(f"**{word}**" for word in words),
    "tags between words": "<td>".join(words),
    "tags inside words": " ".join(f"{word[0]}<b>{word[1:]}</b>" for word in words),
    "tags with attributes": ' <span class="a b" id=c>'.join(words),
    "comments": " <!-- an invisible note --> ".join(words),
    "entities": "&nbsp;".join(words).replace("é", "&eacute;").replace("'", "&#39;"),
    "links": " ".join(f"[{word}](https://example.org/{word}_(a)?q=1)" for word in words),
    "wiki links": " ".join(f"[[Some page|{word}]]" for word in words),
    "footnotes": "[12] ".join(words),
    "references": '<ref name="x">Smith 1999, p. 3</ref> '.join(words),
    "commands": " ".join(f"\\emph{{{word}}}" for word in words),
    "full width": "".join(
        chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else "\u3000" if sign == " " else sign
        for sign in ENGLISH
    ),
    "decomposed": unicodedata.normalize("NFD", ENGLISH),
    "soft hyphens": " ".join("\u00ad".join(word) for word in words),
    "zero-width spaces": " ".join("\u200b".join(word) for word in words),
    "joiners": "\u2060\ufeff".join(ENGLISH),
    "capitals": ENGLISH.upper(),
    "ligatures": ENGLISH.replace("fi", "\ufb01").replace("ff", "\ufb00"),
    "other spaces": "\u00a0\n\u2003".join(words),
    "typographic": ENGLISH.replace("'", "\u2019").replace(",", "\u2014"),
}


def matched_rules(text: str, document: str, **given_rules) -> set[str]:
    """The rules by which a document overlaps with a text."""
    index = OverlapIndex([make_example(text)], OverlapSettings(**given_rules))
    return {match.rule for match in index.overlaps(Document(document, "f:1"))}


@pytest.mark.parametrize("variant", VARIANTS)
def test_reformatted_copy_is_found(variant):
    document = f"Before it. {VARIANTS[variant]} and after it."
    assert matched_rules(ENGLISH, document) == {"n-gram", "near-duplicate"}
    # Either may be the example.
    assert matched_rules(VARIANTS[variant], f"Before it. {ENGLISH} after.") == {
        "n-gram",
        "near-duplicate",
    }


SCRIPTS = {
    "Chinese": CHINESE,
    "Japanese": JAPANESE,
    "Thai": THAI,
    "Lao": LAO,
    "Khmer": KHMER,
    "Myanmar": MYANMAR,
    "Hindi": HINDI,
    "mixed": MIXED,
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_exact_copy_is_found_in_any_script(script):
    text = SCRIPTS[script]
    index = OverlapIndex([make_example(text)], OverlapSettings())
    assert index.unchecked == ()
    document = f"Words before it. {text}。我们"
    offences = index.overlaps(Document(document, "f:1"))
    assert {match.rule for match in offences} == {"n-gram", "near-duplicate"}
    for match in offences:
        assert match.text.strip(" …") in document
        assert len(match.text) > 0.4 * len(text)


def test_other_text_in_the_same_script_is_not_flagged():
    other = "我们昨天在学校里学习了新的歌曲,老师说下个星期要在全校的同学面前表演这首歌曲给大家听。"
    assert matched_rules(CHINESE, other) == set()
    assert matched_rules(CHINESE, other + CHINESE[:8] + other) == set()
    assert matched_rules(CHINESE, other + CHINESE[:24] + other) >= {"n-gram"}


def test_text_resembling_markup_is_also_read_literally():
    text = "if a<b and the old value of the counter is small or c>d then the loop ends at once here"
    assert matched_rules(text, f"So {text} again") == {"n-gram", "near-duplicate"}
    alt = f'<img src="x.png" alt="{ENGLISH}">'
    assert matched_rules(ENGLISH, alt) == {"n-gram", "near-duplicate"}


SIGNS = st.sampled_from(
    [*"abz09 _-é\u0301\u00df\ufb01\u3000\uff21\u00ad\u200b\n<>/&;[](|)", "<b>", "</b>", "<p>",
     "&amp;", "&eacute;", "](u)", "[[x|", "[3]", "\\emph{", "你", "好", "の", "カ", "\uff76\uff9e",
     "ก", "\u0e49", "က", "\u1103\u1161", "한", "हि", "\u0130", "\ufeff"]
)  # fmt: skip
TEXTS = st.lists(SIGNS, max_size=30).map("".join)


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_units_are_located_in_the_text(text):
    for number, units in enumerate(readings(text)):
        positions = places(text, number)
        assert len(positions) == len(units)
        for place, unit in zip(positions, units, strict=True):
            cut = text[place.start : place.stop]
            assert unit in readings(cut)[0] or unit in readings(cut)[-1]


PLAIN = st.lists(
    st.sampled_from([*"ab1 _.", "é", "e\u0301", "\uff21", "\ufb01", "你", "好", "の", "ก", "\u0e49",
                     "က", "한", "हि", "ß"]), max_size=30).map("".join)  # fmt: skip


@given(PLAIN)
@settings(max_examples=100, deadline=None)
def test_units_match_their_description(text):
    assert words_of(text) == oracles.words_of(text)
    assert [weight(unit) for unit in words_of(text)] == [
        oracles.tenths(unit) for unit in oracles.words_of(text)
    ]


UNITS = st.sampled_from(["a", "b", "c", "D,", "e.", "你", "好", "吗", "の", "か", "ก", "ข", "က"])
MIXTURES = st.lists(UNITS, max_size=45).map(" ".join)


@given(MIXTURES, st.integers(1, 9))
@settings(max_examples=80, deadline=None)
def test_runs_end_when_their_weight_is_reached(text, size):
    units = words_of(text)
    expected = oracles.all_runs(units, 10 * size)
    stops = run_stops(units, size)
    assert [tuple(units[start:stop]) for start, stop in enumerate(stops)] == expected
    vocabulary, hasher = Vocabulary(), RollingHash()
    words = vocabulary.add(units)
    runs = hasher.runs(hasher.prefixes(words, vocabulary.weights(words)), size)
    assert runs.stops.tolist() == stops
    assert runs.possible == len(expected)
    pairs = set(zip(expected, runs.hashes.tolist(), strict=True))
    assert len(pairs) == len(set(expected)) == len(set(runs.hashes.tolist()))


@given(
    texts=st.lists(MIXTURES, min_size=1, max_size=4),
    document=MIXTURES,
    size=st.integers(3, 14),
    share=st.sampled_from([None, 0.3, 1.0]),
)
@settings(max_examples=80, deadline=None)
def test_overlaps_of_mixed_scripts_match_brute_force(texts, document, size, share):
    plain = list(dict.fromkeys(texts))
    examples = [make_example(text) for text in plain]
    rules = OverlapSettings(ngram=size, share=share, near_duplicate=None)
    overlaps = OverlapIndex(examples, rules).overlaps(Document(document, "f:1"))
    expected = naive_offences(plain, document, size, share)
    assert {match.example_id for match in overlaps} == {examples[at].example_id for at in expected}


@given(
    text=st.lists(st.sampled_from("abcdefgh你好の"), min_size=8, max_size=26).map(" ".join),
    edits=st.lists(st.tuples(st.integers(0, 25), st.sampled_from("abcxyz好の")), max_size=8),
    around=st.lists(st.sampled_from("abcdxyz"), max_size=6).map(" ".join),
    threshold=st.sampled_from([0.25, 0.3, 0.5, 0.6, 0.8, 1.0]),
)
@settings(max_examples=80, deadline=None)
def test_near_duplicates_match_brute_force(text, edits, around, threshold):
    """Every stretch of the document, from anywhere to anywhere, is compared."""
    edited = text.split()
    for place, word in edits:
        edited[place % len(edited)] = word
    document = f"{around} {' '.join(edited)} {around}"
    rules = OverlapSettings(ngram=None, near_duplicate=threshold)
    others = [make_example(" ".join(reversed(text.split()))), make_example("x " * 20 + "y z")]
    # Words outside all examples count separately each time; here all words are known.
    vocabulary = make_example("a b c d e f g h x y z 你 好 の")
    index = OverlapIndex([make_example(text), *others, vocabulary], rules)
    similar = {
        match.example_id: match.similarity for match in index.overlaps(Document(document, "f:1"))
    }
    for example in [make_example(text), *others]:
        expected = best_jaccard(example.text, document)
        if expected >= threshold:
            assert np.isclose(similar[example.example_id], expected, atol=1e-4)
        else:
            assert example.example_id not in similar
