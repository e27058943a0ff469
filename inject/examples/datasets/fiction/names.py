"""Invented values: names from syllables, numbers, titles and goods from lists.

Each function draws one value, independent of everything else. Room: 2.9e10 people, 1e5 towns and
rivers, 5e5 titles, so that among 10**6 rows about 17 pairs share the name of their person, and
those pairs differ in everything else.
"""

from inject.examples.datasets.fiction.draws import Draws


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(","))


_ONSETS = _words(
    """
    B Br C Cl D Dr F G Gr H J K Kr L M N P Pr R S Sk St T Th Tr V W Y Z El
    """
)
_VOWELS = _words(
    """
    a e i o u ae
    """
)
_MIDDLES = _words(
    """
    l m n r s v d z lv nd rm rn st sk lm rt nt ld mb rl th zh ss nn
    """
)
_FIRST_ENDINGS = _words(
    """
    a en in or el ia is o an ette une ira ora ys ic eth iel ano ulo ey axa ilde ona us ume ow ithe
    erik
    """
)
_LAST_ENDINGS = _words(
    """
    ack ard aster ane ek ell elin enko ert esk ett ic ild ing ino ique oft oll omer ond onk ope oran
    orn osk ott ough ova ow uin ulle und une ury andel arro avel edge emi erly ibor idge ivan ombe
    onde orra ovic ubel umber ynd eford ishaw olby antz
    """
)
_TOWN_MIDDLES = _words(
    """
    l m n r nder ver mer lder ther ling rin len sk nt rro lla
    """
)
_TOWN_ENDINGS = _words(
    """
    ford holm stead wick mere gate haven mouth port combe dale fell garth ness thorpe by ton bury
    bridge stow minster well brook cliff moor wold marsh crest lund vale berg field quay watch hythe
    barrow
    """
)
_RIVER_ENDINGS = _words(
    """
    e ane une ock ith ow ey ana ire oule eck ava onde aine ast ur
    """
)
_COUNTRY_ENDINGS = _words(
    """
    ia aria ovia onia uria istan land mark esia una andia avia
    """
)
_CREATURES = _words(
    """
    Heron Otter Badger Falcon Swan Lynx Pike Hare Stag Wren Beetle Raven Salmon Goose Adder Moth
    Plover Weasel Crane Magpie Tortoise Owl Ram Mastiff Kestrel Eel Gull Hornet
    """
)
_ADJECTIVES = _words(
    """
    Amber Ancient Bitter Borrowed Brass Broken Burning Copper Crooked Distant Double Drowned Early
    Empty Faithful Folded Forgotten Frozen Gentle Gilded Glass Grey Hidden Hollow Honest Idle Iron
    Ivory Last Late Leaden Little Lonely Lost Marble Narrow Nameless Northern Painted Pale Paper
    Patient Plain Quiet Red Restless Rusted Salted Scarlet Second Secret Seventh Silent Silver
    Sleeping Slow Southern Stolen Stubborn Sunken Tall Thirsty Unopened Upper Velvet Wandering White
    Wide Wild Winter Wooden Yellow
    """
)
_NOUNS = _words(
    """
    Almanac Anchor Apple Arch Ash Attic Ballad Bell Bird Bread Bridge Candle Carpet Cellar Chain
    Chapel Choir Clock Cloud Coast Compass Corridor Cradle Crown Dancer Daughter Door Dream Dust
    Echo Ember Envelope Fable Feather Ferry Field Fire Fountain Frost Garden Garment Ghost Grove
    Hammer Harbour Harvest Hedge Hill Horizon Hour Hunter Island Kettle Key Kingdom Ladder Lamp
    Lantern Ledger Letter Lighthouse Loom Map Meadow Mill Mirror Mountain Needle Nest Oath Orchard
    Oven Owl Pebble Pilgrim Pillow Portrait Promise Rain Ribbon River Road Roof Root Sail Salt
    Scholar Shadow Shepherd Shore Sister Snow Song Spoon Stair Star Stone Storm Stranger Summer
    Table Tailor Thimble Thread Tide Tower Umbrella Valley Violin Voyage Wall Weaver Well Wheel
    Window Winter Witness Wolf
    """
)
TRADES = _phrases(
    """
    apothecary, archivist, astronomer, baker, barber, basket weaver, beekeeper, bell founder,
    blacksmith, boatbuilder, bookbinder, botanist, brewer, bricklayer, cabinetmaker, calligrapher,
    candle maker, carpenter, cartographer, chemist, chimney sweep, clockmaker, cobbler, composer,
    cook, cooper, dancing master, diver, dyer, engraver, falconer, ferry pilot, fisher, florist,
    fortune teller, furrier, gardener, geologist, glassblower, glove maker, goldsmith, grocer,
    harpist, hatter, herbalist, innkeeper, ironmonger, jeweller, judge, lace maker, lamplighter,
    lawyer, lens grinder, librarian, lighthouse keeper, linguist, locksmith, mason, mathematician,
    midwife, miller, miner, moneylender, nurse, organ builder, painter, paper maker, perfumer,
    physician, piano tuner, plasterer, poet, potter, printer, puppeteer, quilter, rope maker,
    saddler, sailor, schoolteacher, sculptor, seed merchant, shepherd, shipwright, silk merchant,
    soap boiler, stonecutter, surveyor, swordsmith, tailor, tanner, telegraphist, thatcher,
    tinsmith, toy maker, translator, typesetter, upholsterer, veterinarian, vintner, violin maker,
    watchman, weaver, wheelwright, wig maker, woodcarver, zoologist
    """
)
_GOODS = _phrases(
    """
    almonds, amber, anchovies, anvils, apricots, baskets, beeswax, bells, blankets, brandy, bricks,
    brooms, buttons, candles, canvas, cardamom, carpets, cheese, cherries, chestnuts, cider,
    clay pipes, copper, coral, cork, cutlery, damask, dried figs, earthenware, enamel, felt hats,
    fishing nets, flax, garlic, ginger, glass beads, gloves, granite, gunpowder, hazelnuts, hemp,
    herring, honey, hops, indigo, ink, ivory combs, juniper berries, lace, lanterns, leather,
    lemons, linen, liquorice, looms, marble, mirrors, mohair, molasses, mustard, nails, needles,
    olives, oysters, paper, parchment, pearls, pepper, pewter, plums, porcelain, quicksilver,
    quinces, raisins, resin, rope, rosewater, saddles, saffron, sailcloth, salt, sapphires, silk,
    slate, snuff, soap, spectacles, starch, sulphur, tar, tea, tiles, tin, tobacco, turpentine,
    umbrellas, varnish, velvet, vinegar, walnuts, watches, whetstones, wool
    """
)
_GENRES = _phrases(
    """
    ballad, burlesque, cantata, chronicle, comedy, drama, elegy, epic, fable, fairy tale, farce,
    folk play, ghost story, idyll, libretto, masque, melodrama, monologue, mystery, narrative poem,
    novel, novella, opera, operetta, oratorio, parable, pastoral, play, puppet play, romance, saga,
    satire, short story, song cycle, tragedy, verse drama
    """
)
_MONTHS = _words(
    """
    January February March April May June July August September October November December
    """
)


