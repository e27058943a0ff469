"""From a subject to prose: which facts it has, and four ways to tell the same ones.

A `Story` holds the facts of one row and, for each of them, four different sentences: version 0
is for the text, versions 1 to 3 are for its paraphrases. So a paraphrase shares with the text
the values of the facts and no sentence. Order, alternatives, references and connectives are
drawn anew for each version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

from inject.examples.datasets.fiction.names import Draws, with_article
from inject.examples.datasets.fiction.subject import Fact, Maker, Naming, Pattern, Subject

VERSIONS = 4

_CONNECTIVES = (
    *("Moreover,", "In addition,", "Besides,", "What is more,", "Beyond that,", "Furthermore,"),
    *("It is said that", "It is known that", "It is certain that", "Records show that"),
    *("By all accounts,", "As far as anyone knows,", "According to one source,"),
    *("Old papers tell us that", "Several documents confirm that", "Nobody doubts that"),
    *("It should be added that", "One reads that", "Most accounts agree that"),
)
_JOINTS = ("; ", ", and ", "; also, ", "; besides, ")
# Of 16 sentences, three begin with a connective and three are joined to the one before.
_CONNECTED, _JOINED = 3, 6
# The pronoun, twice as often as the short name and the description, of which none comes twice
# in a row.
_REFERENCES = (0, 0, 1, 2)
_PRONOUN = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StoryFact:
    """A fact with its values, and which of its sentences each version uses."""

    fact: Fact
    values: Mapping[str, str]
    """`v`, `a_v`, and `w` where the fact has a companion value."""
    statements: Sequence[int]
    questions: Sequence[int]
    yes_no_questions: Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """A subject with its facts."""

    subject: Subject
    naming: Naming
    lead: Sequence[int]
    """Which first sentence each version uses."""
    lead_values: Mapping[str, str]
    """The slots of the first sentence."""
    lead_facts: Sequence[StoryFact]
    details: Sequence[StoryFact]
    taken: set[str]
    """Values in use; no two in a row are the same."""


def invent(draws: Draws, subject: Subject, details: int) -> Story:
    """Return a new story with all lead facts and `details` others."""
    taken: set[str] = set()
    lead_facts = [_new_fact(draws, fact, taken) for fact in subject.lead_facts]
    values = {item.fact.key: item.values["v"] for item in lead_facts}
    naming = subject.naming(draws, values)
    taken.add(naming.name)
    slots = {**naming.full, "name": naming.name, "Name": _capital(naming.name)}
    for key, value in values.items():
        article = with_article(value)
        slots |= {key: value, key.capitalize(): _capital(value)}
        slots |= {f"a_{key}": article, f"A_{key}": _capital(article)}
    return Story(
        subject=subject,
        naming=naming,
        lead=_orders(draws, subject.lead),
        lead_values=slots,
        lead_facts=lead_facts,
        details=[_new_fact(draws, fact, taken) for fact in draws.sample(subject.details, details)],
        taken=taken,
    )


def new_value(draws: Draws, maker: Maker, taken: set[str]) -> str:
    """Return a value that the row does not use yet, and take it."""
    while (value := maker(draws)) in taken:
        pass
    taken.add(value)
    return value


def first_sentence(draws: Draws, story: Story, version: int) -> str:
    """Return the sentence that names the subject and tells the lead facts."""
    pattern = story.subject.lead[story.lead[version]]
    return draws.pick(pattern.wordings).format_map(story.lead_values)


def full_sentence(draws: Draws, story: Story, item: StoryFact, version: int) -> str:
    """Return one fact as a sentence of its own, with the subject's full name for a reference."""
    pattern = item.fact.statements[item.statements[version]]
    return draws.pick(pattern.wordings).format_map({**story.naming.full, **item.values})


def sentences(draws: Draws, story: Story, facts: Sequence[StoryFact], version: int) -> list[str]:
    """Return facts in the given order as sentences, some connected and some joined."""
    lines: list[str] = []
    joined = False
    last = _PRONOUN
    connectives = list(_CONNECTIVES)
    for item in facts:
        pattern = item.fact.statements[item.statements[version]]
        which = draws.below(len(pattern.wordings))
        drawn = draws.pick(_REFERENCES)
        last = _PRONOUN if drawn == last else drawn
        slots = {**story.naming.references[last], **item.values}
        manner = draws.below(16)
        if manner >= _JOINED or (not lines and manner >= _CONNECTED):
            lines.append(pattern.wordings[which].format_map(slots))
            joined = False
            continue
        continued = pattern.continuations[which].format_map(slots)
        if manner < _CONNECTED or joined:
            connective = connectives.pop(draws.below(len(connectives)))
            lines.append(f"{connective} {continued}")
            joined = False
        else:
            lines[-1] = f"{lines[-1][:-1]}{draws.pick(_JOINTS)}{continued}"
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
    return " ".join((first_sentence(draws, story, version), *lines))


def ask(draws: Draws, story: Story, item: StoryFact, version: int) -> str:
    """Return a question whose answer is the fact's value."""
    return _question(draws, story, item.fact.questions[item.questions[version]], item.values)


def check(draws: Draws, story: Story, item: StoryFact, value: str, version: int) -> str:
    """Return a question that asks whether `value` is the fact's value."""
    values = {**item.values, "v": value, "a_v": with_article(value)}
    return _question(
        draws, story, item.fact.yes_no_questions[item.yes_no_questions[version]], values
    )


def _question(draws: Draws, story: Story, pattern: Pattern, values: Mapping[str, str]) -> str:
    slots = {**story.naming.full, **values, "name": story.naming.name}
    return draws.pick(pattern.wordings).format_map(slots)


def _new_fact(draws: Draws, fact: Fact, taken: set[str]) -> StoryFact:
    value = new_value(draws, fact.value, taken)
    values = {"v": value, "a_v": with_article(value)}
    if fact.companion is not None:
        values["w"] = new_value(draws, fact.companion, taken)
    return StoryFact(
        fact=fact,
        values=values,
        statements=_orders(draws, fact.statements),
        questions=_orders(draws, fact.questions),
        yes_no_questions=_orders(draws, fact.yes_no_questions),
    )


def _orders(draws: Draws, lines: Sequence[Pattern]) -> Sequence[int]:
    return draws.pick(_arrangements(len(lines))) if lines else ()


@cache
def _arrangements(lines: int) -> tuple[tuple[int, ...], ...]:
    return tuple(permutations(range(lines), VERSIONS))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
