"""Does the experiment deserve belief? Checks that come before any result.

1. The audit found every member the realised number of times and no non-member; and, read back
   from what each model was fed, no copy had other tokens than its text. No document that
   overlaps with an example is left in the background, and every example could be looked for.
2. A blind classifier, which sees no model, cannot tell the sides apart.
3. A base model, which saw neither side, gives no AUC away from 0.5.
4. Members that drew no copy look like non-members.
5. A clean twin, trained as the arm was and on neither side, gives no AUC away from 0.5; where
   the experiment has one.

Checks 2 to 5 ask whether a 95 % interval contains 0.5. One interval in twenty misses by
chance, so each verdict rests on one number per model (all datasets pooled; the default
setting; for base models and clean twins the plain loss) and every other interval is listed
beside it.
Where m such numbers decide together, their intervals are widened for that (Bonferroni, by
the ratio of normal quantiles).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from analysis.arm import MODEL_FREE
from analysis.lookup import Cell, MetricsOf, contaminated
from inject.ledger import FedCopies
from inject.overlap.filter import OverlapFacts

Verdict = Literal["passed", "failed", "not measured"]
CHANCE = 0.5
_NAMED = 200


class CheckRow(NamedTuple):
    """One interval behind a verdict."""

    label: str
    cell: Cell
    decides: bool
    """Whether the verdict rests on it."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check with its verdict, a sentence for it, and what stands behind it."""

    name: str
    verdict: Verdict
    sentence: str
    rows: tuple[CheckRow, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """What the audit reported, as names and values."""


def check_validity(
    tables: Sequence[MetricsOf],
    audits: Mapping[str, Mapping[str, Any]],
    fed: Mapping[str, FedCopies] = MappingProxyType({}),
    backgrounds: Sequence[OverlapFacts] = (),
) -> list[Check]:
    """Run the checks.

    Args:
        tables: all cohorts' metrics.
        audits: audit results by a label of the plan they audited; each has a boolean
            `passed`, anything else in it is shown as it is.
        fed: what became of the copies of each trained model, by its label.
        backgrounds: what the audit of each background's text found.
    """
    checks = [
        _audit(audits),
        *([_fed(fed)] if fed else []),
        *([_backgrounds(backgrounds)] if backgrounds else []),
        _blind(tables),
        _base(tables),
        _zero_copies(tables),
    ]
    if any(table.cohort.model == "twin" for table in tables):
        who = "The model trained as the arm was, on the same stream without any copy,"
        checks.append(_clean(tables, "twin", "Clean twin", who))
    return checks


def _audit(audits: Mapping[str, Mapping[str, Any]]) -> Check:
    name = "Audit of the training streams"
    if not audits:
        return Check(name=name, verdict="not measured", sentence="No audit was handed in.")
    failed = [label for label, audit in audits.items() if audit.get("passed") is not True]
    facts = tuple(
        (f"{label} · {key}" if label else key, _plain(value))
        for label, audit in audits.items()
        for key, value in audit.items()
    )
    streams = "stream" if len(audits) == 1 else "streams"
    if failed:
        sentence = f"{len(failed)} of {len(audits)} {streams} failed: {', '.join(failed)}."
        return Check(name=name, verdict="failed", sentence=sentence, facts=facts)
    return Check(
        name=name,
        verdict="passed",
        sentence=f"{len(audits)} {streams} searched: every member is there as often as the plan "
        "says, token for token, and no non-member is.",
        facts=facts,
    )


def _fed(fed: Mapping[str, FedCopies]) -> Check:
    """Judge what the models were fed: what was altered fails, what was never reached is told."""
    altered = sum(one.altered for one in fed.values())
    missed = sum(one.partly + one.never for one in fed.values())
    planned = sum(one.planned for one in fed.values())
    told = f"{len(fed)} {'model was' if len(fed) == 1 else 'models were'} fed {planned:,} copies"
    rest = f" {missed:,} were never reached, or not to their end." if missed else ""
    if altered:
        wrong = ", ".join(label for label, one in fed.items() if one.altered)
        sentence = (
            f"{told}, of which {altered:,} had other tokens than their texts have: their "
            f"payload was changed after it was planned ({wrong}).{rest} The scores do not tell "
            "who was seen."
        )
    else:
        sentence = f"{told}; every token of theirs that was fed is the text's own.{rest}"
    facts = []
    for label, one in fed.items():
        facts += [
            (f"{label} · copies planned", f"{one.planned:,}"),
            (f"{label} · fed whole", f"{one.whole:,}"),
            (f"{label} · altered", f"{one.altered:,}"),
            (f"{label} · fed in part", f"{one.partly:,}"),
            (f"{label} · never reached", f"{one.never:,}"),
        ]
        facts += [
            (f"{label} · altered copy", f"{name.example_id} ({name.dataset}), copy {name.copy}")
            for name in one.first_altered
        ]
    return Check(
        name="What the models were fed",
        verdict="failed" if altered else "passed",
        sentence=sentence,
        facts=tuple(facts),
    )


def _backgrounds(found: Sequence[OverlapFacts]) -> Check:
    """Judge what is known of the backgrounds' text; rows that were not looked for are no pass."""
    kept = sum(one.offending - one.dropped for one in found)
    unchecked = {(one.dataset, one.example_id): one for facts in found for one in facts.unchecked}
    rows = max(one.examples for one in found)
    dropped = sum(one.dropped for one in found)
    verdict: Verdict = "failed" if kept else "not measured" if unchecked else "passed"
    sentence = f"{sum(one.documents for one in found):,} documents were compared with {rows:,} rows"
    sentence += f"; {dropped:,} overlapped and were left out." if dropped else "."
    if kept:
        sentence += f" {kept:,} overlap and were kept: members or non-members stand in them."
    if unchecked:
        names = ", ".join(f"{one.dataset} {one.source_id}" for one in list(unchecked.values())[:5])
        more = f" and {len(unchecked) - 5:,} more" if len(unchecked) > 5 else ""
        sentence += (
            f" {len(unchecked):,} of the rows have too few words to be looked for ({names}{more})."
        )
    return Check(
        name="Audit of the background's text",
        verdict=verdict,
        sentence=sentence,
        facts=tuple(
            (f"{one.dataset} {one.source_id} ({one.example_id})", f"{one.words:g} words")
            for one in list(unchecked.values())[:_NAMED]
        ),
    )


def _blind(tables: Sequence[MetricsOf]) -> Check:
    name = "Blind classifier"
    # Without copies in play the base model's rows hold every member, hence come first.
    base = [table for table in tables if table.cohort.model == "base"]
    rows = _rows(base, sorted(MODEL_FREE)) or _rows(contaminated(tables), sorted(MODEL_FREE))
    return _at_chance(
        name,
        rows,
        "A classifier that sees only the texts, never a model,",
        "stayed at chance",
        "told the sides apart",
    )


def _base(tables: Sequence[MetricsOf]) -> Check:
    return _clean(tables, "base", "Base model", "The model that saw neither side")


def _clean(tables: Sequence[MetricsOf], model: str, name: str, who: str) -> Check:
    base = [table for table in tables if table.cohort.model == model]
    detectors = [
        detector
        for detector in dict.fromkeys(name for table in base for name in table.values("detector"))
        if detector not in MODEL_FREE
    ]
    # The first one decides: plain loss, unless the experiment left it out.
    detectors.sort(key=lambda detector: detector != "loss")
    rows = _rows(base, detectors)
    measured = [row for row in rows if row.cell.available]
    inside = sum(row.cell.contains(CHANCE) for row in measured)
    check = _at_chance(
        name,
        rows,
        who,
        "stayed at chance",
        "already told them apart",
    )
    if not measured:
        return check
    return Check(
        name=check.name,
        verdict=check.verdict,
        sentence=f"{check.sentence} Of all its intervals, {inside} of {len(measured)} contain 0.5.",
        rows=check.rows,
    )


def _zero_copies(tables: Sequence[MetricsOf]) -> Check:
    rows = tuple(
        CheckRow(_label(table, "loss", "all"), cell, True)
        for table in contaminated(tables)
        if (cell := table.get("loss", copies="0")) is not None
    )
    name = "Members that drew no copy"
    if not rows:
        return Check(
            name=name,
            verdict="not measured",
            sentence="No arm has ten or more members that drew zero copies.",
        )
    return _at_chance(
        name,
        rows,
        "Members of which no copy was spiked",
        "look like non-members",
        "look unlike the non-members",
    )


def _rows(tables: Iterable[MetricsOf], detectors: Sequence[str]) -> tuple[CheckRow, ...]:
    """List the default settings' AUC intervals; the first detector, pooled, decides.

    Arms that share their examples share their blind scores: equal cells are listed once.
    """
    rows: list[CheckRow] = []
    seen: set[tuple[str, str, float, float, float]] = set()
    for table in tables:
        for detector in detectors:
            datasets = table.values("dataset")
            for dataset in datasets[:1] if len(datasets) == 2 else datasets:
                cell = table.get(detector, dataset=dataset)
                if cell is None:
                    continue
                mark = (detector, dataset, cell.value, cell.low, cell.high)
                if mark in seen:
                    continue
                seen.add(mark)
                decides = detector == detectors[0] and dataset == "all"
                rows.append(CheckRow(_label(table, detector, dataset), cell, decides))
    return tuple(rows)


def _at_chance(name: str, rows: Sequence[CheckRow], who: str, right: str, wrong: str) -> Check:
    deciding = [row for row in rows if row.decides and row.cell.available]
    if not deciding:
        return Check(
            name=name,
            verdict="not measured",
            sentence="There is no interval to judge by.",
            rows=tuple(rows),
        )
    missed = [row for row in deciding if not _contains_chance(row.cell, len(deciding))]
    intervals = "interval" if len(deciding) == 1 else "intervals"
    first = (missed or deciding)[0].cell
    shown = f"AUC {first.value:.2f} [{first.low:.2f}, {first.high:.2f}]"
    if len(deciding) > 1:
        shown = f"the first: {shown}"
    if missed:
        sentence = (
            f"{who} {wrong}: {len(missed)} of {len(deciding)} {intervals} miss 0.5 ({shown})."
        )
        return Check(name=name, verdict="failed", sentence=sentence, rows=tuple(rows))
    if len(deciding) == 1:
        count = "the interval contains 0.5"
    else:
        count = f"none of {len(deciding)} intervals, widened for their number, misses 0.5"
    return Check(
        name=name,
        verdict="passed",
        sentence=f"{who} {right}: {count} ({shown}).",
        rows=tuple(rows),
    )


def _contains_chance(cell: Cell, m: int) -> bool:
    wider = NormalDist().inv_cdf(1 - 0.025 / m) / NormalDist().inv_cdf(0.975)
    low = cell.value - wider * (cell.value - cell.low)
    high = cell.value + wider * (cell.high - cell.value)
    return low <= CHANCE <= high


def _label(table: MetricsOf, detector: str, dataset: str) -> str:
    parts = [detector, "" if dataset == "all" else dataset, table.cohort.label()]
    return " · ".join(part for part in parts if part)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | dict):
        return f"{len(value)} entries" if value else "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