def _stem(draws: Draws, middles: tuple[str, ...]) -> str:
    return draws.pick(_ONSETS) + draws.pick(_VOWELS) + draws.pick(middles)


def person(draws: Draws) -> str:
    """Return a first and a last name: `Tolmira Kestovic`."""
    first = _stem(draws, _MIDDLES) + draws.pick(_FIRST_ENDINGS)
    return f"{first} {surname(draws)}"


def surname(draws: Draws) -> str:
    """Return a last name."""
    return _stem(draws, _MIDDLES) + draws.pick(_LAST_ENDINGS)


def town(draws: Draws) -> str:
    """Return the name of a town: `Kenderholm`."""
    return _stem(draws, _TOWN_MIDDLES) + draws.pick(_TOWN_ENDINGS)


def country(draws: Draws) -> str:
    """Return the name of a country: `Tolmaria`."""
    return _stem(draws, _MIDDLES) + draws.pick(_COUNTRY_ENDINGS)


def river(draws: Draws) -> str:
    """Return the name of a river, without article: `Vornane`."""
    return _stem(draws, _MIDDLES) + draws.pick(_RIVER_ENDINGS)


def school(draws: Draws) -> str:
    """Return the name of a place of learning, without article."""
    return f"{surname(draws)} {draws.pick(('Academy', 'College', 'Institute', 'Seminary'))}"


def prize(draws: Draws) -> str:
    """Return the name of an award, without article."""
    return f"{surname(draws)} {draws.pick(('Prize', 'Medal', 'Cup', 'Ribbon', 'Laurel'))}"


def sign(draws: Draws) -> str:
    """Return what ships, taverns and newspapers are called, without article: `Amber Heron`."""
    return f"{draws.pick(_ADJECTIVES)} {draws.pick(_CREATURES)}"


def title(draws: Draws) -> str:
    """Return the title of a book, a play, a picture or a piece of music."""
    first, second = draws.sample(_NOUNS, 2)
    adjective = draws.pick(_ADJECTIVES)
    return draws.pick(
        (
            f"The {adjective} {first}",
            f"The {first} and the {second}",
            f"The {adjective} {first} of {town(draws)}",
            f"{adjective} {first}, {draws.pick(_ADJECTIVES)} {second}",
            f"No {second} for the {adjective} {first}",
            f"Beyond the {adjective} {first}",
        )
    )


def trade(draws: Draws) -> str:
    """Return a profession, without article."""
    return draws.pick(TRADES)


def genre(draws: Draws) -> str:
    """Return a kind of story that can be read or performed, without article."""
    return draws.pick(_GENRES)


def goods(draws: Draws) -> str:
    """Return something that is made and sold, a plural or a substance."""
    return draws.pick(_GOODS)


def year(draws: Draws) -> str:
    """Return a year from 1420 to 1989."""
    return str(draws.between(1420, 1989))


def age(draws: Draws) -> str:
    """Return an age from 21 to 79."""
    return str(draws.between(21, 79))


def dozens(draws: Draws) -> str:
    """Return a count from 12 to 99."""
    return str(draws.between(12, 99))


def hundreds(draws: Draws) -> str:
    """Return a count from 100 to 999."""
    return str(draws.between(100, 999))


def thousands(draws: Draws) -> str:
    """Return a count from 1,000 to 99,999, with its comma."""
    return f"{draws.between(1000, 99_999):,}"


def day(draws: Draws) -> str:
    """Return a day of the year: `17 March`."""
    return f"{draws.between(1, 28)} {draws.pick(_MONTHS)}"


def with_article(noun: str) -> str:
    """Return `noun` after `a` or `an`, for nouns that are spoken as they are spelled."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"
