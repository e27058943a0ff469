"""Each row's chance of a side, a split and a dose, counted over seeds against the exact share.

Correct counts are binomial; a bound on the smallest p-value over all rows is corrected for their
number (Bonferroni), and the seeds are fixed, so no test fails by chance.
"""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from inject import keyed
from inject.examples.contaminant import Contaminant
from inject.examples.load import load_examples
from inject.examples.strata import keyed_strata
from inject.plan.make_plan import draw_copy_counts
from inject.plan.settings import Copies
from tests.inject.examples.drawing import drawn_membership, plain_row

SEEDS = 1_000
SMALLEST = 1e-3


def pool(strata, *, dataset="toy"):
    """Rows of strata, each a list of sizes of groups."""
    return [
        plain_row(
            f"{dataset}-{s}-{g}-{n}",
            f"{s}-{g}" if size > 1 else None,
            dataset=dataset,
            source_id=f"{s}-{g}-{n}",
            stratum=f"s{s:03d}",
            text=f"{s} {g} {n}",
        )
        for s, groups in enumerate(strata)
        for g, size in enumerate(groups)
        for n in range(size)
    ]


def draw_sides(rows, members, nonmembers, seed, **options):
    return drawn_membership(rows, members, nonmembers, seed=seed, near_duplicate=None, **options)


def doses(copies, members, seed):
    _, counts = draw_copy_counts(copies, members, seed=seed)
    return dict(zip([member.example_id for member in members], counts.tolist(), strict=True))


def count_sides(rows, members, nonmembers, *, seeds=SEEDS, **options):
    """How often each row is a member, a non-member, and in the tune split, over seeds."""
    counts = {
        name: Counter({row.example_id: 0 for row in rows}) for name in ("member", "nonmember")
    }
    tune = {name: Counter() for name in counts}
    for seed in range(seeds):
        for row in draw_sides(rows, members, nonmembers, seed, **options).examples:
            counts[row.side][row.example_id] += 1
            tune[row.side][row.example_id] += row.split == "tune"
    return counts, tune


def assert_binomial(counts, n, share):
    """No count is further from n * share than chance allows over all of them."""
    from scipy.stats import binom

    values = np.array(list(counts), dtype=float)
    trials = np.broadcast_to(np.asarray(n), values.shape)
    tail = np.minimum(binom.cdf(values, trials, share), binom.sf(values - 1, trials, share))
    worst = int(np.argmin(tail))
    assert tail[worst] * 2 * len(values) > SMALLEST, (
        f"{values[worst]:g} of {trials[worst]} where {share:.3f} is the share"
    )


POOLS = {
    "strata of 1 to 5 rows": [[1] * (1 + number % 5) for number in range(30)],
    "four rows a subject, as strata": [[1] * 4] * 25,
    "groups of 1 to 4 rows": [[1 + number % 4 for number in range(40)]],
    "strata of 1 to 5 groups of 1 to 4 rows": [
        [1 + (number + other) % 4 for other in range(1 + number % 5)] for number in range(16)
    ],
}


def test_draw_order_is_independent_of_names_and_row_order():
    rows = pool([[3] * 6] * 5)
    orders = defaultdict(set)
    for seed in range(4):
        for number in range(2):
            strata, other = (
                keyed_strata(ordered, stream=keyed.Stream.LEVEL, seed=seed, number=number)
                for ordered in (rows, rows[::-1])
            )
            assert strata == other
            orders["strata"].add(tuple(stratum.label for stratum in strata))
            for stratum in strata:
                groups = [group.rows[0].group for group in stratum.groups]
                orders[stratum.label].add(tuple(groups))
                for group in stratum.groups:
                    name = group.rows[0].group
                    word = keyed.words(
                        seed, keyed.Stream.LEVEL, keyed.item_key(f"toy\n{name}"), number
                    )
                    assert group.word == int(word)
                    orders[name].add(tuple(row.source_id for row in group.rows))
                assert [g.word for g in stratum.groups] == sorted(g.word for g in stratum.groups)
    assert len(orders["strata"]) == 8
    assert all(len(seen) > 1 for seen in orders.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS)
def test_rows_have_the_expected_chance_of_each_side_and_of_tuning(name):
    rows = pool(POOLS[name])
    members, nonmembers = round(0.37 * len(rows)), round(0.21 * len(rows))
    counts, tune = count_sides(rows, members, nonmembers)
    for side, size in (("member", members), ("nonmember", nonmembers)):
        assert_binomial(counts[side].values(), SEEDS, size / len(rows))
        inside = [counts[side][row.example_id] for row in rows]
        tuned = [tune[side][row.example_id] for row in rows]
        assert_binomial(tuned, inside, 0.25)
        # Each draw has nearly a quarter of its rows, so that all together are far nearer to it.
        assert sum(tuned) / sum(inside) == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize("name", POOLS)
def test_counts_are_exact_and_unpooled_strata_differ_by_less_than_one_row(name):
    rows = pool(POOLS[name])
    side_counts = {"member": round(0.3 * len(rows)), "nonmember": round(0.25 * len(rows))}
    sizes = Counter(row.stratum for row in rows)
    single = {s for s in sizes if all(r.group == r.example_id for r in rows if r.stratum == s)}
    for seed in range(20):
        made = draw_sides(rows, side_counts["member"], side_counts["nonmember"], seed)
        assert Counter(row.side for row in made.examples) == side_counts
        assert len({row.example_id for row in made.examples}) == sum(side_counts.values())
        sides = defaultdict(set)
        for row in made.examples:
            sides[row.group].add((row.side, row.split))
        assert all(len(side_set) == 1 for side_set in sides.values())
        for side, count in side_counts.items():
            inside = Counter(row.stratum for row in made.examples if row.side == side)
            for stratum in single:
                share = count * sizes[stratum] / len(rows)
                if min(side_counts.values()) * sizes[stratum] >= len(rows):
                    assert abs(inside[stratum] - share) < 1


