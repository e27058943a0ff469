"""From score files to tables: metrics, paired differences, selected scores, what was left out.

`analyse` makes one pass over the cohorts (arms that differ only in their seed); at any time
the scores of one cohort are in memory. Everything is reported on the `test` split, with
each detector's default setting and the one chosen on `tune`. Non-members are the withheld
side. Cost: 24 arms of 6 datasets, 2,400 examples and 9 detectors take about half a minute.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from analysis.adjusted import adjust_columns, adjusted_differences, adjusted_metrics, find_base
from analysis.arm import (
    MODEL_FREE,
    Arm,
    Cohort,
    DetectorColumn,
    LoadedArm,
    axis_names,
    cohorts,
    load_arm,
)
from analysis.auc_cells import PreparedCohort, measure_columns
from analysis.compared_rows import UnscoredRows
from analysis.copy_bins import ALL, with_passage_copies
from analysis.correction.question import correction_rows
from analysis.dataset_detectors.detector import method_roots
from analysis.dataset_detectors.table import dataset_rows
from analysis.decisions.flagged import flagged_rows
from analysis.factors.contrasts import analyse_factors
from analysis.factors.study import CONTAMINATED
from analysis.findings import question_table, read_tables, write_findings
from analysis.metrics import AUC
from analysis.selection.tuning import (
    Choice,
    choose_settings,
    reported_columns,
    score_schema,
    score_table,
    shown_columns,
)
from analysis.settings import AnalysisSettings
from analysis.studies.verdicts import QUESTION as CLAIMS
from analysis.studies.verdicts import StudyClaims, claim_rows
from analysis.tables import (
    choice_rows,
    difference_rows,
    dose_rows,
    metric_rows,
    variants,
    with_selections,
)
from analysis.trajectory.palimpsest import QUESTION as PALIMPSEST
from analysis.trajectory.palimpsest import palimpsest_rows
from detect.scores.table import SCORES_FILE, default_settings
from inject.settings import plain
from inject.step import Step, StepContext, StepGroup, compared_models, comparing_step
from inject.stream.exposures import RECORDS, read_exposures, seen_copy_counts, seen_variants
from inject.tables import read_parquet

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All results of the analysis."""

    tables: Mapping[str, pa.Table]
    """By question (`analysis.findings`)."""
    scores: pa.Table
    """The selected settings' scores of every example: axes, seed, model, row, example_id,
    detector, setting, selection, score, reason."""
    choices: Mapping[Cohort, tuple[Choice, ...]]
    """The settings chosen, by cohort."""
    unscored: tuple[UnscoredRows, ...]
    copies: tuple[Row, ...] = ()
    """The effect of more copies in each arm: rows for the later table of factors."""

    @property
    def metrics(self) -> pa.Table:
        """One row a cell. `variant` is `all`, or what the copies of the row's members carried;
        `auc_adjusted` rows accompany `auc` ones if the base model scored the same rows."""
        return self.tables["metrics"]

    @property
    def differences(self) -> pa.Table:
        """AUC differences on the same rows to `versus`, a detector that `reference` calls `loss` or
        `best` (the highest AUC on the tuning rows); raw and adjusted."""
        return self.tables["differences"]

    @property
    def datasets(self) -> pa.Table:
        """The findings of dataset-level detectors."""
        return self.tables["dataset_detectors"]

    @property
    def flagged(self) -> pa.Table:
        """What each detector's default setting flags at the false-discovery level, and how much of
        it is wrong."""
        return self.tables["flagged"]

    @property
    def factors(self) -> pa.Table | None:
        """The effect of each factor; None until factors are analysed."""
        return self.tables.get("factors")


Question = Callable[[PreparedCohort, Sequence[Choice]], Sequence[Row]]
QUESTIONS: Mapping[str, Question] = {
    "dataset_detectors": dataset_rows,
    "flagged": flagged_rows,
    "correction": correction_rows,
}
"""The questions about each cohort besides its metrics; add one as a function and a line here."""


