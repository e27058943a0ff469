"""Does the experiment deserve belief? Checks that come before any result.

1. The audit found every member the realised number of times and no non-member; and, read back
   from what each model was fed, no copy had other tokens than its text. No document that
   overlaps with an example is left in the background, and every example could be searched for.
2. A blind classifier, which sees no model, cannot distinguish the sides: not by words, not by
   TF-IDF, not by length. All of its settings decide together.
3. A base model, which saw neither side, gives no AUC away from 0.5.
4. Members that drew no copy look like non-members.
5. A clean twin, trained as the arm was and on neither side, gives no AUC away from 0.5; where
   the experiment has one.

Checks 2 to 5 follow the one rule of `analysis.checks.chance`, over everything that the page shows:
the default and the tuned setting of every detector, all datasets and each individually, every arm.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from analysis.arm import MODEL_FREE, Cohort
from analysis.checks import chance
from analysis.checks.check import Check, CheckRow, StreamFacts, Verdict
from analysis.copy_bins import ALL
from analysis.findings import Findings, Row, contaminated_cohorts
from analysis.intervals.estimate import Estimate
from analysis.unit import AUC
from inject.overlap.filter import OverlapFacts
from inject.stream.exposures import CopyOutcomes

_POOLED = "all"
_NO_INTERVAL = "There is no interval to judge."
_NAMED = 200


def check_validity(
    tables: Sequence[Findings],
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
        *([_check_training_input(fed)] if fed else []),
        *([_backgrounds(backgrounds)] if backgrounds else []),
        _check_blind(tables),
        _check_clean(tables, "base"),
        _zero_copies(tables),
    ]
    if any(table.cohort.model == "twin" for table in tables):
        checks.append(_check_clean(tables, "twin"))
    return checks


def _audit(audits: Mapping[str, Mapping[str, Any]]) -> Check:
    name = "Audit of the training streams"
    if not audits:
        none = "No audit was given."
        return Check(key="streams", name=name, verdict="not measured", sentence=none)
    failed = [label for label, audit in audits.items() if audit.get("passed") is not True]
    facts, streams = _facts(audits)
    counted = f"{len(audits)} {'stream' if len(audits) == 1 else 'streams'}"
    sentence = (
        f"{counted} searched: every member occurs as often as planned, token for "
        "token, and no non-member occurs."
    )
    if failed:
        named = ": " + "; ".join(failed) if any(failed) else ""
        sentence = f"{len(failed)} of {counted} failed{named}."
    planned, read_copies, withheld = (
        np.array([int(audit.get(key, 0)) for audit in audits.values()])
        for key in ("copies planned", "copies found", "non-members found")
    )
    return Check(
        key="streams",
        name=name,
        verdict="failed" if failed else "passed",
        sentence=sentence,
        total=int(planned.sum()),
        n_failed=int(np.abs(planned - read_copies).sum() + withheld.sum()),
        facts=facts,
        streams=streams,
    )


def _facts(
    audits: Mapping[str, Mapping[str, Any]],
) -> tuple[tuple[tuple[str, str], ...], StreamFacts | None]:
    """Split the audits' facts into those shared by all streams and those that differ."""
    keys = list(dict.fromkeys(key for audit in audits.values() for key in audit))
    values = {
        key: [_format_fact(audit[key]) if key in audit else "" for audit in audits.values()]
        for key in keys
    }
    alike = tuple((key, values[key][0]) for key in keys if len(set(values[key])) == 1)
    apart = tuple(key for key in keys if len(set(values[key])) > 1)
    rows = tuple(
        (label, tuple(values[key][at] for key in apart)) for at, label in enumerate(audits)
    )
    return alike, StreamFacts(apart, rows) if len(audits) > 1 else None


