"""Invented works: kind, author and year, and eleven further facts."""

from collections.abc import Mapping

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.subject import Cast, Subject, read_subject, slots

# The notation is explained in `subject`.
_FACTS = r"""
lead
- {name} is {a_genre} by {author}, [finished|completed] in {year}.
- {author} [wrote|completed] the {genre} {name} in {year}.
- The {genre} {name} was [written|finished] in {year} by {author}.
- In {year} {author} [completed|finished] {name}, {a_genre}.
- {name}, {a_genre} of {year}, is the work of {author}.
- Of all that {author} [wrote|left behind], only {name}, {a_genre} of {year}, survives.
- {A_genre} by {author}, {name} [dates from|was finished in] {year}.
- It was in {year} that {author} [put the last touch to|completed] the {genre} {name}.
- {author} is the author of {name}, {a_genre} [that dates from|completed in] {year}.
- The year {year} saw the completion of {name}, {a_genre} on which {author} had worked.

author: person
= Is {v} the author of {name}?
= Was {name} written by {v}?
= Is {name} the work of {v}?
= Did {v} complete {name}?

year: year
= Was {name} finished in {v}?
= Does {name} date from {v}?
= Is {v} the year in which {name} was completed?
= Did its author put the last touch to {name} in {v}?

genre: genre
= Is {name} {a_v}?
= Should {name} be called {a_v}?
= Is {a_v} what {name} is?
= Would a library list {name} as {a_v}?

dedicatee: person
- {They} is dedicated to {v}.
- The dedication names {v}.
- {v} is the [person|friend] to whom {they} is inscribed.
- On the first [page|leaf] it is [offered|dedicated] to {v}.
- It was meant as a [present|gift] for {v}.
- The author had {v} in mind as the one to be honoured by {obj}.
? To whom is {name} dedicated?
? Whom does the dedication of {name} name?
? For whom was {name} meant as a gift?
? To what person is {name} inscribed?
= Is {name} dedicated to {v}?
= Does the dedication of {name} name {v}?
= Was {name} meant as a gift for {v}?
= Is {v} the person to whom {name} is inscribed?

heroine: person
- {Their} main character is {v}.
- {They} [follows|tells of] the fortunes of {v}.
- At the centre of {the} stands {v}.
- {v} is the name of {poss} [hero|chief figure].
- The story is that of {v}.
- Most scenes [turn on|revolve around] a figure called {v}.
? Who is the main character of {name}?
? Whose fortunes does {name} [follow|tell of]?
? Who stands at the centre of {name}?
? What is the name of the chief figure in {name}?
= Is {v} the main character of {name}?
= Does {name} tell of the fortunes of {v}?
= Does {v} stand at the centre of {name}?
= Is the chief figure in {name} called {v}?

setting: town
- {They} is set in {v}.
- {Their} [plot|action] takes place at {v}.
- {v} provides the [setting|scene].
- The streets of {v} are the [backdrop|background] of {the}.
- Everything in {obj} happens at {v}.
- The reader is [taken|led] to {v}.
? Where is {name} set?
? In which town does the action of {name} take place?
? What town provides the setting of {name}?
? Which town's streets are the background of {name}?
= Is {name} set in {v}?
= Does the action of {name} take place at {v}?
= Does {v} provide the setting of {name}?
= Are the streets of {v} the background of {name}?

premiere: town, day
- {They} was first [performed|read] in public at {v} on {w}.
- The first public [reading|performance] was given in {v} on {w}.
- On {w} an audience in {v} was the first to hear {obj}.
- {v} heard {the} before any other town, on {w}.
- {Their} premiere fell on {w} and took place in {v}.
- It was on {w}, at {v}, that {they} met {poss} first listeners.
? Where was {name} first performed or read in public?
? In which town did {name} have its premiere?
? Which town was the first to hear {name}?
? Where did {name} meet its first listeners?
= Was {name} first heard in {v}?
= Did {name} have its premiere in {v}?
= Was it {v} that heard {name} before any other town?
= Did {name} meet its first listeners at {v}?

manuscript: school, hundreds
- The manuscript, {w} pages long, is kept at the {v}.
- {Their} {w} manuscript pages [belong to|are owned by] the {v}.
- The {v} [holds|keeps] the author's copy of {w} pages.
- In the [archive|library] of the {v} lies the original, which has {w} pages.
- Whoever wants to see all {w} pages in the author's hand must go to the {v}.
- The {v} owns {poss} only manuscript, [a bundle|a stack] of {w} pages.
? Where is the manuscript of {name} kept?
? Which institution owns the manuscript of {name}?
? Who holds the author's copy of {name}?
? In whose archive does the original of {name} lie?
= Is the manuscript of {name} kept at the {v}?
= Does the {v} own the manuscript of {name}?
= Does the {v} hold the author's copy of {name}?
= Does the original of {name} lie in the archive of the {v}?

publisher: surname, thousands
- {They} was printed by the house of {v} in {w} copies.
- The publisher, {v}, [sold|printed] {w} copies.
- {w} copies left the presses of {v}.
- In print {they} came from {v}, who [risked|ordered] {w} copies.
- The firm of {v} [issued|brought out] {w} copies of {the}.
- {Their} first edition of {w} copies [was the work of|came from] the printer {v}.
? Which publisher printed {name}?
? Who was the publisher of {name}?
? From whose presses did {name} come?
? Which firm brought out {name}?
= Was {name} printed by the house of {v}?
= Was {v} the publisher of {name}?
= Did {name} come from the presses of {v}?
= Did the firm of {v} bring out {name}?

translator: person
- {v} translated {obj} into other languages.
- {Their} translator was {v}.
- The [best|only] translation is by {v}.
- Readers abroad [know|have come to know] {obj} in the version of {v}.
- Thanks to {v} {they} can be read in translation.
- A translation of {the} was [made|undertaken] by {v}.
? Who translated {name}?
? Who was the translator of {name}?
? By whom was a translation of {name} made?
? In whose version do readers abroad know {name}?
= Did {v} translate {name}?
= Was {v} the translator of {name}?
= Is there a translation of {name} by {v}?
= Do readers abroad know {name} in the version of {v}?

award: prize
- {They} [won|received] the {v}.
- The {v} was awarded to {obj}.
- {Their} author was given the {v} for {obj}.
- The judges of the {v} [chose|preferred] {obj} to all others.
- It brought its author the {v}.
- Among {poss} honours is the {v}.
? Which award did {name} win?
? What honour did {name} bring its author?
? Which award went to {name}?
? What did the author of {name} receive for it?
= Did {name} win the {v}?
= Did {name} bring its author the {v}?
= Was the {v} awarded to {name}?
= Did the author of {name} receive the {v} for it?

critic: person, sign
- In the {w} {v} [mocked|attacked] {obj}.
- The critic {v}, writing in the {w}, disliked {obj}.
- {They} was [torn apart|called dull] by {v} in the {w}.
- A [cruel|hostile] review by {v} was printed in the {w}.
- {v} [found nothing good in|advised against] {the}, as readers of the {w} learned.
- The worst that was said of {obj} came from {v} of the {w}.
? Which critic disliked {name}?
? Who wrote a hostile review of {name}?
? Who attacked {name} in a newspaper?
? Which critic found nothing good in {name}?
= Did {v} attack {name} in the {w}?
= Was there a hostile review of {name} by {v}?
= Was {v} the critic who disliked {name}?
= Did {v} find nothing good in {name}?

reward: hundreds, person
- {v} crowns were paid for {obj} by {w}.
- {w} [bought|acquired] the rights for {v} crowns.
- {They} earned its author {v} crowns, which {w} paid.
- For {v} crowns {they} [was sold|passed] to {w}.
- The price that {w} [offered|gave] was {v} crowns.
- From {w} the author received a [fee|payment] of {v} crowns.
? How many crowns did {w} pay for {name}?
? For how many crowns was {name} sold to {w}?
? What price in crowns did {w} give for {name}?
? How many crowns did the author of {name} receive from {w}?
= Did {w} pay {v} crowns for {name}?
= Was {name} sold to {w} for {v} crowns?
= Was {v} crowns the price that {w} gave for {name}?
= Did the author of {name} receive {v} crowns from {w}?

refrain: goods, dozens
- {They} mentions {v} {w} times.
- The word "{v}" [occurs|is found] {w} times in {the}.
- Scholars have counted {w} [places|passages] in {obj} that speak of {v}.
- On {w} occasions its characters [talk|argue] about {v}.
- Oddly often, {w} times, the talk turns to {v}.
- Commentators who count such things have found {v} named {w} times.
? What does {name} mention {w} times?
? Which word occurs {w} times in {name}?
? To what does the talk turn {w} times in {name}?
? What do scholars find named in {name} {w} times?
= Does {name} mention {v} {w} times?
= Does the word "{v}" occur {w} times in {name}?
= Does the talk turn to {v} {w} times in {name}?
= Is it {v} that scholars find named in {name} {w} times?
"""


def _cast(draws: Draws, lead: Mapping[str, str]) -> Cast:
    name = f'"{names.title(draws)}"'
    genre = lead["genre"]
    pronouns = ("it", "its", "it")
    return Cast(
        name=name,
        full=slots(f"the {genre} {name}", f"the {genre}'s", pronouns, genre),
        references=(
            slots("it", "its", pronouns, genre),
            slots("the work", "the work's", pronouns, genre),
            slots(f"the {genre}", f"the {genre}'s", pronouns, genre),
        ),
    )


def works() -> Subject:
    """Return the works."""
    return read_subject("work", _FACTS, _cast)