def analyse(
    arms: Sequence[Arm],
    settings: AnalysisSettings,
    *,
    progress: Callable[[str], None] = lambda cohort: None,
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
    names = ("metrics", "differences", *QUESTIONS, PALIMPSEST)
    rows: dict[str, list[Row]] = {name: [] for name in names}
    choices: dict[Cohort, tuple[Choice, ...]] = {}
    scores, unscored, copies = [], [], []
    bases: dict[Path, LoadedArm] = {}
    for cohort, cohort_arms in cohorts(arms).items():
        progress(" · ".join(filter(None, (cohort.model, cohort.label()))))
        loaded = [load_arm(arm) for arm in cohort_arms]
        chosen = choose_settings(loaded, settings)
        choices[cohort] = tuple(chosen)
        picked = reported_columns(loaded, chosen)
        work = PreparedCohort.prepare(cohort, loaded, list(picked), settings)
        unscored += [part.unscored for compared in work.compared for part in compared.values()]
        contaminated = cohort.model == CONTAMINATED
        below = [find_base(arms, arm) if contaminated else None for arm in cohort_arms]
        for base in below:
            if base is not None and base.scores not in bases:
                bases[base.scores] = load_arm(base)
        seeds = [None if base is None else bases[base.scores] for base in below]
        metrics, differences, doses = _measured_rows(work, picked, chosen, seeds)
        rows["metrics"] += with_passage_copies(metrics, loaded, work.cells)
        rows["differences"] += differences
        copies += doses if contaminated else []
        for name, ask in QUESTIONS.items():
            rows[name] += ask(work, chosen)
        rows[PALIMPSEST] += palimpsest_rows(cohort, loaded, arms, settings)
        scores += [score_table(arm, cohort, picked) for arm in loaded]
    return Analysis(
        tables={name: question_table(name, axes, table_rows) for name, table_rows in rows.items()},
        scores=pa.concat_tables(scores) if scores else score_schema(axes).empty_table(),
        choices=choices,
        unscored=tuple(unscored),
        copies=tuple(copies),
    )


def _measured_rows(
    work: PreparedCohort,
    picked: Mapping[DetectorColumn, Sequence[str]],
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
    measured = measure_columns(work, picked)
    adjusted = adjust_columns(work, measured, bases)
    for column, selections in picked.items():
        raw = list(metric_rows(work, column, measured[column]))
        metrics += with_selections([*raw, *adjusted_metrics(work, adjusted, raw)], selections)
    metrics += _control_rows(work, picked)
    for variant, part in variants(work).items():
        for column, column_metrics in measure_columns(part, picked).items():
            rows = metric_rows(part, column, column_metrics, variant=variant)
            metrics += with_selections(rows, picked[column])
    comparison: tuple[Any, list[Row], list[Row]] | None = None
    for selection in ("default", "tuned"):
        columns = [column for column, names in picked.items() if selection in names]
        values = {choice.detector: choice.tune_value(selection) for choice in chosen}
        tune = {column: values[column.detector] for column in columns}
        # Where no detector has a better setting than its default, one comparison serves both.
        if comparison is None or comparison[0] != (columns, tune):
            gaps = list(difference_rows(work, columns, measured, tune))
            gaps = [*gaps, *adjusted_differences(work, adjusted, gaps)]
            comparison = (columns, tune), list(choice_rows(work, columns, tune)), gaps
        metrics += with_selections(comparison[1], [selection])
        differences += with_selections(comparison[2], [selection])
    return metrics, differences, list(dose_rows(work, shown_columns(picked), measured))


def _control_rows(
    work: PreparedCohort, picked: Mapping[DetectorColumn, Sequence[str]]
) -> Iterator[Row]:
    """Yield the AUCs of the settings of controls that are neither default nor tuned.

    A difference between the sides that one setting cannot see another can: all of them decide
    together. They are measured on the rows of the others and take part in no comparison.
    """
    first = work.loaded[0]
    columns = [
        column
        for detector in sorted(MODEL_FREE & {*first.detectors})
        for column in first.grid(detector)
        if column not in picked and _scores_all(work, column)
    ]
    for column, column_metrics in measure_columns(work, columns).items():
        for row in metric_rows(work, column, column_metrics):
            if row["metric"] == AUC and row["copies"] == ALL:
                yield {**row, "selection": column.setting}


def _scores_all(work: PreparedCohort, column: DetectorColumn) -> bool:
    """Return whether a column has a score for every row that is compared."""
    if any(column not in arm.index for arm in work.loaded):
        return False
    return bool(np.isfinite(work.scores(column)[np.any(work.sides(column), axis=0)]).all())


CHOICES_FILE = "choices.json"

_CHOICES = TypeAdapter(tuple[tuple[Cohort, tuple[Choice, ...]], ...])
_UNSCORED = TypeAdapter(tuple[UnscoredRows, ...])


def results_step(
    models: Sequence[StepGroup],
    settings: AnalysisSettings,
    *,
    label: str,
    claims: StudyClaims | None = None,
) -> Step:
    """Analyse all models of an experiment.

    Args:
        models: their values are `axes` (pairs), `seed`, `model` (`contaminated`, `base`, `twin` or
            `retrained`) and `fixed_levels`; their steps `scores`, `examples`, `model` (none if
            it saw no copies, whose number has no meaning) and what questions read besides, by the
            names of `Arm.further`.
        settings: of the analysis.
        label: for people.
        claims: of the study; None for none.
    """
    # Whether models are queried is visible in the graph.
    used = plain(settings, exclude={"task_accuracy", "background_tokens", "shards", "shuffles"})
    return comparing_step(
        f"{__name__}:build",
        models,
        kind="results",
        label=label,
        settings={"analysis": used, **({} if claims is None else {CLAIMS: plain(claims)})},
        reading=RECORDS,
        libraries=("numpy", "scipy", "scikit-learn"),
        code=method_roots(settings.dataset_detectors),
    )


def build(context: StepContext) -> None:
    """Analyse the models, and write what was found."""
    settings = AnalysisSettings.model_validate(context.settings["analysis"])
    arms = open_arms(context.settings["arms"], context.inputs)
    done = count()

    def on_cohort(cohort: str) -> None:
        context.report(next(done), len(arms), unit="models", note=cohort)

    analysis = analyse(arms, settings, progress=on_cohort)
    context.report(len(arms), len(arms), unit="models", note="factors")
    factors = analyse_factors(arms, analysis.choices, settings, copies=analysis.copies)
    tables = {**analysis.tables, "factors": factors}
    if CLAIMS in context.settings:
        claims = StudyClaims.model_validate(context.settings[CLAIMS])
        rows = claim_rows(arms, claims, settings)
        tables[CLAIMS] = question_table(CLAIMS, axis_names(arms), rows)
    write_analysis(context.out, replace(analysis, tables=tables, copies=()))


def open_arms(models: Sequence[Mapping[str, Any]], inputs: Mapping[str, Path]) -> list[Arm]:
    """Return the models of `results_step`.

    Args:
        models: the step's setting `arms`.
        inputs: the folders of its inputs.

    Raises:
        InputError: scores or exposures are missing or damaged.
    """
    arms = []
    for model, folders in compared_models(models, inputs):
        scores, examples = folders.pop("scores"), folders.pop("examples")
        training = folders.pop("model", None)
        seen = None if training is None else read_exposures(training)
        arms.append(
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
    return arms


def write_analysis(folder: Path, analysis: Analysis) -> None:
    """Write an analysis into a folder."""
    write_findings(folder, analysis.tables)
    pq.write_table(analysis.scores, folder / SCORES_FILE)
    choices = {
        "choices": _CHOICES.dump_python(tuple(analysis.choices.items()), mode="json"),
        "unscored": _UNSCORED.dump_python(analysis.unscored, mode="json"),
    }
    (folder / CHOICES_FILE).write_text(json.dumps(choices, indent=1))


def read_analysis(folder: Path) -> Analysis:
    """Read what `write_analysis` wrote.

    Raises:
        InputError: naming the table that is missing or damaged.
    """
    choices = json.loads((folder / CHOICES_FILE).read_text())
    return Analysis(
        tables=read_tables(folder),
        scores=read_parquet(folder / SCORES_FILE),
        choices=dict(_CHOICES.validate_python(choices["choices"])),
        unscored=_UNSCORED.validate_python(choices["unscored"]),
    )
