"""What a kind of subject is: the facts it can have and the sentences that state them.

A kind of subject is written down in blocks divided by empty lines. The block `lead` holds first
sentences. Every other block is one fact, headed by its key and by the functions of `names` that
draw its value and, where it has one, its companion value:

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
from functools import cached_property

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.draws import Draws

Maker = Callable[[Draws], str]

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


def slots(
    subject: str, possessive: str, pronouns: tuple[str, str, str], noun: str
) -> dict[str, str]:
    """Return the reference slots for a way to name the subject.

    Args:
        subject: as within a sentence: `she`, `the town`, `Velmora`.
        possessive: `her`, `the town's`, `Velmora's`.
        pronouns: subject, possessive and object pronoun.
        noun: what the subject is: `town`.
    """
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


def read_subject(
    kind: str, facts: str, naming: Callable[[Draws, Mapping[str, str]], Naming]
) -> Subject:
    """Read the notation described at the top of this module.

    Args:
        kind: what the subjects are called.
        facts: blocks divided by empty lines.
        naming: names a new subject.
    """
    lead: tuple[Pattern, ...] = ()
    read: list[Fact] = []
    for block in facts.strip().split("\n\n"):
        head, *lines = block.splitlines()
        said = {
            mark: tuple(Pattern(line[2:]) for line in lines if line[0] == mark) for mark in "-?="
        }
        name, _, makers = head.partition(": ")
        if not makers:
            lead = said["-"]
            continue
        value, _, companion = makers.partition(", ")
        read.append(
            Fact(
                key=name.removeprefix("last "),
                last=name.startswith("last "),
                value=getattr(names, value),
                companion=getattr(names, companion) if companion else None,
                statements=said["-"],
                questions=said["?"],
                yes_no_questions=said["="],
            )
        )
    return Subject(
        kind=kind,
        lead=lead,
        lead_facts=tuple(fact for fact in read if not fact.statements),
        details=tuple(fact for fact in read if fact.statements),
        naming=naming,
    )
