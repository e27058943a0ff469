"""The kinds of invented subjects: the facts each can have and the sentences that state them.

- people: trade, birthplace and year of birth, and fifteen further facts;
- towns: country, year of foundation and chief product, and eleven further facts;
- works: kind, author and year, and eleven further facts;
- gatherings: place, opening day and year, and eleven further facts.

Each is written down in a `.txt` of its name, in blocks divided by empty lines. The block `lead`
holds first sentences. Every other block is one fact, headed by its key and by the functions of
`names` that draw its value and, where it has one, its companion value:

    book: title, age
    - {They} published "{v}" at the age of {w}.       a sentence that states it
    ? Which book did {name} publish?                  a question; the answer is the value
    = Did {name} write "{v}"?                         a question; the answer is yes or no

The lead states the facts that have no `-` lines, each under its key. A fact whose head begins with
`last` comes after the others, as a death does. `[studied|trained]` are alternatives; `Pattern`
holds all wordings of a line, expanded once. Slots:

- `{v}`, `{w}`: the fact's value and its companion; `{a_v}`: the value after `a` or `an`;
- `{They} {they} {Their} {their}`: the subject, by pronoun, short name or description;
- `{pro} {poss} {obj}`: always the pronoun (she, her, her; it, its, it);
- `{noun}`, `{the}`: what the subject is, bare and after `the`;
- `{name}` in leads and questions: the full name, `{Name}` at the start of a sentence;
- `{trade} {Trade} {a_trade} {A_trade}` in leads: the value of the lead fact `trade`, bare and
  after its article, each also with a capital.

Every value is drawn independently of every other, so nothing in a text gives another part of
it away, except where the text itself repeats it.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.names import Draws

Maker = Callable[[Draws], str]

_IT = ("it", "its", "it")
_GATHERINGS = (
    *("Congress", "Exhibition", "Fair", "Regatta", "Assembly", "Festival", "Council"),
    *("Tournament", "Conference", "Pageant", "Convention", "Carnival"),
)
_ALTERNATIVES = re.compile(r"\[([^\]]*)\]")


class Pattern:
    """One sentence in all its wordings, also as the continuation of another sentence."""

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def wordings(self) -> tuple[str, ...]:
        """Return each combination of the alternatives, with the slots left in."""
        parts = _ALTERNATIVES.split(self.source)
        choices = [part.split("|") if place % 2 else [part] for place, part in enumerate(parts)]
        return tuple("".join(chosen) for chosen in itertools.product(*choices))

    @cached_property
    def continuations(self) -> tuple[str, ...]:
        """Return the wordings without a capital at the start; names keep theirs."""
        return tuple(
            re.sub(r"^(\{The(?:y|ir)\}|[A-Z])", lambda found: found[0].lower(), wording)
            for wording in self.wordings
        )


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that can be true of a subject, and the ways to say and to ask it."""

    key: str
    """Name of the fact; unique within its kind of subject."""
    last: bool
    """Whether a text that tells several facts tells this one at its end."""
    value: Maker
    """Draws a value; wrong answers are drawn by the same function."""
    companion: Maker | None = None
    """Draws the second value `{w}` of facts that have one."""
    statements: tuple[Pattern, ...]
    """At least five sentences that say it; empty for the facts that the lead tells."""
    questions: tuple[Pattern, ...]
    """At least four questions whose answer is the value; empty for the facts of the lead."""
    yes_no_questions: tuple[Pattern, ...]
    """At least four questions whose answer is yes when `{v}` is the value, else no."""

    @property
    def asks_with_companion(self) -> bool:
        """Whether the questions of `ask` name the companion value; all do, or none."""
        return any("{w}" in pattern.source for pattern in self.questions)


@dataclass(frozen=True, kw_only=True)
class Naming:
    """How one subject is spoken of."""

    name: str
    """Full name, as within a sentence."""
    full: Mapping[str, str]
    """The slots filled by the full name."""
    references: tuple[Mapping[str, str], ...]
    """The slots filled by a pronoun, a short name or a description."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A kind of subject: people, towns, works or gatherings."""

    kind: str
    lead: tuple[Pattern, ...]
    """At least eight first sentences; each names the subject and tells all lead facts."""
    lead_facts: tuple[Fact, ...]
    details: tuple[Fact, ...]
    naming: Callable[[Draws, Mapping[str, str]], Naming]
    """Names a new subject, given the values of its lead facts."""


