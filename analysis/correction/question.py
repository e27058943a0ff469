"""Score correction of a run's arms, by dataset with closed answers.

The target is the clean twin's accuracy on the corrected items; without a twin the base model's,
which has not seen the background either. All rows are of the split `test`, which chose no
detector's setting: the tuned one scores, else the default. A dataset whose clean accuracy is not
above chance has that as its only row. Rows by copies are about the members of that number of
copies, which also calibrate, and about all non-members. Cost: see `docs/score-correction.md`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from analysis.arm import DetectorColumn, LoadedArm
from analysis.auc_cells import PreparedCohort
from analysis.copy_bins import ALL, CopiesCell, copies_cells, is_dose
from analysis.correction.calibration import log_odds
from analysis.correction.errors import OUTCOMES, Items, dataset_errors
from analysis.decisions.flagged import seen_rows, unseen_rows
from analysis.intervals.influence import Counts, pack_groups
from analysis.intervals.rows import Rows, mean_numbers
from analysis.selection.tuning import Choice, reported_columns, shown_columns
from analysis.settings import AnalysisSettings
from detect.task_accuracy.answers import AccuracyRow, read_accuracy

ANSWERS, BASE_ANSWERS, TWIN_ANSWERS = "answers", "base_answers", "twin_answers"
"""Names in `Arm.further`: the answers of the arm, of its base model and of its clean twin."""
ABOVE_CHANCE = "above_chance"
"""Instead of an estimator: the clean accuracy minus that of guessing."""
_TARGETS = {TWIN_ANSWERS: "twin", BASE_ANSWERS: "base"}
_Answers = Mapping[str, Mapping[str, AccuracyRow]]
"""By model and example_id."""


def correction_rows(work: PreparedCohort, choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Return the errors of all estimators; none without the answers of an arm and of a target.

    Args:
        work: the models of an arm.
        choices: the settings chosen on `tune`.
    """
    loaded, settings = work.loaded, work.settings
    answers = [_read_answers(arm) for arm in loaded]
    if not all(ANSWERS in seed and len(seed) > 1 for seed in answers):
        return []
    columns = shown_columns(reported_columns(loaded, choices))
    rows: list[dict[str, Any]] = []
    for dataset in dict.fromkeys(name for arm in loaded for name in arm.dataset):
        used = [_used_rows(*seed, dataset, settings) for seed in zip(loaded, answers, strict=True)]
        if not all(map(len, used)):
            continue
        # A group has the same number in every seed.
        names = [name for arm, at in zip(loaded, used, strict=True) for name in arm.group[at]]
        groups = np.split(pack_groups(names)[0], np.cumsum([len(at) for at in used])[:-1])
        pieces = zip(loaded, answers, used, groups, strict=True)
        seeds = [_items(*piece, columns) for piece in pieces]
        place = {"dataset": dataset, "reference": _TARGETS[_target(answers[0])]}
        head = {**work.cohort.place(), **place}
        rows += [{**head, **row} for row in _dataset_rows(seeds, settings)]
    return rows


def _read_answers(arm: LoadedArm) -> _Answers:
    return {
        name: {row.example_id: row for row in read_accuracy(folder) if row.reason is None}
        for name, folder in arm.arm.further.items()
        if name in (ANSWERS, TWIN_ANSWERS, BASE_ANSWERS)
    }


def _target(answers: _Answers) -> str:
    """Return the model whose accuracy is the target."""
    return TWIN_ANSWERS if TWIN_ANSWERS in answers else BASE_ANSWERS


def _used_rows(
    arm: LoadedArm, answers: _Answers, dataset: str, settings: AnalysisSettings
) -> Counts:
    """Return the places of the test rows that all models answered, of groups on one side."""
    answered = [all(e.example_id in rows for rows in answers.values()) for e in arm.examples]
    usable = arm.test & (arm.dataset == dataset) & np.array(answered, dtype=bool)
    seen = seen_rows(arm)
    mixed = ~seen & np.isin(arm.group, arm.group[usable & seen])
    return np.flatnonzero(usable & (seen | unseen_rows(arm, seen, settings)) & ~mixed)


def _items(
    arm: LoadedArm,
    answers: _Answers,
    used: Counts,
    group: Counts,
    columns: Sequence[DetectorColumn],
) -> Items:
    rows = {
        name: [by_id[arm.examples[at].example_id] for at in used] for name, by_id in answers.items()
    }
    right, clean_right = (
        np.array([row.correct_plain for row in rows[name]], dtype=float)
        for name in (ANSWERS, _target(answers))
    )
    member = seen_rows(arm)[used]
    base = [row.probability_plain for row in rows.get(BASE_ANSWERS, ())] or [np.nan] * len(used)
    return Items(
        member=member,
        copies=arm.copies[used],
        group=group,
        right=dict(zip(OUTCOMES, (right, np.where(member, right, clean_right)), strict=True)),
        clean_right=clean_right,
        chance=np.array([1 / (row.answers or 1) for row in rows[ANSWERS]]),
        clean_logit=log_odds(np.array(base, dtype=float)),
        scores={column: arm.scores[used, arm.index[column]] for column in columns},
    )


def _dataset_rows(seeds: Sequence[Items], settings: AnalysisSettings) -> Iterator[dict[str, Any]]:
    """Yield the rows of one dataset by copies, first its clean accuracy minus chance."""
    number = np.repeat(np.arange(len(seeds)), [len(items.member) for items in seeds])
    rows = Rows.of(np.concatenate([items.group for items in seeds]), seed=number)
    margins = np.concatenate([items.clean_right - items.chance for items in seeds])
    (above,) = mean_numbers(rows, margins).estimates(confidence=settings.confidence)
    yield {"copies": ALL, "estimator": ABOVE_CHANCE, "target": _target_of(seeds), **above.row()}
    if above.value <= 0 or above.low <= 0:
        return
    for cell in _cells(seeds, settings):
        of_cell = [_with_copies(items, cell) for items in seeds]
        place = {"copies": cell.label, "target": _target_of(of_cell)}
        yield from ({**place, **row} for row in dataset_errors(of_cell, settings))


def _target_of(seeds: Sequence[Items]) -> float:
    return float(np.mean([items.clean_right.mean() for items in seeds]))


def _cells(seeds: Sequence[Items], settings: AnalysisSettings) -> list[CopiesCell]:
    """Return `all`, then each number of copies that enough members have, if there are several."""
    copies = np.concatenate([items.copies[items.member] for items in seeds])
    every, *cells = copies_cells(copies.tolist(), high_copies=settings.high_copies)
    doses = [cell for cell in cells if is_dose(cell.label)]
    large = [cell for cell in doses if cell.holds(copies).sum() >= settings.min_members]
    return [every, *(large if len(doses) > 1 else ())]


def _with_copies(items: Items, cell: CopiesCell) -> Items:
    """Return the non-members, and the members of a cell."""
    kept = ~items.member | cell.holds(items.copies)
    return Items._make(
        {name: values[kept] for name, values in field.items()}
        if isinstance(field, Mapping)
        else field[kept]
        for field in items
    )