def _check_training_input(fed: Mapping[str, CopyOutcomes]) -> Check:
    """Judge the models' training input: altered copies fail, copies never reached are reported."""
    altered = sum(outcomes.altered for outcomes in fed.values())
    missed = sum(outcomes.partly + outcomes.never for outcomes in fed.values())
    planned = sum(outcomes.planned for outcomes in fed.values())
    models = "1 model was" if len(fed) == 1 else f"{len(fed)} models were"
    fed_text = f"{models} fed {planned:,} copies"
    unread = f" {missed:,} were not reached, or not completely." if missed else ""
    sentence = f"{fed_text}; every token read from them is the text's own.{unread}"
    if altered:
        wrong = ", ".join(label for label, outcomes in fed.items() if outcomes.altered)
        sentence = (
            f"{fed_text}, of which {altered:,} had other tokens than their texts have: their "
            f"payload was changed after it was planned ({wrong}).{unread} The scores do not "
            "show which texts were seen."
        )
    facts, streams = _facts(
        {
            label: {
                "copies planned": outcomes.planned,
                "fed whole": outcomes.whole,
                "altered": outcomes.altered,
                "fed in part": outcomes.partly,
                "never reached": outcomes.never,
            }
            for label, outcomes in fed.items()
        }
    )
    named = tuple(
        (f"altered in {label}", f"{name.example_id} ({name.dataset}), copy {name.copy}")
        for label, outcomes in fed.items()
        for name in outcomes.first_altered
    )
    return Check(
        key="fed",
        name="What the models were trained on",
        verdict="failed" if altered else "passed",
        sentence=sentence,
        total=planned,
        n_failed=altered,
        facts=(*facts, *named),
        streams=streams,
    )


def _backgrounds(audits: Sequence[OverlapFacts]) -> Check:
    """Judge the audits of the backgrounds' text; rows that were not searched for prevent a pass."""
    remaining = sum(background.offending - background.dropped for background in audits)
    unchecked = {(row.dataset, row.example_id): row for facts in audits for row in facts.unchecked}
    rows = max(background.examples for background in audits)
    dropped = sum(background.dropped for background in audits)
    verdict: Verdict = "failed" if remaining else "cannot tell" if unchecked else "passed"
    documents = sum(background.documents for background in audits)
    sentence = f"{documents:,} documents were compared with {rows:,} rows"
    sentence += f"; {dropped:,} overlapped and were left out." if dropped else "."
    if remaining:
        sentence += f" {remaining:,} overlap and were kept: they contain members or non-members."
    if unchecked:
        names = ", ".join(f"{row.dataset} {row.source_id}" for row in list(unchecked.values())[:5])
        more = f" and {len(unchecked) - 5:,} more" if len(unchecked) > 5 else ""
        sentence += (
            f" {len(unchecked):,} of the rows have too few words to be searched for "
            f"({names}{more})."
        )
    return Check(
        key="background",
        name="Audit of the background's text",
        verdict=verdict,
        sentence=sentence,
        total=documents,
        n_failed=remaining,
        facts=tuple(
            (f"{row.dataset} {row.source_id} ({row.example_id})", f"{row.words:g} words")
            for row in list(unchecked.values())[:_NAMED]
        ),
    )


def _check_blind(tables: Sequence[Findings]) -> Check:
    # Without copies in play the base model's rows contain every member, hence come first.
    base = [table for table in tables if table.cohort.model == "base"]
    rows = _rows(base, MODEL_FREE) or _rows(contaminated_cohorts(tables), MODEL_FREE)
    return _check_chance(
        "blind",
        "Blind classifier",
        rows,
        "A classifier that sees only the texts, never a model,",
        "distinguishes the sides",
        none=_NO_INTERVAL if rows else "There are no scores of the detector blind.",
    )


def _check_clean(tables: Sequence[Findings], model: str) -> Check:
    name, subject = {
        "base": ("Base model", "The model that saw neither side"),
        "twin": (
            "Clean twin",
            "The model trained as the arm was, on the same stream without any copy,",
        ),
    }[model]
    model_tables = [table for table in tables if table.cohort.model == model]
    rows = _rows(model_tables, _contestants(model_tables))
    return _check_chance(model, name, rows, subject, "already distinguishes them")


def _contestants(tables: Sequence[Findings]) -> list[str]:
    """Return the detectors that look at a model."""
    names = dict.fromkeys(name for table in tables for name in table.values("detector"))
    return [name for name in names if name not in MODEL_FREE]


def _zero_copies(tables: Sequence[Findings]) -> Check:
    cohort_tables = contaminated_cohorts(tables)
    rows = _rows(cohort_tables, _contestants(cohort_tables), copies="0")
    return _check_chance(
        "no copy",
        "Members that drew no copy",
        rows,
        "The set of members without a spiked copy",
        "differ from the non-members",
        none="No arm has enough members that drew zero copies.",
    )


