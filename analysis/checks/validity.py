"""Does the experiment deserve belief? Checks that come before any result.

1. The audit found every member the realised number of times and no non-member; and, read back
   from what each model was fed, no copy had other tokens than its text. No document that
   overlaps with an example is left in the background, and every example could be looked for.
2. A blind classifier, which sees no model, cannot tell the sides apart: not by words, not by
   TF-IDF, not by length. All of its settings decide together.
3. A base model, which saw neither side, gives no AUC away from 0.5.
4. Members that drew no copy look like non-members.
5. A clean twin, trained as the arm was and on neither side, gives no AUC away from 0.5; where
   the experiment has one.

Checks 2 to 5 follow the one rule of `analysis.checks.chance`, over everything that the page shows:
the default and the tuned setting of every detector, all datasets and each alone, every arm.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from analysis.arm import MODEL_FREE
from analysis.checks.chance import (
    CHANCE,
    MARGIN,
    Ends,
    cells_off_chance,
    joint_ends,
    possible_aucs,
    within_margin,
)
from analysis.checks.check import Check, CheckRow, StreamFacts, Verdict
from analysis.copy_bins import ALL
from analysis.metrics_table import Cell, CohortMetrics, contaminated_cohorts
from inject.overlap.filter import OverlapFacts
from inject.stream.exposures import CopyOutcomes

_POOLED = "all"
_NO_INTERVAL = "There is no interval to judge by."
_NAMED = 200


def check_validity(
    tables: Sequence[CohortMetrics],
    audits: Mapping[str, Mapping[str, Any]],
    fed: Mapping[str, CopyOutcomes] = MappingProxyType({}),
    backgrounds: Sequence[OverlapFacts] = (),
) -> list[Check]:
    """Run the checks.

    Args:
        tables: all cohorts' metrics.
        audits: audit results by a label of the stream they audited; each has a boolean
            `passed`, anything else in it is shown as it is.
        fed: what became of the copies of each trained model, by its label.
        backgrounds: what the audit of each background's text found.
    """
    checks = [
        _audit(audits),
        *([_fed(fed)] if fed else []),
        *([_backgrounds(backgrounds)] if backgrounds else []),
        _blind(tables),
        _clean(tables, "base"),
        _zero_copies(tables),
    ]
    if any(table.cohort.model == "twin" for table in tables):
        checks.append(_clean(tables, "twin"))
    return checks


def _audit(audits: Mapping[str, Mapping[str, Any]]) -> Check:
    name = "Audit of the training streams"
    if not audits:
        none = "No audit was handed in."
        return Check(key="streams", name=name, verdict="not measured", sentence=none)
    failed = [label for label, audit in audits.items() if audit.get("passed") is not True]
    facts, streams = _facts(audits)
    counted = f"{len(audits)} {'stream' if len(audits) == 1 else 'streams'}"
    sentence = (
        f"{counted} searched: every member is there as often as the plan says, token for token, "
        "and no non-member is."
    )
    if failed:
        named = ": " + "; ".join(failed) if any(failed) else ""
        sentence = f"{len(failed)} of {counted} failed{named}."
    planned, found, withheld = (
        [int(audit.get(key, 0)) for audit in audits.values()]
        for key in ("copies planned", "copies found", "non-members found")
    )
    wrong = [abs(one - other) for one, other in zip(planned, found, strict=True)]
    return Check(
        key="streams",
        name=name,
        verdict="failed" if failed else "passed",
        sentence=sentence,
        total=sum(planned),
        off=sum(wrong) + sum(withheld),
        facts=facts,
        streams=streams,
    )


def _facts(
    audits: Mapping[str, Mapping[str, Any]],
) -> tuple[tuple[tuple[str, str], ...], StreamFacts | None]:
    """Split what the audits say into what is alike for all streams, and what is not."""
    keys = list(dict.fromkeys(key for audit in audits.values() for key in audit))
    values = {
        key: [_plain(audit[key]) if key in audit else "" for audit in audits.values()]
        for key in keys
    }
    alike = tuple((key, values[key][0]) for key in keys if len(set(values[key])) == 1)
    apart = tuple(key for key in keys if len(set(values[key])) > 1)
    rows = tuple(
        (label, tuple(values[key][at] for key in apart)) for at, label in enumerate(audits)
    )
    return alike, StreamFacts(apart, rows) if len(audits) > 1 else None


def _fed(fed: Mapping[str, CopyOutcomes]) -> Check:
    """Judge what the models were fed: what was altered fails, what was never reached is told."""
    altered = sum(one.altered for one in fed.values())
    missed = sum(one.partly + one.never for one in fed.values())
    planned = sum(one.planned for one in fed.values())
    models = "1 model was" if len(fed) == 1 else f"{len(fed)} models were"
    fed_text = f"{models} fed {planned:,} copies"
    rest = f" {missed:,} were never reached, or not to their end." if missed else ""
    if altered:
        wrong = ", ".join(label for label, one in fed.items() if one.altered)
        sentence = (
            f"{fed_text}, of which {altered:,} had other tokens than their texts have: their "
            f"payload was changed after it was planned ({wrong}).{rest} The scores do not tell "
            "who was seen."
        )
    else:
        sentence = f"{fed_text}; every token of theirs that was fed is the text's own.{rest}"
    facts, streams = _facts(
        {
            label: {
                "copies planned": one.planned,
                "fed whole": one.whole,
                "altered": one.altered,
                "fed in part": one.partly,
                "never reached": one.never,
            }
            for label, one in fed.items()
        }
    )
    named = tuple(
        (f"altered in {label}", f"{name.example_id} ({name.dataset}), copy {name.copy}")
        for label, one in fed.items()
        for name in one.first_altered
    )
    return Check(
        key="fed",
        name="What the models were fed",
        verdict="failed" if altered else "passed",
        sentence=sentence,
        total=planned,
        off=altered,
        facts=(*facts, *named),
        streams=streams,
    )


def _backgrounds(found: Sequence[OverlapFacts]) -> Check:
    """Judge what is known of the backgrounds' text; rows that were not looked for are no pass."""
    remaining = sum(one.offending - one.dropped for one in found)
    unchecked = {(one.dataset, one.example_id): one for facts in found for one in facts.unchecked}
    rows = max(one.examples for one in found)
    dropped = sum(one.dropped for one in found)
    verdict: Verdict = "failed" if remaining else "cannot tell" if unchecked else "passed"
    documents = sum(one.documents for one in found)
    sentence = f"{documents:,} documents were compared with {rows:,} rows"
    sentence += f"; {dropped:,} overlapped and were left out." if dropped else "."
    if remaining:
        sentence += f" {remaining:,} overlap and were kept: members or non-members stand in them."
    if unchecked:
        names = ", ".join(f"{one.dataset} {one.source_id}" for one in list(unchecked.values())[:5])
        more = f" and {len(unchecked) - 5:,} more" if len(unchecked) > 5 else ""
        sentence += (
            f" {len(unchecked):,} of the rows have too few words to be looked for ({names}{more})."
        )
    return Check(
        key="background",
        name="Audit of the background's text",
        verdict=verdict,
        sentence=sentence,
        total=documents,
        off=remaining,
        facts=tuple(
            (f"{one.dataset} {one.source_id} ({one.example_id})", f"{one.words:g} words")
            for one in list(unchecked.values())[:_NAMED]
        ),
    )