@cache
def subjects() -> tuple[Subject, ...]:
    """Return people, towns, works and gatherings."""
    return (
        _read_subject("person", names.data_text("people.txt"), _person),
        _read_subject("town", names.data_text("towns.txt"), _town),
        _read_subject("work", names.data_text("works.txt"), _work),
        _read_subject("gathering", names.data_text("gatherings.txt"), _gathering),
    )


def _person(draws: Draws, lead: Mapping[str, str]) -> Naming:
    name = names.person(draws)
    pronouns = draws.pick((("she", "her", "her"), ("he", "his", "him")))
    trade = lead["trade"]
    return _naming(name, trade, name, name, name.split()[1], f"the {trade}", pronouns=pronouns)


def _town(draws: Draws, lead: Mapping[str, str]) -> Naming:
    name = names.town(draws)
    return _naming(name, "town", name, name, "the town", name)


def _work(draws: Draws, lead: Mapping[str, str]) -> Naming:
    name = f'"{names.title(draws)}"'
    the_genre = f"the {lead['genre']}"
    return _naming(name, lead["genre"], f"{the_genre} {name}", the_genre, "the work", the_genre)


def _gathering(draws: Draws, lead: Mapping[str, str]) -> Naming:
    kind = draws.pick(_GATHERINGS)
    name = f"the {names.surname(draws)} {kind}"
    return _naming(name, kind.lower(), name, name, "the event", f"the {kind.lower()}")


def _naming(
    name: str,
    noun: str,
    full: str,
    owner: str,
    *references: str,
    pronouns: tuple[str, str, str] = _IT,
) -> Naming:
    """Return how a subject is spoken of.

    Args:
        name: full name, as within a sentence.
        noun: what the subject is: `town`.
        full: how a sentence names it in full.
        owner: whose things are, in such a sentence.
        references: how it is called but by pronoun: `the town`, `Velmora`.
        pronouns: subject, possessive and object pronoun.
    """
    pronoun, possessive, _ = pronouns
    return Naming(
        name=name,
        full=_slots(full, f"{owner}'s", pronouns, noun),
        references=(
            _slots(pronoun, possessive, pronouns, noun),
            *(_slots(called, f"{called}'s", pronouns, noun) for called in references),
        ),
    )


def _slots(
    subject: str, possessive: str, pronouns: tuple[str, str, str], noun: str
) -> dict[str, str]:
    pro, poss, obj = pronouns
    return {
        "They": subject[0].upper() + subject[1:],
        "they": subject,
        "Their": possessive[0].upper() + possessive[1:],
        "their": possessive,
        "pro": pro,
        "poss": poss,
        "obj": obj,
        "noun": noun,
        "the": f"the {noun}",
    }


def _read_subject(
    kind: str, text: str, naming: Callable[[Draws, Mapping[str, str]], Naming]
) -> Subject:
    """Read the notation described at the top of this module."""
    lead: tuple[Pattern, ...] = ()
    facts: list[Fact] = []
    for block in text.strip().split("\n\n"):
        head, *lines = block.splitlines()
        patterns = {
            mark: tuple(Pattern(line[2:]) for line in lines if line[0] == mark) for mark in "-?="
        }
        name, _, makers = head.partition(": ")
        if not makers:
            lead = patterns["-"]
            continue
        value, _, companion = makers.partition(", ")
        facts.append(
            Fact(
                key=name.removeprefix("last "),
                last=name.startswith("last "),
                value=getattr(names, value),
                companion=getattr(names, companion) if companion else None,
                statements=patterns["-"],
                questions=patterns["?"],
                yes_no_questions=patterns["="],
            )
        )
    return Subject(
        kind=kind,
        lead=lead,
        lead_facts=tuple(fact for fact in facts if not fact.statements),
        details=tuple(fact for fact in facts if fact.statements),
        naming=naming,
    )