def _rows(
    tables: Iterable[Findings], detectors: Iterable[str], *, copies: str = ALL
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
        settings = {
            name: table.where(detector=name).values("selection") if name in MODEL_FREE else []
            for name in names
        }
        # With one dataset, the pooled row is that dataset's.
        for dataset in datasets[:1] if len(datasets) == 2 else datasets:
            for detector in names:
                place = {"detector": detector, "dataset": dataset, "copies": copies}
                for selection in dict.fromkeys(["default", "tuned", *settings[detector]]):
                    if (row := table.row(**place, selection=selection)) is None:
                        continue
                    auc = chance.possible_auc(row)
                    mark = (detector, row["setting"], dataset, auc.value, auc.low, auc.high)
                    check_row = CheckRow(_label(table.cohort, row), row, auc, dataset == _POOLED)
                    rows.setdefault(mark, check_row)
    return tuple(rows.values())


def _check_chance(
    key: str,
    name: str,
    rows: Sequence[CheckRow],
    subject: str,
    wrong: str,
    none: str = _NO_INTERVAL,
) -> Check:
    measured = [row for row in rows if row.auc.available]
    pooled = [row for row in measured if row.pooled]
    off = [measured[at] for at in chance.off_chance([row.row for row in measured])]
    room = chance.joint_room([row.auc for row in pooled], failed=bool(off)) if pooled else None

    def check(verdict: Verdict, sentence: str, margin: str = "") -> Check:
        return Check(
            key=key,
            name=name,
            verdict=verdict,
            sentence=sentence,
            margin=margin,
            rows=tuple(rows),
            room=room,
            total=len(measured),
            n_failed=len(off),
        )

    if room is None:
        return check("not measured", none)
    inside = sum(row.auc.contains(chance.CHANCE) for row in measured)
    alone = f" Individually, {inside} of {len(measured)} intervals contain 0.5."
    alone = "" if len(measured) == 1 else alone
    if off:
        worst = max(off, key=lambda row: abs(row.auc.value - chance.CHANCE))
        return check(
            "failed",
            f"{subject} {wrong}: {len(off)} of {_aucs(len(measured))} "
            f"{'is' if len(off) == 1 else 'are'} farther from 0.5 than chance, corrected for the "
            f"number; the farthest is {worst.label}, {AUC.text(*worst.auc[:3])} on "
            f"{_rows_of(worst.auc)}.{alone}",
        )
    required = f"{chance.CHANCE - chance.MARGIN:.1f} to {chance.CHANCE + chance.MARGIN:.1f}"
    clear = f"none of {_aucs(len(measured))} is farther from 0.5 than chance"
    if len(measured) == 1:
        clear = "the AUC is not farther from 0.5 than chance"
    margin = f"AUCs from {room.low:.2f} to {room.high:.2f} remain possible"
    if chance.within_margin(room):
        return check(
            "passed",
            f"{subject} is equivalent to chance: {clear}, and the range that all "
            f"datasets together cannot exclude is within the required {required}. A bias of up to "
            f"{_missed_bias(room):.2f} in AUC could have been missed.{_single_datasets(measured)}"
            f"{alone}",
            margin,
        )
    widest = max(pooled, key=lambda row: _missed_bias(row.auc))
    return check(
        "cannot tell",
        f"No bias was detected: {clear}. But so few rows could have missed one: "
        f"a passed check requires {required}. The widest range is that of {widest.label}, "
        f"{AUC.text(*widest.auc[:3])} on {_rows_of(widest.auc)}.{alone}",
        margin,
    )


def _single_datasets(measured: Sequence[CheckRow]) -> str:
    """Return a sentence on the bias that single datasets, with fewer rows, could still hide."""
    aucs = [row.auc for row in measured if not row.pooled]
    if not aucs:
        return ""
    room = chance.joint_room(aucs, failed=False)
    return f" For single datasets AUCs from {room.low:.2f} to {room.high:.2f} remain possible."


def _missed_bias(room: Estimate) -> float:
    """Return the largest distance from chance that the intervals leave room for."""
    return max(chance.CHANCE - room.low, room.high - chance.CHANCE)


def _rows_of(cell: Estimate) -> str:
    return f"{cell.members:,} members and {cell.nonmembers:,} non-members"


def _aucs(count: int) -> str:
    return "1 AUC" if count == 1 else f"{count} AUCs"


def _label(cohort: Cohort, row: Row) -> str:
    setting = "" if row["setting"] in ("default", "-", "") else f" ({row['setting']})"
    dataset = "" if row["dataset"] == _POOLED else row["dataset"]
    return " · ".join(filter(None, (row["detector"] + setting, dataset, cohort.label())))


def _format_fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | dict):
        return f"{len(value)} entries" if value else "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
