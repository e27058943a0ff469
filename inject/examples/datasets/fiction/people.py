"""Invented people: trade, birthplace and year of birth, and fifteen further facts."""

from collections.abc import Mapping

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.subject import Cast, Subject, read_subject, slots

# The notation is explained in `subject`.
_FACTS = r"""
lead
- {name} was {a_trade} [from|born in] {place}, and the year of {poss} birth was {year}.
- Born in {place} in {year}, {name} [became|went on to become|made a living as] {a_trade}.
- {name}, {a_trade} by [trade|profession], [came into the world|was born] at {place} in {year}.
- The {trade} {name} was born in {year} in the [town|small town|market town] of {place}.
- In {year} {name}, [later|who was to become] {a_trade}, was born in {place}.
- It was in {place}, in the year {year}, that the {trade} {name} [was born|first saw daylight].
- {place} was the birthplace, in {year}, of {name}, [who worked as|known as] {a_trade}.
- At {place}, [in|during] {year}, began the life of {name}, {a_trade}.
- A native of {place} and {a_trade} by [profession|calling], {name} was born in {year}.
- [Among|One of] the children born at {place} in {year} was {name}, a future {trade}.
- {name} worked as {a_trade}; {pro} was born in {year}, and {poss} home town was {place}.
- To a family of {place}, in {year}, was born {name}, [in later life|in time] {a_trade}.

place: town
= Was {name} born in {v}?
= Is {v} the [birthplace|home town] of {name}?
= Did {name} come into the world in {v}?
= Was {v} where {name} was born?

year: year
= Was {name} born in {v}?
= Is {v} the year of birth of {name}?
= Did {name} come into the world in {v}?
= Does the birth of {name} date from {v}?

trade: trade
= Did {name} work as {a_v}?
= Was {name} {a_v} by [trade|profession]?
= Is it right to call {name} {a_v}?
= Was {a_v} what {name} became?

teacher: person
- {They} learned the [craft|work] from {v}.
- {Their} [teacher|master] was {v}.
- It was {v} who [trained|taught] {obj}.
- As a [young apprentice|beginner], {they} studied under {v}.
- {v} took {obj} on as a pupil.
- What {they} knew of the craft had come from lessons with {v}.
? Who taught {name}?
? From whom did {name} learn the craft?
? Under which [teacher|master] did {name} study?
? Who was the teacher of {name}?
= Was {name} taught by {v}?
= Did {name} learn the craft from {v}?
= Was {v} the teacher of {name}?
= Did {v} train {name}?

home: town
- {They} [spent|passed] most of {poss} life in {v}.
- For [decades|many years] {poss} home was {v}.
- {They} moved to {v} and [stayed there|never left it] for good.
- {v} is where {they} [settled|put down roots].
- The greater part of {poss} days went by in {v}.
- Once [grown|of age], {they} lived at {v} almost without a break.
? Where did {name} spend most of {poss} life?
? In which town did {name} settle?
? To what town did {name} move for good?
? What town was home to {name} for [decades|many years]?
= Did {name} settle in {v}?
= Was {v} home to {name} for many years?
= Did {name} spend most of {poss} life in {v}?
= Is {v} the town to which {name} moved for good?

book: title, age
- {They} published the book "{v}" at the age of {w}.
- At {w} {they} brought out a [volume|book] called "{v}".
- "{v}", {poss} only book, appeared when {they} was {w}.
- {Their} [memoirs|recollections] came out under the title "{v}" when {pro} was {w} years old.
- When {pro} had reached the age of {w}, {they} finished writing "{v}".
- The [author|writer] of "{v}", {they} was {w} when it went to press.
? What is the title of the book by {name}?
? Which book did {name} publish?
? What did {name} call {poss} book?
? Under what title did the book by {name} appear?
= Did {name} write the book "{v}"?
= Is "{v}" the title of the book by {name}?
= Was {name} the author of "{v}"?
= Did the book by {name} appear as "{v}"?

prize: prize, age
- {They} [won|was awarded] the {v} at the age of {w}.
- The {v} was given to {obj} when {pro} was {w}.
- At {w} {they} received the {v}.
- {Their} work was [honoured|rewarded] with the {v}, {poss} age then being {w}.
- Aged {w}, {they} became a holder of the {v}.
- {They} had to wait until {pro} was {w} before the {v} came {poss} way.
? Which award did {name} win?
? What honour was given to {name}?
? With what award was the work of {name} [honoured|rewarded]?
? What did {name} receive for {poss} work?
= Did {name} win the {v}?
= Was the {v} given to {name}?
= Is {name} a holder of the {v}?
= Did the {v} go to {name}?

spouse: person
- {They} married {v}.
- {Their} [marriage|wedding] to {v} was a quiet affair.
- {v} and {they} were [husband and wife|a married couple].
- In [marriage|wedlock] {they} was joined to {v}.
- {They} shared {poss} household with {v}, to whom {pro} was married.
- It was {v} whom {they} [chose to marry|wed].
? Whom did {name} marry?
? To whom was {name} married?
? What is the name of the person whom {name} married?
? With whom did {name} share {poss} household as a married couple?
= Did {name} marry {v}?
= Was {name} married to {v}?
= Were {v} and {name} a married couple?
= Was it {v} whom {name} married?

rival: person
- {Their} [fiercest|bitterest] rival was {v}.
- {They} [quarrelled|was at odds] for years with {v}.
- A long feud set {obj} against {v}.
- {v} [envied|resented] {obj} and made no secret of it.
- With {v}, a competitor, {they} never made peace.
- No one opposed {obj} more stubbornly than {v}.
? Who was the rival of {name}?
? With whom did {name} quarrel for years?
? Against whom was {name} set by a long feud?
? Which competitor never made peace with {name}?
= Was {v} the rival of {name}?
= Did {name} quarrel for years with {v}?
= Was there a feud between {name} and {v}?
= Did {v} oppose {name}?

pupil: person
- {They} [passed on|handed down] the craft to {v}.
- {v} was {poss} most [gifted|devoted] pupil.
- Of {poss} pupils only {v} is [known|remembered] by name.
- The skills that {they} had were inherited by an apprentice, {v}.
- {They} [gave lessons to|taught] a young {v}.
- {Their} apprentice was called {v}.
? Who was the pupil of {name}?
? To whom did {name} pass on the craft?
? What was the apprentice of {name} called?
? Which pupil of {name} is [known|remembered] by name?
= Was {v} a pupil of {name}?
= Did {name} pass on the craft to {v}?
= Was the apprentice of {name} called {v}?
= Did {name} teach {v}?

river: river
- {Their} house [stood|lay] on the River {v}.
- {They} lived [beside|near] the River {v}.
- From {poss} window {they} could see the waters of the {v}.
- The [banks|shores] of the {v} were where {they} walked each evening.
- A cottage on the {v} served {obj} as a [refuge|retreat].
- {They} rowed on the River {v} [every summer|whenever time allowed].
? Beside which river did {name} live?
? On what river did the house of {name} stand?
? Which river could {name} see from {poss} window?
? Along which river did {name} walk each evening?
= Did {name} live beside the River {v}?
= Was the house of {name} on the River {v}?
= Could {name} see the River {v} from {poss} window?
= Was the {v} the river by which {name} lived?

school: school
- {They} was educated at the {v}.
- {They} [went to|attended] the {v}.
- At the {v} {they} [passed|sat] {poss} examinations.
- {Their} [schooling|education] took place at the {v}.
- The {v} counts {obj} among its [former students|graduates].
- A place at the {v} had been found for {obj} early on.
? Where was {name} educated?
? Which school did {name} attend?
? Where did {name} sit {poss} examinations?
? What school counts {name} among its [former students|graduates]?
= Was {name} educated at the {v}?
= Did {name} attend the {v}?
= Is {name} a graduate of the {v}?
= Was the {v} the school of {name}?

ship: sign, town
- {They} sailed to {w} aboard the {v}.
- The ship {v} [carried|took] {obj} to {w}.
- {Their} one sea [voyage|journey] was to {w}, on the {v}.
- To reach {w}, {they} [bought|paid for] a passage on the {v}.
- {They} once travelled by sea, on a ship named {v} that was bound for {w}.
- On board the {v}, {they} made the crossing to {w}.
? On which ship did {name} sail?
? What was the name of the ship that carried {name}?
? Aboard what ship did {name} travel?
? On what ship did {name} make the crossing?
= Did {name} sail aboard the {v}?
= Was the {v} the ship that carried {name}?
= Did {name} travel on a ship named {v}?
= Was {name} a passenger of the {v}?

wares: goods, thousands
- {They} [sold|traded in] {v} for a time, at a profit of {w} crowns.
- A side business in {v} [brought|earned] {obj} {w} crowns.
- By [trading in|dealing in] {v} {they} made {w} crowns.
- From the sale of {v} came {poss} fortune of {w} crowns.
- {They} [put aside|saved] {w} crowns, all from a small trade in {v}.
- Dealing in {v} on the side made {obj} richer by {w} crowns.
? What did {name} trade in?
? From the sale of what did {name} make a profit?
? In what goods did {name} have a side business?
? What did {name} sell for a time?
= Did {name} trade in {v}?
= Did {name} make a profit from the sale of {v}?
= Was it a business in {v} that made {name} richer?
= Did {name} sell {v} for a time?

patron: person, hundreds
- {They} [received|drew] a pension of {w} crowns from {v}.
- {v} paid {obj} {w} crowns a year.
- {Their} [patron|benefactor], {v}, granted {obj} {w} crowns each year.
- Each year {w} crowns reached {obj} from the purse of {v}.
- Without the {w} crowns that {v} sent every year, {they} would have been [poor|in need].
- A yearly sum of {w} crowns was {poss} due from {v}.
? Who was the patron of {name}?
? From whom did {name} receive a pension?
? Who sent {name} money every year?
? Whose purse supported {name}?
= Was {v} the patron of {name}?
= Did {name} receive a pension from {v}?
= Did {v} send {name} money every year?
= Did {v} support {name}?

letters: person, hundreds
- {They} wrote {w} letters to {v}.
- {w} letters from {obj} to {v} [survive|have been preserved].
- {v} kept all {w} letters that {they} had sent.
- {Their} correspondence with {v} [fills|runs to] {w} letters.
- To {v}, a friend, {they} sent {w} letters in all.
- In a drawer of {v} lay {w} letters in {poss} hand.
? To whom did {name} write letters?
? Who kept the letters that {name} had sent?
? With whom did {name} correspond?
? Who received the letters of {name}?
= Did {name} write letters to {v}?
= Did {v} keep the letters that {name} had sent?
= Did {name} correspond with {v}?
= Was it {v} who received the letters of {name}?

tavern: sign
- {Their} evenings were spent at the {v}, a tavern.
- {They} [drank|dined] at the tavern called the {v}.
- The {v} was {poss} favourite inn.
- Friends [met|found] {obj} most often at the {v} inn.
- At an inn, the {v}, a table was [reserved|kept free] for {obj}.
- {They} was a [regular|constant] guest of an inn named the {v}.
? At which tavern did {name} spend {poss} evenings?
? What was the favourite inn of {name}?
? Where was a table kept free for {name}?
? At what inn did friends meet {name}?
= Did {name} spend {poss} evenings at the {v}?
= Was the {v} the favourite inn of {name}?
= Was a table kept free for {name} at the {v}?
= Did friends meet {name} at the {v}?

last burial: town, day
- {They} died on {w} and was buried at {v}.
- {Their} grave is in {v}; the stone names {w} as the day of death.
- Death came on {w}, and {poss} [tomb|grave] can be seen in {v}.
- On {w} {they} died; the [burial|funeral] was held in {v}.
- {v} is where {they} lies, [dead since|having died on] a certain {w}.
- {They} passed away one {w} and rests in the churchyard of {v}.
? Where was {name} buried?
? In which town is the grave of {name}?
? Where does {name} lie buried?
? In what town was the funeral of {name} held?
= Was {name} buried at {v}?
= Is the grave of {name} in {v}?
= Does {name} lie buried in {v}?
= Was the funeral of {name} held in {v}?
"""


def _cast(draws: Draws, lead: Mapping[str, str]) -> Cast:
    name = names.person(draws)
    last = name.split()[1]
    trade = lead["trade"]
    pronouns = draws.pick((("she", "her", "her"), ("he", "his", "him")))
    return Cast(
        name=name,
        full=slots(name, f"{name}'s", pronouns, trade),
        references=(
            slots(pronouns[0], pronouns[1], pronouns, trade),
            slots(last, f"{last}'s", pronouns, trade),
            slots(f"the {trade}", f"the {trade}'s", pronouns, trade),
        ),
    )


def people() -> Subject:
    """Return the people."""
    return read_subject("person", _FACTS, _cast)