def _blind(tables: Sequence[CohortMetrics]) -> Check:
    # Without copies in play the base model's rows hold every member, hence come first.
    base = [table for table in tables if table.cohort.model == "base"]
    rows = _rows(base, MODEL_FREE) or _rows(contaminated_cohorts(tables), MODEL_FREE)
    return _at_chance(
        "blind",
        "Blind classifier",
        rows,
        "A classifier that sees only the texts, never a model,",
        "told the sides apart",
        none=_NO_INTERVAL if rows else "There are no scores of the detector blind.",
    )


def _clean(tables: Sequence[CohortMetrics], model: str) -> Check:
    name, who = {
        "base": ("Base model", "The model that saw neither side"),
        "twin": (
            "Clean twin",
            "The model trained as the arm was, on the same stream without any copy,",
        ),
    }[model]
    same = [table for table in tables if table.cohort.model == model]
    rows = _rows(same, _contestants(same))
    return _at_chance(model, name, rows, who, "already told them apart")


def _contestants(tables: Sequence[CohortMetrics]) -> list[str]:
    """Return the detectors that look at a model."""
    names = dict.fromkeys(name for table in tables for name in table.values("detector"))
    return [name for name in names if name not in MODEL_FREE]


def _zero_copies(tables: Sequence[CohortMetrics]) -> Check:
    same = contaminated_cohorts(tables)
    rows = _rows(same, _contestants(same), copies="0")
    return _at_chance(
        "no copy",
        "Members that drew no copy",
        rows,
        "Members of which no copy was spiked",
        "look unlike the non-members",
        none="No arm has enough members that drew zero copies.",
    )