def test_strata_too_small_for_a_row_on_each_side_are_pooled_and_counted():
    rows = pool([[1] * 60, *[[1]] * 12])
    made = draw_sides(rows, 12, 12, 0)
    assert (made.drawn.strata, made.drawn.pooled_strata, made.drawn.pooled_rows) == (13, 12, 12)
    whole = draw_sides(pool([[1] * 60, [1] * 60]), 12, 12, 0).drawn
    assert (whole.strata, whole.pooled_strata, whole.pooled_rows) == (2, 0, 0)


def test_pooled_strata_are_mixed_like_a_single_one():
    """Adjacent on the circle, the three rows of a stratum would nearly always be drawn together."""
    rows = [plain_row(f"{at}-{row}", stratum=f"s{at}") for at in range(20) for row in range(3)]
    together = 0
    for seed in range(40):
        membership = drawn_membership(rows, 15, 40, seed=seed, near_duplicate=None)
        assert membership.drawn.pooled_strata == 20
        side = {example.example_id: example.side for example in membership.examples}
        for at in range(20):
            together += len({side.get(f"{at}-{row}", "out") for row in range(3)}) == 1
    alike = sum(math.comb(count, 3) for count in (15, 40, 5)) / math.comb(60, 3)
    assert abs(together / 800 - alike) < 5 * math.sqrt(alike * (1 - alike) / 800)


def test_whole_groups_make_up_the_counts_when_rows_are_scarce():
    rows = pool([[1, 2, 3, 4, 1, 2, 3, 4]])
    counts, _ = count_sides(rows, 10, 10, seeds=400)
    rates = np.array([counts["member"][row.example_id] for row in rows]) / 400
    assert np.all(np.abs(rates - 0.5) < 0.1)


@pytest.mark.parametrize(
    ("sizes", "members", "nonmembers"),
    [([60, 50, 30], 60, 50), ([97, 3], 3, 97), ([7] * 9, 28, 35)],
)
def test_a_few_large_groups_are_still_divided(sizes, members, nonmembers):
    for seed in range(8):
        made = draw_sides(pool([sizes]), members, nonmembers, seed).examples
        assert Counter(row.side for row in made) == {"member": members, "nonmember": nonmembers}
        sides = {row.group: row.side for row in made}
        assert all(sides[row.group] == row.side for row in made)


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS)
def test_members_have_all_levels_with_equal_chance(name):
    members = pool(POOLS[name])
    levels = (1, 2, 16)
    counts = {level: Counter({row.example_id: 0 for row in members}) for level in levels}
    for seed in range(SEEDS):
        for name, dose in doses(Copies(levels=levels), members, seed).items():
            counts[dose][name] += 1
    for level in levels:
        assert_binomial(counts[level].values(), SEEDS, 1 / 3)


@pytest.fixture(scope="module")
def news(data_folder):
    return load_examples(
        Contaminant(
            dataset="rows",
            name="news",
            path=f"{data_folder}/background/news_wikinews/*.csv",
            fields={"label": "date", "title": "title", "body": "text"},
            template="{title}\n{body}",
            members=100,
            nonmembers=100,
        ),
        seed=0,
    ).examples


def test_dated_articles_change_sides_and_dates_do_not_predict_membership(news):
    seeds = 200
    counts, _ = count_sides(news, 100, 100, seeds=seeds)
    for side in ("member", "nonmember"):
        assert_binomial(counts[side].values(), seeds, 100 / len(news))
    # An observer of half of the seeds learns about the sides of a date …
    learnt, aucs = Counter(), []
    for seed in range(20):
        for row in draw_sides(news, 100, 100, seed).examples:
            learnt[row.stratum] += 1 if row.side == "member" else -1
    for seed in range(20, 60):
        made = draw_sides(news, 100, 100, seed).examples
        scores = {s: [learnt[r.stratum] for r in made if r.side == s] for s in counts}
        pairs = np.subtract.outer(scores["member"], scores["nonmember"])
        aucs.append(((pairs > 0) + 0.5 * (pairs == 0)).mean())
    # … that is useless for the other half.
    assert abs(np.mean(aucs) - 0.5) < 0.03


def test_lsat_passages_are_seen_only_with_their_own_questions(data_folder):
    path = f"{data_folder}/bench/lsat"
    contaminant = Contaminant(dataset="lsat", path=path, members=100, nonmembers=100)
    rows = load_examples(contaminant, seed=0).examples
    spiked = [row for row in draw_sides(rows, 100, 100, 0).examples if row.side == "member"]
    dose = doses(Copies(levels=(1, 16)), spiked, 0)
    questions = Counter(row.group for row in spiked)
    assert max(questions.values()) > 2
    seen = Counter()
    for row in spiked:
        seen[row.group] += dose[row.example_id]
    for row in spiked:
        assert seen[row.group] == dose[row.example_id] * questions[row.group]
    groups = Counter({row.group: dose[row.example_id] for row in spiked}.values())
    assert abs(groups[1] - groups[16]) <= 1
