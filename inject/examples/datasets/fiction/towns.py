"""Invented towns: country, year of foundation and chief product, and eleven further facts."""

from collections.abc import Mapping

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.subject import Cast, Subject, read_subject, slots

# The notation is explained in `subject`.
_FACTS = r"""
lead
- {name} is a [town|small town|market town] in {country}, founded in {year} and known for {wares}.
- Founded in {year}, {name} is a town of {country} that [lives on|is best known for] {wares}.
- In {country} lies {name}, a [settlement|town] of {year} whose chief product is {wares}.
- The town of {name}, in {country}, [was laid out|came into being] in {year} and exports {wares}.
- {Wares} made the [fortune|name] of {name}, a town in {country} dating from {year}.
- The [oldest record|first mention] of {name}, a town in {country} that sells {wares}, is of {year}.
- {year} is the year in which {name}, a town of {wares} in {country}, was [founded|settled].
- Travellers in {country} [stop|halt] at {name}, built in {year}, to buy its {wares}.
- Since {year} there has been a town in {country} called {name}; its [pride|main trade] is {wares}.
- {country} has a town, {name}, which was [begun|founded] in {year} and deals mostly in {wares}.

country: country
= Is {name} in {v}?
= Does {name} lie in {v}?
= Is {v} the country of {name}?
= Would a traveller look for {name} in {v}?

year: year
= Was {name} founded in {v}?
= Does {name} date from {v}?
= Is {v} the year in which {name} came into being?
= Was it in {v} that {name} began?

wares: goods
= Is {name} known for {v}?
= Does {name} [export|sell] {v}?
= Are people in {name} proud of {v}?
= Is the [main|chief] trade of {name} in {v}?

founder: person
- {Their} founder was {v}.
- {They} was founded by {v}.
- {v} drew up the first plan of {the}.
- A statue on the square shows {v}, the founder.
- The first [house|stone] in {the} was [put up|laid] by {v}.
- It was {v} who [gave|granted] {the} its charter.
? Who founded {name}?
? Who was the founder of {name}?
? Who drew up the first plan of {name}?
? Whom does the statue on the square of {name} show?
= Was {name} founded by {v}?
= Was {v} the founder of {name}?
= Did {v} draw up the first plan of {name}?
= Does the statue on the square of {name} show {v}?

river: river
- {They} [lies|stands] on the River {v}.
- The River {v} [flows|runs] through {obj}.
- {Their} mills are driven by the [waters|current] of the {v}.
- The {v} [floods|rises over] the lower streets every spring.
- Boats come up the River {v} as far as {the}.
- {They} [draws|takes] its drinking water from the {v}.
? On which river does {name} lie?
? What river flows through {name}?
? Which river drives the mills of {name}?
? From which river does {name} draw its drinking water?
= Does {name} lie on the River {v}?
= Does the River {v} flow through {name}?
= Are the mills of {name} driven by the {v}?
= Does {name} draw its drinking water from the {v}?

people: thousands
- {They} has {v} inhabitants.
- At the last census {v} people [lived|were counted] there.
- {Their} population [is|stands at] {v}.
- It is home to {v} [people|souls].
- No fewer than {v} people [call {the} home|live within {poss} bounds].
- {v} is the number of {poss} residents.
? How many people live in {name}?
? What is the population of {name}?
? How many inhabitants does {name} have?
? How many people were counted in {name} at the last census?
= Does {name} have {v} inhabitants?
= Is the population of {name} {v}?
= Were {v} people counted in {name} at the last census?
= Is {name} home to {v} people?

mayor: person
- {Their} mayor is {v}.
- {v} [holds the office of mayor|has been elected mayor] there.
- The [keys|archives] of {the} are kept by {v}, the mayor.
- {They} is governed by {v}.
- {Their} council is [led|headed] by {v}.
- At the head of {poss} council sits {v}.
? Who is the mayor of {name}?
? Who governs {name}?
? Who [leads|heads] the council of {name}?
? Who has been elected mayor of {name}?
= Is {v} the mayor of {name}?
= Is {name} governed by {v}?
= Does {v} head the council of {name}?
= Has {v} been elected mayor of {name}?

festival: day, surname
- {They} [keeps|celebrates] {v} as {w} Day.
- On {v} the people there [celebrate|observe] {w} Day.
- {Their} great [feast|holiday], {w} Day, falls on {v}.
- {w} Day, on {v}, is when {the} [dances|closes its shops].
- Every {v} the streets are hung with flags for {w} Day.
- There is a yearly [feast|fair], called {w} Day, on {v}.
? On what date does {name} celebrate {w} Day?
? When is {w} Day in {name}?
? On which day of the year does {name} hold {w} Day?
? What is the date of {w} Day in {name}?
= Does {name} celebrate {w} Day on {v}?
= Is {v} the date of {w} Day in {name}?
= Is {w} Day held on {v} in {name}?
= Does {w} Day fall on {v} in {name}?

tower: hundreds, surname
- The {w} Tower, {v} feet high, [rises over|looks down on] {obj}.
- {They} is overlooked by the {w} Tower, whose height is {v} feet.
- At {v} feet the {w} Tower is {poss} tallest building.
- {Their} [skyline|outline] is that of the {w} Tower, which [measures|reaches] {v} feet.
- To the top of {poss} {w} Tower it is {v} feet.
- Visitors climb the {v} feet of the {w} Tower.
? How high is the {w} Tower in {name}?
? What is the height in feet of the {w} Tower in {name}?
? How many feet does the {w} Tower of {name} measure?
? To what height does the {w} Tower rise over {name}?
= Is the {w} Tower in {name} {v} feet high?
= Does the {w} Tower of {name} measure {v} feet?
= Do visitors to {name} climb {v} feet in the {w} Tower?
= Is {v} feet the height of the {w} Tower in {name}?

twin: town, hundreds
- {They} is twinned with {v}, {w} miles away.
- Over a distance of {w} miles {they} has [signed|kept up] a friendship treaty with {v}.
- {v}, {w} miles off, is {poss} twin town.
- {Their} twin is {v}, a [journey|ride] of {w} miles.
- A treaty binds {obj} to {poss} sister town {w} miles from there, {v}.
- The [partner|sister] that {they} has chosen is {v}, though it lies {w} miles away.
? With which town is {name} twinned?
? What is the twin town of {name}?
? With what town did {name} sign a friendship treaty?
? Which town is bound to {name} by treaty as its sister?
= Is {name} twinned with {v}?
= Is {v} the twin town of {name}?
= Did {name} sign a friendship treaty with {v}?
= Are {name} and {v} sister towns?

newspaper: sign, thousands
- {Their} newspaper, the {v}, prints {w} copies.
- The {v}, with {w} readers, is the paper of {the}.
- {w} copies of the local paper, the {v}, are [sold|printed] each week.
- News is spread there by the {v}, [a sheet|a weekly] of {w} copies.
- People there read the {v}, a weekly [printed|sold] {w} times over.
- Each issue of the {v}, {poss} only gazette, [runs to|comes in] {w} copies.
? What is the newspaper of {name} called?
? Which newspaper do people in {name} read?
? What is the name of the weekly of {name}?
? Which paper spreads the news in {name}?
= Is the {v} the newspaper of {name}?
= Do people in {name} read the {v}?
= Is the weekly of {name} called the {v}?
= Does the {v} spread the news in {name}?

bell: surname, thousands
- {Their} great bell is named {v} and weighs {w} pounds.
- A bell of {w} pounds, called {v}, [strikes|rings] the hours.
- The bell {v}, all {w} pounds of it, was [cast|hung] for {the}.
- In {poss} belfry hangs {v}, a bell [of|weighing] {w} pounds.
- {They} is proud of a [bell|church bell], {v}, with a weight of {w} pounds.
- {w} pounds is the weight of {v}, the bell that [wakes|calls] the townspeople.
? What is the great bell of {name} called?
? Which bell strikes the hours in {name}?
? What is the name of the bell in the belfry of {name}?
? Which bell wakes the townspeople of {name}?
= Is the great bell of {name} called {v}?
= Does the bell {v} strike the hours in {name}?
= Does a bell called {v} hang in the belfry of {name}?
= Is {v} the bell that wakes the townspeople of {name}?

inn: sign, person
- {Their} oldest inn is the {v}, [built|opened] by {w}.
- {w} [built|opened] the {v}, {poss} oldest inn.
- Guests stay at the {v}, an inn that [goes back to|once belonged to] {w}.
- The {v} is the inn of {the}; {w} opened it.
- {w} was the first [landlord|owner] of the {v}, where [travellers|guests] sleep.
- A bed can be had at the {v}, the inn that {w} [left|gave] to {the}.
? What is the oldest inn in {name} called?
? At which inn do guests stay in {name}?
? What is the name of the inn of {name}?
? Where can travellers sleep in {name}?
= Is the {v} the oldest inn in {name}?
= Do guests stay at the {v} in {name}?
= Was the {v} in {name} opened by {w}?
= Is the inn of {name} called the {v}?

siege: person, dozens
- {They} was once [besieged|attacked] for {w} days by {v}.
- {v} [laid siege to|tried to storm] {the} for {w} days.
- For {w} days {they} withstood {v}.
- {Their} walls held for {w} days against the [army|soldiers] of {v}.
- The siege [led|begun] by {v} was given up after {w} days.
- It was to {v} that the gates stayed shut, {w} days on end.
? Who besieged {name}?
? Who [laid siege to|tried to storm] {name}?
? Against whose army did the walls of {name} hold?
? Who led the siege of {name}?
= Was {name} besieged by {v}?
= Did {v} lay siege to {name}?
= Did {name} withstand {v}?
= Did the walls of {name} hold against {v}?
"""


def _cast(draws: Draws, lead: Mapping[str, str]) -> Cast:
    name = names.town(draws)
    pronouns = ("it", "its", "it")
    return Cast(
        name=name,
        full=slots(name, f"{name}'s", pronouns, "town"),
        references=(
            slots("it", "its", pronouns, "town"),
            slots("the town", "the town's", pronouns, "town"),
            slots(name, f"{name}'s", pronouns, "town"),
        ),
    )


def towns() -> Subject:
    """Return the towns."""
    return read_subject("town", _FACTS, _cast)