def _rows(
    tables: Iterable[CohortMetrics], detectors: Iterable[str], *, copies: str = ALL
) -> tuple[CheckRow, ...]:
    """List every AUC interval of the detectors: default and tuned, pooled and by dataset.

    Arms that share their examples share their blind scores, and a tuned setting can be the
    default one: equal cells are listed, and counted, once.
    """
    rows: dict[tuple[object, ...], CheckRow] = {}
    names = list(detectors)
    for table in tables:
        datasets = table.values("dataset")
        # Of a control every setting decides: what words do not show, lengths may.
        every = {
            name: [key.selection for key in table.cells if key.detector == name]
            if name in MODEL_FREE
            else []
            for name in names
        }
        # With one dataset, the pooled row is that dataset's.
        for dataset in datasets[:1] if len(datasets) == 2 else datasets:
            for detector in names:
                for selection in dict.fromkeys(["default", "tuned", *every[detector]]):
                    cell = table.get(detector, dataset=dataset, selection=selection, copies=copies)
                    if cell is None:
                        continue
                    if cell.available:
                        cell = replace(cell, **possible_aucs(cell)._asdict())
                    mark = (detector, cell.setting, dataset, cell.value, cell.low, cell.high)
                    place = {
                        **table.cohort.columns(),
                        "model": table.cohort.model,
                        "dataset": dataset,
                        "detector": detector,
                        "setting": cell.setting,
                        "selection": selection,
                        "copies": copies,
                    }
                    label = _label(table, detector, cell, dataset)
                    rows.setdefault(mark, CheckRow(label, cell, dataset == _POOLED, place))
    return tuple(rows.values())


def _at_chance(
    key: str,
    name: str,
    rows: Sequence[CheckRow],
    who: str,
    wrong: str,
    none: str = _NO_INTERVAL,
) -> Check:
    measured = [row for row in rows if row.cell.available]
    pooled = [row for row in measured if row.pooled]
    cells = [row.cell for row in measured]
    off = cells_off_chance(cells)
    ends = joint_ends([row.cell for row in pooled], failed=bool(off)) if pooled else None

    def check(verdict: Verdict, sentence: str, margin: str = "") -> Check:
        return Check(
            key=key,
            name=name,
            verdict=verdict,
            sentence=sentence,
            margin=margin,
            rows=tuple(rows),
            room=ends,
            total=len(cells),
            off=len(off),
        )

    if ends is None:
        return check("not measured", none)
    inside = sum(cell.contains(CHANCE) for cell in cells)
    alone = f" Taken alone, {inside} of {len(cells)} intervals contain 0.5."
    alone = "" if len(cells) == 1 else alone
    if off:
        worst = max(
            (row for row in measured if row.cell in off),
            key=lambda row: abs(row.cell.value - CHANCE),
        )
        return check(
            "failed",
            f"{who} {wrong}: {len(off)} of {_aucs(len(cells))} "
            f"{'is' if len(off) == 1 else 'are'} farther from 0.5 than chance, corrected for the "
            f"number; the farthest is {worst.label}, {_shown(worst.cell)} on "
            f"{_rows_of(worst.cell)}.{alone}",
        )
    asked = f"{CHANCE - MARGIN:.1f} to {CHANCE + MARGIN:.1f}"
    clear = f"none of {_aucs(len(cells))} is farther from 0.5 than chance"
    if len(cells) == 1:
        clear = "the AUC is no farther from 0.5 than chance"
    margin = f"leaves room for AUCs from {ends.low:.2f} to {ends.high:.2f}"
    if within_margin(ends):
        return check(
            "passed",
            f"{who} is equivalent to chance: {clear}, and what all datasets together "
            f"leave room for lies within the {asked} asked for. A bias of up to "
            f"{_missed(ends):.2f} in AUC could have been missed.{_single_datasets(measured)}"
            f"{alone}",
            margin,
        )
    widest = max(pooled, key=lambda row: _missed(Ends(row.cell.low, row.cell.high)))
    return check(
        "cannot tell",
        f"No bias was found: {clear}. But so few rows could have missed one: a passed "
        f"check asks for {asked}. The least is known of {widest.label}, "
        f"{_shown(widest.cell)} on {_rows_of(widest.cell)}.{alone}",
        margin,
    )


def _single_datasets(measured: Sequence[CheckRow]) -> str:
    """Say what single datasets could still hide, which have fewer rows than all together."""
    cells = [row.cell for row in measured if not row.pooled]
    if not cells:
        return ""
    ends = joint_ends(cells, failed=False)
    return f" Single datasets leave room from {ends.low:.2f} to {ends.high:.2f}."


def _missed(ends: Ends) -> float:
    """Return the largest distance from chance that the intervals leave room for."""
    return max(CHANCE - ends.low, ends.high - CHANCE)


def _rows_of(cell: Cell) -> str:
    return f"{cell.n_members:,} members and {cell.n_nonmembers:,} non-members"


def _aucs(count: int) -> str:
    return "1 AUC" if count == 1 else f"{count} AUCs"


def _shown(cell: Cell) -> str:
    return f"AUC {cell.value:.2f} [{cell.low:.2f}, {cell.high:.2f}]"


def _label(table: CohortMetrics, detector: str, cell: Cell, dataset: str) -> str:
    setting = "" if cell.setting in ("default", "-", "") else f" ({cell.setting})"
    where = "" if dataset == _POOLED else dataset
    return " · ".join(part for part in (detector + setting, where, table.cohort.label()) if part)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | dict):
        return f"{len(value)} entries" if value else "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
