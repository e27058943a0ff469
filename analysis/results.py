"""From score files to tables: metrics, paired differences, selected scores, what was left out.

`analyse` makes one pass over the cohorts (arms that differ only in their seed); at any time
the scores of one cohort are in memory. Everything is reported on the `test` split, with
each detector's default setting and the one chosen on `tune`. Non-members are the withheld
side. Cost: 24 arms of 6 datasets, 2,400 examples and 9 detectors take about half a minute.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from analysis.adjusted import AdjustedColumns, BaseModels
from analysis.arm import MODEL_FREE, Arm, Cohort, Column, LoadedArm, axis_names, cohorts, load_arm
from analysis.auc_cells import measure_columns
from analysis.compared_rows import UnscoredRows
from analysis.copy_bins import ALL, PassageCopies
from analysis.dataset_detectors.registry import method_roots
from analysis.dataset_detectors.table import dataset_rows
from analysis.decisions.flagged import flagged_rows
from analysis.factors.findings import analyse_factors
from analysis.factors.study import CONTAMINATED
from analysis.findings import as_table, question_table, questions, read_findings, write_findings
from analysis.selection.tuning import (
    Choice,
    choose_settings,
    reported_columns,
    score_schema,
    score_table,
)
from analysis.settings import AnalysisSettings
from analysis.tables import AUC, PreparedCohort
from detect.scores.table import SCORES_FILE, default_settings
from inject.settings import plain
from inject.step import Step, StepContext, StepGroup, compared_models, comparing_step
from inject.stream.exposures import RECORDS, read_exposures, seen_copy_counts, seen_variants
from inject.tables import read_parquet

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class CohortChoice:
    """The settings chosen for one cohort."""

    cohort: Cohort
    choices: tuple[Choice, ...]


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """Everything the scores say."""

    tables: Mapping[str, pa.Table]
    """By question (`analysis.findings`)."""
    scores: pa.Table
    """The selected settings' scores of every example: axes, seed, model, row, example_id,
    detector, setting, selection, score, reason."""
    choices: tuple[CohortChoice, ...]
    unscored: tuple[UnscoredRows, ...]
    copies: tuple[Row, ...] = ()
    """What more copies do in each arm: rows for the table of the factors, before it is made."""

    @property
    def metrics(self) -> pa.Table:
        """One row a cell. `variant` is `all`, or what the copies of the row's members carried;
        `auc_adjusted` rows stand beside `auc` ones where the base model scored the same rows."""
        return self.tables["metrics"]

    @property
    def differences(self) -> pa.Table:
        """AUC differences on the same rows to `versus`, a detector that `reference` calls `loss` or
        `best` (the highest AUC on the tune rows); raw and adjusted."""
        return self.tables["differences"]

    @property
    def datasets(self) -> pa.Table:
        """What dataset-level detectors found."""
        return self.tables["dataset_detectors"]

    @property
    def flagged(self) -> pa.Table:
        """What each detector's default setting flags at the false-discovery level, and how much of
        it is wrong."""
        return self.tables["flagged"]

    @property
    def factors(self) -> pa.Table | None:
        """What each factor does; None before they were analysed."""
        return self.tables.get("factors")

    @property
    def choices_by_cohort(self) -> dict[Cohort, tuple[Choice, ...]]:
        """The settings chosen, by cohort."""
        return {found.cohort: found.choices for found in self.choices}


Question = Callable[
    [Cohort, Sequence[LoadedArm], Sequence[Choice], AnalysisSettings], Sequence[Row]
]
QUESTIONS: Mapping[str, Question] = {
    "dataset_detectors": dataset_rows,
    "flagged": flagged_rows,
}
"""What is asked of each cohort besides its metrics: a new one is a function, and a line here."""


def analyse(
    arms: Sequence[Arm],
    settings: AnalysisSettings,
    *,
    progress: Callable[[str], None] | None = None,
) -> Analysis:
    """Compute all tables but that of the factors.

    Args:
        arms: the models of an experiment, contaminated, base and others.
        settings: how to.
        progress: called with the name of each cohort before it is worked on.

    Raises:
        InputError: from `load_arm` and `cohorts`.
    """
    axes = axis_names(arms)
    rows: dict[str, list[Row]] = {name: [] for name in ("metrics", "differences", *QUESTIONS)}
    scores, choices, unscored, copies = [], [], [], []
    bases = BaseModels(arms)
    for cohort, same in cohorts(arms).items():
        if progress is not None:
            progress(" · ".join(part for part in (cohort.model, cohort.label()) if part))
        loaded = [load_arm(arm) for arm in same]
        chosen = choose_settings(loaded, settings)
        choices.append(CohortChoice(cohort=cohort, choices=tuple(chosen)))
        picked = reported_columns(loaded, chosen)
        work = PreparedCohort.prepare(cohort, loaded, list(picked), settings)
        unscored += [part.unscored for arm in work.arms for part in arm.compared.values()]
        seeds = [bases.of(arm) if cohort.model == "contaminated" else None for arm in same]
        metrics, differences, doses = _measured_rows(work, picked, chosen, seeds)
        rows["metrics"] += PassageCopies(loaded).beside(metrics, work.cells)
        rows["differences"] += differences
        copies += doses if cohort.model == CONTAMINATED else []
        for name, ask in QUESTIONS.items():
            rows[name] += ask(cohort, loaded, chosen, settings)
        scores += [score_table(arm, cohort, picked) for arm in loaded]
    return Analysis(
        tables={name: question_table(name, axes, found) for name, found in rows.items()},
        scores=pa.concat_tables(scores) if scores else score_schema(axes).empty_table(),
        choices=tuple(choices),
        unscored=tuple(unscored),
        copies=tuple(copies),
    )


def _measured_rows(
    work: PreparedCohort,
    picked: Mapping[Column, Sequence[str]],
    chosen: Sequence[Choice],
    bases: Sequence[LoadedArm | None],
) -> tuple[list[Row], list[Row], list[Row]]:
    """Return the metrics and the differences of a cohort, and what its numbers of copies do.

    Args:
        work: the cohort, made ready.
        picked: the columns that are reported, each with the selections it stands for.
        chosen: the settings chosen for it.
        bases: the base model of each seed.
    """
    metrics: list[Row] = []
    differences: list[Row] = []
    measured = measure_columns(work.arms, list(picked), work.datasets, work.cells, work.settings)
    adjusted = AdjustedColumns(work, measured, bases)
    for column, selections in picked.items():
        raw = list(work.metric_rows(column, selections[0], measured[column]))
        both = [*raw, *adjusted.metric_rows(column, raw)]
        for selection in selections:
            metrics += _relabelled(both, selection)
    metrics += _control_rows(work, picked)
    for variant, part in work.by_variant().items():
        of = measure_columns(part.arms, list(picked), part.datasets, part.cells, part.settings)
        for column, selections in picked.items():
            for selection in selections:
                metrics += part.metric_rows(column, selection, of[column], variant=variant)
    known: tuple[Any, list[Row], list[Row]] | None = None
    for selection in ("default", "tuned"):
        columns = [column for column, names in picked.items() if selection in names]
        values = {choice.detector: choice.tune_value(selection) for choice in chosen}
        tune = {column: values[column.detector] for column in columns}
        # Where no detector has a better setting than its default, one comparison serves both.
        if known is None or known[0] != (columns, tune):
            gaps = list(work.difference_rows(columns, selection, measured, tune))
            gaps += adjusted.difference_rows(gaps)
            known = (columns, tune), list(work.choice_rows(columns, selection, tune)), gaps
        metrics += _relabelled(known[1], selection)
        differences += _relabelled(known[2], selection)
    doses = work.copies_rows(_reported(picked), measured)
    return metrics, differences, list(doses)


def _reported(picked: Mapping[Column, Sequence[str]]) -> list[Column]:
    """Return the setting that stands for each detector that looks at a model: tuned, else default.

    Args:
        picked: the columns that are reported, each with the selections it stands for.
    """
    found: dict[str, Column] = {}
    for column, selections in picked.items():
        if column.detector not in MODEL_FREE and (
            "tuned" in selections or column.detector not in found
        ):
            found[column.detector] = column
    return list(found.values())


def _relabelled(rows: Sequence[Row], selection: str) -> list[Row]:
    """Return rows of settings that stand for another selection, too."""
    return [{**row, "selection": selection} for row in rows]


def _control_rows(work: PreparedCohort, picked: Mapping[Column, Sequence[str]]) -> Iterator[Row]:
    """Yield the AUCs of the settings of controls that are neither default nor tuned.

    A difference between the sides that one setting cannot see another can: all of them decide
    together. They are measured on the rows of the others and take part in no comparison.
    """
    arms = [arm.loaded for arm in work.arms]
    columns = [
        column
        for detector in sorted(MODEL_FREE & {name for arm in arms for name in arm.detectors})
        for column in (arms[0].grid(detector) if detector in arms[0].detectors else [])
        if column not in picked and _scores_all(work, column)
    ]
    measured = measure_columns(work.arms, columns, work.datasets, work.cells, work.settings)
    for column, found in measured.items():
        for row in work.metric_rows(column, column.setting, found):
            if row["metric"] == AUC and row["copies"] == ALL:
                yield row


def _scores_all(work: PreparedCohort, column: Column) -> bool:
    """Say whether a column has a score for every row that is compared."""
    return all(
        column in arm.loaded.index
        and np.isfinite(arm.loaded.scores[rows.common, arm.loaded.index[column]]).all()
        for arm in work.arms
        for rows in arm.compared.values()
    )


CHOICES_FILE = "choices.json"

_CHOICES = TypeAdapter(tuple[CohortChoice, ...])
_UNSCORED = TypeAdapter(tuple[UnscoredRows, ...])


def results_step(models: Sequence[StepGroup], settings: AnalysisSettings, *, label: str) -> Step:
    """Analyse all models of an experiment.

    Args:
        models: their values are `axes` (pairs), `seed`, `model` (`contaminated`, `base`, `twin` or
            `retrained`) and `fixed_levels`; their steps `scores`, `examples`, `model` (none where
            it saw no copies, whose number has no meaning) and what dataset-level detectors read
            besides, by the names of `Arm.further`.
        settings: of the analysis.
        label: for people.
    """
    # Whether models are asked questions is visible in the graph.
    used = plain(settings, exclude={"task_accuracy", "background_tokens", "shards", "shuffles"})
    return comparing_step(
        f"{__name__}:build",
        models,
        kind="results",
        label=label,
        settings={"analysis": used},
        reading=RECORDS,
        libraries=("numpy", "scipy", "scikit-learn", "statsmodels"),
        code=method_roots(settings.dataset_detectors),
    )


def build(context: StepContext) -> None:
    """Analyse the models, and write what was found."""
    settings = AnalysisSettings.model_validate(context.settings["analysis"])
    arms = open_arms(context.settings["arms"], context.inputs)
    done = 0

    def on_cohort(cohort: str) -> None:
        nonlocal done
        context.report(done, len(arms), unit="models", note=cohort)
        done += 1

    analysis = analyse(arms, settings, progress=on_cohort)
    context.report(len(arms), len(arms), unit="models", note="factors")
    factors = analyse_factors(arms, analysis.choices_by_cohort, settings, copies=analysis.copies)
    tables = {**analysis.tables, "factors": factors}
    write_analysis(context.out, replace(analysis, tables=tables, copies=()))


def open_arms(models: Sequence[Mapping[str, Any]], inputs: Mapping[str, Path]) -> list[Arm]:
    """Return the models of `results_step`.

    Args:
        models: the step's setting `arms`.
        inputs: the folders of its inputs.

    Raises:
        InputError: scores or exposures are missing or damaged.
    """
    found = []
    for model, folders in compared_models(models, inputs):
        scores, examples = folders.pop("scores"), folders.pop("examples")
        training = folders.pop("model", None)
        seen = None if training is None else read_exposures(training)
        found.append(
            Arm(
                axes=model["axes"],
                seed=model["seed"],
                model=model["model"],
                scores=scores,
                examples=examples,
                copies=None if seen is None else seen_copy_counts(seen),
                variants={} if seen is None else seen_variants(seen),
                defaults=default_settings(scores),
                training=training,
                fixed_levels=model["fixed_levels"],
                further=folders,
            )
        )
    return found


def write_analysis(folder: Path, analysis: Analysis) -> None:
    """Write an analysis into a folder."""
    write_findings(folder, analysis.tables)
    pq.write_table(analysis.scores, folder / SCORES_FILE)
    choices = {
        "choices": _CHOICES.dump_python(analysis.choices, mode="json"),
        "unscored": _UNSCORED.dump_python(analysis.unscored, mode="json"),
    }
    (folder / CHOICES_FILE).write_text(json.dumps(choices, indent=1))


def read_analysis(folder: Path) -> Analysis:
    """Read what `write_analysis` wrote.

    Raises:
        InputError: naming the table that is missing or damaged.
    """
    choices = json.loads((folder / CHOICES_FILE).read_text())
    findings = read_findings(folder)
    return Analysis(
        tables={name: as_table(findings, name) for name in questions(findings)},
        scores=read_parquet(folder / SCORES_FILE),
        choices=_CHOICES.validate_python(choices["choices"]),
        unscored=_UNSCORED.validate_python(choices["unscored"]),
    )
