"""Invented people, towns, works and gatherings, and four versions of the same facts about them.

`fiction.yaml` has the rules for invented values, the facts and their sentences, and describes
the notation; it is read once per process, in about 0.1 s. A `Story` has the facts of one row and,
for each of them, four different sentences: version 0 is for the text, versions 1 to 3 are for its
paraphrases. So a paraphrase shares with the text the values of the facts and no sentence. Order,
alternatives, references and connectives are drawn again for each version.

The random numbers of a row are drawn once and then consumed in order (`Draws`): one call for 160
words costs about 10 microseconds; a call for each decision would cost a hundred times as much. A
row that needs more words draws on from the same generator.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BeforeValidator
from ruamel.yaml import YAML

from inject.keyed import Stream, generator
from inject.settings import Settings

DATA_FILES = ("fiction.yaml",)
VERSIONS = 4

T = TypeVar("T")
Lines = Annotated[tuple[str, ...], BeforeValidator(str.splitlines)]
Slots = dict[str, str]

_WORDS = 160
# Of 16 sentences, three begin with a connective and three are joined to the one before.
_CONNECTED, _JOINED = 3, 6
# The pronoun, twice as often as the short name and the description, of which none comes twice
# in a row.
_REFERENCES = (0, 0, 1, 2)
_PRONOUN = 0
_SLOTS = ("They", "they", "Their", "their", "pro", "poss", "obj", "noun", "the", "name")


class Fact(Settings):
    """A fact about a subject, with its statements and questions."""

    value: str
    """Kind of its value; wrong answers are drawn alike."""
    companion: str | None = None
    """Kind of the second value `{w}`, for facts that have one."""
    last: bool = False
    """Whether a text of several facts has this one at its end."""
    say: Lines = ()
    """Sentences that state it; none for the facts in the lead."""
    ask: Lines = ()
    """Questions whose answer is the value; all name the companion value, or none does."""
    check: Lines
    """Questions whose answer is yes when `{v}` is the value, else no."""


class Subject(Settings):
    """A kind of subject: people, towns, works or gatherings."""

    draws: tuple[str, ...]
    """Kinds of the values that it is named by."""
    name: str
    noun: str
    full: str
    owner: str = "{full}"
    short: str
    description: str
    lead: Lines
    """First sentences; each names the subject and states all lead facts."""
    facts: dict[str, Fact]


class Grammar(Settings):
    """The content of `fiction.yaml`."""

    invented: dict[str, int]
    """The number of words at the start of a value that only a reader of the row can know."""
    numbers: dict[str, tuple[int, int, str]]
    """Lowest, highest, and how it is written."""
    values: dict[str, str | tuple[str, ...]]
    """A text whose slots are values themselves, or a list to take one of."""
    connectives: tuple[str, ...]
    joints: tuple[str, ...]
    """Text between two sentences that are joined."""
    subjects: dict[str, Subject]


@cache
def grammar() -> Grammar:
    """Return the content of `fiction.yaml`."""
    path = Path(__file__).with_name(DATA_FILES[0])
    return Grammar.model_validate(YAML(typ="safe", pure=True).load(path))


class Draws:
    """Uniform decisions for row `index` of `seed`, in a fixed order."""

    def __init__(self, seed: int, index: int) -> None:
        self._generator = generator(seed, Stream.FICTION, index)
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """Return an integer, uniform on 0 <= x < bound up to bound / 2**64."""
        if not self._words:
            self._words = self._generator.bit_generator.random_raw(_WORDS).tolist()
        return (self._words.pop() * bound) >> 64

    def between(self, low: int, high: int) -> int:
        """Return an integer, uniform on low <= x <= high."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items, each as likely as another."""
        # As `below`, written out: a row makes about a hundred of these.
        words = self._words
        return items[(words.pop() * len(items)) >> 64 if words else self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different items in random order (the first steps of Fisher-Yates)."""
        pool = list(items)
        for place in range(count):
            other = place + self.below(len(pool) - place)
            pool[place], pool[other] = pool[other], pool[place]
        return pool[:count]

    def value(self, kind: str) -> str:
        """Return an invented value of a kind, independent of everything else."""
        rules, numbers = grammar().values, grammar().numbers
        if kind in numbers:
            low, high, form = numbers[kind]
            return format(self.between(low, high), form)
        if kind == "title":
            nouns = self.sample(rules["nouns"], 2)
            others = [self.value(other) for other in ("adjectives", "town", "adjectives")]
            return self.pick(rules["titles"]).format(*nouns, *others)
        rule = rules[kind]
        if isinstance(rule, tuple):
            return self.pick(rule)
        return "".join([self.value(part) if slot else part for slot, part in _parts(rule)])


@cache
def _parts(rule: str) -> list[tuple[int, str]]:
    """Return the text between the slots (0) and the kinds in them (1), in order."""
    return [(place % 2, part) for place, part in enumerate(re.split(r"{(\w+)}", rule)) if part]


@cache
def _wordings(line: str) -> tuple[str, ...]:
    """Return a line with each combination of its alternatives, with the slots left in."""
    parts = [part.split("|") for part in re.split(r"[][]", line)]
    return tuple(map("".join, itertools.product(*parts)))


@cache
def _continuations(line: str) -> tuple[str, ...]:
    """Return the wordings without a capital at the start; names keep theirs."""
    return tuple(
        re.sub(r"^(\{The(?:y|ir)\}|[A-Z])", lambda start: start[0].lower(), wording)
        for wording in _wordings(line)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class StoryFact:
    """A fact with its values, and the lines that each version uses."""

    key: str
    fact: Fact
    values: Slots
    """`v`, `a_v`, and `w` if the fact has a companion value."""
    say: Sequence[str]
    ask: Sequence[str]
    check: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """A subject with its facts."""

    kind: str
    name: str
    """Full name, as within a sentence."""
    full: Slots
    """The slots filled by the full name, and those of the first sentence."""
    references: Sequence[Slots]
    """The slots filled by the pronoun, the short name and the description."""
    lead: Sequence[str]
    """Which first sentence each version uses."""
    lead_facts: Sequence[StoryFact]
    details: Sequence[StoryFact]
    taken: set[str]
    """Values in use; no two in a row are the same."""

    def tell(self, draws: Draws, line: str, values: Slots | None = None) -> str:
        """Return a line in one of its wordings, with the subject's full name for a reference."""
        return draws.pick(_wordings(line)).format_map({**self.full, **(values or {})})


def invent(draws: Draws, kind: str, details: int) -> Story:
    """Return a new story with all lead facts and `details` others."""
    subject = grammar().subjects[kind]
    taken: set[str] = set()
    facts = subject.facts.items()
    lead_facts = [_new_fact(draws, *item, taken) for item in facts if not item[1].say]
    values = {item.key: item.values["v"] for item in lead_facts}
    drawn_values = {value: draws.value(value) for value in subject.draws}
    name = subject.name.format_map(drawn_values)
    taken.add(name)
    last = name.split()[-1]
    slots = {**values, "name": name, "last": last, "kind": last.lower()}
    pronouns = drawn_values.get("pronouns", "it its it").split()
    texts = (subject.noun, subject.full, subject.short, subject.description)
    noun, full, short, description = (text.format_map(slots) for text in texts)
    owner = subject.owner.format_map({**slots, "full": full})

    def forms(they: str, their: str) -> Slots:
        texts = (_capital(they), they, _capital(their), their, *pronouns, noun, f"the {noun}", name)
        return dict(zip(_SLOTS, texts, strict=True))

    in_full = {**forms(full, f"{owner}'s"), "Name": _capital(name)}
    for key, value in values.items():
        article = with_article(value)
        in_full |= {key: value, key.capitalize(): _capital(value)}
        in_full |= {f"a_{key}": article, f"A_{key}": _capital(article)}
    return Story(
        kind=kind,
        name=name,
        full=in_full,
        references=(
            forms(pronouns[0], pronouns[1]),
            forms(short, f"{short}'s"),
            forms(description, f"{description}'s"),
        ),
        lead=_orders(draws, subject.lead),
        lead_facts=lead_facts,
        details=[
            _new_fact(draws, *item, taken)
            for item in draws.sample([item for item in facts if item[1].say], details)
        ],
        taken=taken,
    )


def new_value(draws: Draws, kind: str, taken: set[str]) -> str:
    """Return a value that the row does not use yet, and take it."""
    while (value := draws.value(kind)) in taken:
        pass
    taken.add(value)
    return value


def sentences(draws: Draws, story: Story, facts: Sequence[StoryFact], version: int) -> list[str]:
    """Return facts in the given order as sentences, some connected and some joined."""
    lines: list[str] = []
    joined = False
    last = _PRONOUN
    connectives = list(grammar().connectives)
    for item in facts:
        line = item.say[version]
        which = draws.below(len(_wordings(line)))
        reference = draws.pick(_REFERENCES)
        last = _PRONOUN if reference == last else reference
        slots = {**story.references[last], **item.values}
        manner = draws.below(16)
        if manner >= _JOINED or (not lines and manner >= _CONNECTED):
            lines.append(_wordings(line)[which].format_map(slots))
            joined = False
            continue
        continued = _continuations(line)[which].format_map(slots)
        if manner < _CONNECTED or joined:
            connective = connectives.pop(draws.below(len(connectives)))
            lines.append(f"{connective} {continued}")
            joined = False
        else:
            lines[-1] = f"{lines[-1][:-1]}{draws.pick(grammar().joints)}{continued}"
            joined = True
    return lines


def shuffled(draws: Draws, facts: Sequence[StoryFact], version: int) -> list[StoryFact]:
    """Return the facts in an order of the version's own; version 0 keeps theirs.

    Facts marked `last` come last in all of them.
    """
    order = list(facts)
    if version:
        order = draws.sample(facts, len(facts))
        if order == list(facts):
            order.reverse()
    return sorted(order, key=lambda item: item.fact.last)


def prose(draws: Draws, story: Story, version: int) -> str:
    """Return the whole story: first sentence and details."""
    details = shuffled(draws, story.details, version)
    lines = sentences(draws, story, details, version)
    return " ".join((story.tell(draws, story.lead[version]), *lines))


def with_article(noun: str) -> str:
    """Return `noun` after `a` or `an`, for nouns that are spoken as they are spelled."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def _new_fact(draws: Draws, key: str, fact: Fact, taken: set[str]) -> StoryFact:
    value = new_value(draws, fact.value, taken)
    values = {"v": value, "a_v": with_article(value)}
    if fact.companion is not None:
        values["w"] = new_value(draws, fact.companion, taken)
    lines = {mark: _orders(draws, getattr(fact, mark)) for mark in ("say", "ask", "check")}
    return StoryFact(key=key, fact=fact, values=values, **lines)


def _orders(draws: Draws, lines: Sequence[str]) -> Sequence[str]:
    """Return a different line for each version."""
    return [lines[place] for place in draws.pick(_arrangements(len(lines)))] if lines else ()


@cache
def _arrangements(lines: int) -> tuple[tuple[int, ...], ...]:
    return tuple(itertools.permutations(range(lines), VERSIONS))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
