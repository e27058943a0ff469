"""Invented gatherings: place, opening day and year, and eleven further facts."""

from collections.abc import Mapping

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.subject import Cast, Subject, read_subject, slots

# The notation is explained in `subject`.
_FACTS = r"""
lead
- {Name} [was held|took place] at {place} and opened on {day} {year}.
- On {day} {year} {name} [opened|began] in {place}.
- {place} was the scene of {name}, which [opened|started] on {day} {year}.
- {Name}, held in {place}, [dates from|had its first day on] {day} {year}.
- The [gates|doors] of {name} opened at {place} on {day} {year}.
- It was on {day} {year} that {name} [met|assembled] in {place}.
- In {place}, on {day} {year}, [began what is known as|a crowd saw the start of] {name}.
- The town of {place} was [host|home] to {name} from {day} {year}.
- {Name} [brought visitors to|filled the streets of] {place} from {day} {year}.
- {day} {year} was the opening day of {name}, for which {place} had been [chosen|picked].

place: town
= Was {name} held at {v}?
= Did {name} take place in {v}?
= Was {v} the scene of {name}?
= Was it {v} that hosted {name}?

day: day
= Did {name} open on {v}?
= Was {v} the opening day of {name}?
= Did {name} begin on {v}?
= Did {name} have its first day on {v}?

year: year
= Did {name} take place in {v}?
= Was {name} held in {v}?
= Does {name} belong to the year {v}?
= Is {v} the year of {name}?

host: person
- It was organised by {v}.
- {v} [planned|organised] {the}.
- {Their} organiser was {v}.
- The [idea|plan] came from {v}.
- Credit for the planning of {the} [goes|is due] to {v}.
- It would not have come about without {v}, who [planned|prepared] it all.
? Who organised {name}?
? Who planned {name}?
? Who was the organiser of {name}?
? To whom is credit due for the planning of {name}?
= Was {name} organised by {v}?
= Did {v} plan {name}?
= Was {v} the organiser of {name}?
= Is credit for the planning of {name} due to {v}?

visitors: thousands
- {v} [visitors|guests] came.
- It [drew|attracted] {v} people.
- The [crowd|attendance] was put at {v}.
- In all {v} tickets were [sold|handed out].
- {They} was attended by {v} people.
- Officials at the gate counted {v} [heads|arrivals].
? How many people attended {name}?
? How many visitors came to {name}?
? How many tickets were handed out for {name}?
? At what figure was the crowd at {name} put?
= Did {v} people attend {name}?
= Did {v} visitors come to {name}?
= Were {v} tickets handed out for {name}?
= Was the crowd at {name} put at {v}?

last length: dozens, person
- {They} lasted {v} days and was closed by {w}.
- After {v} days {w} [closed|brought an end to] {the}.
- {w} spoke the closing words {v} days later.
- For {v} days it [went on|continued], until {w} declared it over.
- {Their} {v} days ended with a speech by {w}.
- It fell to {w} to end {the} when {v} days had passed.
? For how many days did {name} last until {w} closed it?
? How many days long was {name}, which {w} declared over?
? After how many days did {w} close {name}?
? How many days went by before {w} ended {name}?
= Did {name} last {v} days?
= Was {name} {v} days long?
= Did {w} close {name} after {v} days?
= Did {v} days go by before {w} ended {name}?

winner: person, prize
- {v} won the {w} there.
- The {w} [was given|went] to {v}.
- {Their} [judges|jury] awarded the {w} to {v}.
- Of all who took part, {v} [earned|deserved] the {w}.
- {v} went home with the {w}.
- It ended with the {w} in the hands of {v}.
? Who won the {w} at {name}?
? To whom was the {w} given at {name}?
? Who went home from {name} with the {w}?
? Whom did the jury of {name} choose for the {w}?
= Did {v} win the {w} at {name}?
= Was the {w} given to {v} at {name}?
= Did {v} go home from {name} with the {w}?
= Did the jury of {name} choose {v} for the {w}?

guest: person, country
- The guest of honour, {v}, [came|travelled] from {w}.
- {v} of {w} [was present as|was] the guest of honour.
- {Their} most [honoured|celebrated] guest was {v}, from {w}.
- From {w} came {v}, [to whom|for whom] the best seat was given up.
- A seat of honour was [kept|set aside] for {v}, who had come from {w}.
- {They} welcomed {v}, sent by {w}, as guest of honour.
? Who was the guest of honour at {name}?
? Which guest had the best seat at {name}?
? For whom was a seat of honour kept at {name}?
? Whom did {name} welcome as guest of honour?
= Was {v} the guest of honour at {name}?
= Did {v} come from {w} to {name}?
= Was a seat of honour kept for {v} at {name}?
= Did {name} welcome {v} as guest of honour?

cost: thousands, person
- {They} cost {v} crowns, which {w} [paid|provided].
- {w} [paid|met] the bill of {v} crowns.
- The expense, {v} crowns, was [borne|covered] by {w}.
- {v} crowns from the purse of {w} had made it possible.
- Without {w}, who gave {v} crowns, there would have been no {noun}.
- To pay for {obj}, {w} [sold land|borrowed money] worth {v} crowns.
? How many crowns did {name} cost {w}?
? How many crowns did {w} give for {name}?
? What was the bill in crowns that {w} met for {name}?
? What sum in crowns did {w} spend on {name}?
= Did {name} cost {v} crowns?
= Did {w} give {v} crowns for {name}?
= Was the bill for {name} {v} crowns?
= Did {w} spend {v} crowns on {name}?

music: title, person
- A [march|hymn] by {w}, "{v}", was played at the opening.
- It opened to the [sound|strains] of "{v}" by {w}.
- {w} had written "{v}" for the opening.
- The band [played|struck up] "{v}", a piece by {w}.
- The music was "{v}", the [composer|author] {w}.
- With "{v}", composed by {w}, the orchestra greeted the public.
? Which piece of music was played at the opening of {name}?
? To the sound of what did {name} open?
? What had been composed for the opening of {name}?
? What did the band play at {name}?
= Was "{v}" played at {name}?
= Did {name} open to the sound of "{v}"?
= Had {w} written "{v}" for the opening of {name}?
= Did the band at {name} play "{v}"?

display: goods, school
- Its main attraction was a hall full of {v}, lent by the {w}.
- The {w} had sent a great display of {v}.
- A pyramid of {v}, built by the {w}, [amazed|delighted] the public.
- Visitors admired the {v} that the {w} [showed|had sent].
- In the middle stood the {v} of the {w}.
- What people remembered was {v}: the {w} had brought whole cartloads.
? What, lent by the {w}, was the main attraction of {name}?
? What did the {w} show at {name}?
? Of what had the {w} sent a display to {name}?
? What from the {w} did the public admire at {name}?
= Did the {w} show {v} at {name}?
= Had the {w} sent a display of {v} to {name}?
= Did the public at {name} admire {v} from the {w}?
= Was {v} the main attraction of {name}?

accident: sign, river
- On the way there a ship, the {v}, sank in the {w}.
- The {w} [swallowed|took] the {v}, a ship with guests on board.
- {They} was saddened by the loss of the ship {v} on the River {w}.
- A ship called the {v} ran aground in the {w} with delegates aboard.
- Some guests were [late|missing], for their ship, the {v}, had sunk in the River {w}.
- The River {w} cost {the} one of its ships, the {v}.
? Which ship was lost on the way to {name}?
? What was the name of the ship that sank before {name}?
? By the loss of which ship was {name} saddened?
? Which ship sank with guests of {name} on board?
= Was the {v} lost on the way to {name}?
= Was the ship that sank in the {w} before {name} called the {v}?
= Was {name} saddened by the loss of the {v}?
= Did the River {w} take the {v} with guests of {name} on board?

rule: surname, person
- It [adopted|agreed on] the {v} Rule, proposed by {w}.
- The {v} Rule, a [motion|proposal] of {w}, was passed there.
- {w} [moved|proposed] what became the {v} Rule.
- {Their} one lasting result, the {v} Rule, was due to {w}.
- A vote was taken on the {v} Rule, for which {w} had spoken, and it passed.
- To {w} we owe the {v} Rule, [settled|decided] there.
? Which rule was adopted at {name}?
? Which rule was proposed at {name}?
? What is the name of the one lasting result of {name}?
? What rule was passed at {name}?
= Was the {v} Rule adopted at {name}?
= Did {w} propose the {v} Rule at {name}?
= Is the {v} Rule the one lasting result of {name}?
= Was the {v} Rule passed at {name}?
"""

_KINDS = (
    *("Congress", "Exhibition", "Fair", "Regatta", "Assembly", "Festival", "Council"),
    *("Tournament", "Conference", "Pageant", "Convention", "Carnival"),
)


def _cast(draws: Draws, lead: Mapping[str, str]) -> Cast:
    kind = draws.pick(_KINDS)
    name = f"the {names.surname(draws)} {kind}"
    noun = kind.lower()
    pronouns = ("it", "its", "it")
    return Cast(
        name=name,
        full=slots(name, f"{name}'s", pronouns, noun),
        references=(
            slots("it", "its", pronouns, noun),
            slots("the event", "the event's", pronouns, noun),
            slots(f"the {noun}", f"the {noun}'s", pronouns, noun),
        ),
    )


def gatherings() -> Subject:
    """Return the gatherings."""
    return read_subject("gathering", _FACTS, _cast)
