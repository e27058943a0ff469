"""A finished run, opened from its folder: its tables, its figures and its settings.

Only the run's folder is read, which is complete by itself: a run can be opened on a machine
without a store. Tables are read on first use and cached.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arm import axis_column
from analysis.findings import (
    FINDINGS_FILE,
    as_table,
    contaminated_cohorts,
    questions,
    split_by_cohort,
)
from analysis.selection.ranking import ranked
from analysis.unit import AUC
from detect.scores.table import SCORES_FILE
from inject.errors import InputError, unknown_name
from inject.examples.example import EXAMPLES_FILE
from inject.stream.exposures import EXPOSURES_FILE
from spikein import __version__
from spikein.config.arms import axes_of
from spikein.config.former_keys import with_current_keys
from spikein.config.yaml_document import read_document
from spikein.pipeline.models import MODELS_FILE
from spikein.runs.folder import find_run, folders_by_name, is_run, linked_artifacts, numbered
from spikein.runs.index_page import read_sentences
from spikein.runs.publish import PAGE
from spikein.runs.record import EXPERIMENT, RECORD, RunRecord, checked_record
from spikein.runs.run_tables import RUN_AGAIN, RUN_TABLES, missing_parts, read_run_table
from spikein.store.artifact import open_artifact
from spikein.store.filesystem import AnyPath, runs_folder

_OF_UNLEARNING = ("unlearning", "verdict", "unlearning_audits")
_UNLEARNING = "Give the experiment a section `unlearning`, with `forget` and `methods`."


@dataclass(frozen=True, kw_only=True, repr=False)
class Run:
    """A finished run."""

    folder: Path
    """`runs/NAME/N/`."""
    record: RunRecord
    """The content of `run.json`."""

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.record.name

    @property
    def report(self) -> Path:
        """The page of the run, one HTML file."""
        return self.folder / PAGE

    @cached_property
    def findings(self) -> pa.Table:
        """All results, one row per number: `question`, swept axes, the columns of all questions,
        and `caution`; columns that a question does not use are null."""
        return read_run_table(self.folder / FINDINGS_FILE)

    @cached_property
    def models(self) -> pa.Table:
        """One row per model: swept axes, arm, its label, role, method, condition, the folders
        in the store of the model and of its scores, seed and scored checkpoint."""
        return read_run_table(self.folder / MODELS_FILE)

    def table(self, question: str) -> pa.Table:
        """Return the findings of one question as a table of its own columns.

        Args:
            question: such as `metrics`, `differences`, `accuracy`, `trajectory` or `fading`.

        Raises:
            InputError: when the run does not answer this question.
        """
        answered = questions(self.findings)
        if question not in answered:
            raise InputError(
                f"the run has no findings of {question!r}",
                where=str(self.folder / FINDINGS_FILE),
                allowed=", ".join(answered),
                hint=_UNLEARNING if question in _OF_UNLEARNING else None,
            )
        return as_table(self.findings, question)

    @cached_property
    def metrics(self) -> pa.Table:
        """One row per number of the report: swept axes, model, dataset, detector, setting,
        selection, copies, variant, metric, value, low, high and the underlying counts."""
        return self.table("metrics")

    @cached_property
    def differences(self) -> pa.Table:
        """Paired AUC differences to the best detector and to `loss`: as the metrics, with versus,
        versus_setting and reference."""
        return self.table("differences")

    @cached_property
    def scores(self) -> pa.Table:
        """The score of every example under each reported setting: swept axes, seed, model, row,
        example_id, detector, setting, selection, score and reason."""
        return read_run_table(self.folder / SCORES_FILE)

    @cached_property
    def dataset_detectors(self) -> pa.Table:
        """Results of dataset-level detectors: swept axes, model, seed, dataset, detector, rows,
        statistic, value, low, high, p_value, p_holm, n and note."""
        return self.table("dataset_detectors")

    @cached_property
    def flagged(self) -> pa.Table:
        """Decisions of each detector at the false-discovery level: swept axes, model, dataset,
        detector, setting, level, calibration, the number of flagged rows and of non-members among
        them, their share with its interval, and the true-positive rate."""
        return self.table("flagged")

    @cached_property
    def factors(self) -> pa.Table:
        """Effects of the factors: swept axes, kind, factor, dataset, detector, setting, level,
        versus, term, x, value, low, high, pointwise_low, pointwise_high, p_value, n_members,
        n_seeds, what is shown, and why an effect is absent."""
        return self.table("factors")

    @cached_property
    def examples(self) -> pa.Table:
        """The ground truth: every example with its dataset, group, text, side, split and seed,
        and the swept axes on which that depends. Texts of protected datasets are omitted."""
        return read_run_table(self.folder / EXAMPLES_FILE)

    @cached_property
    def exposures(self) -> pa.Table:
        """When each copy was seen: swept axes, seed, example_id, copy, epoch, step, tokens before,
        window, and whether its tokens were intact."""
        return read_run_table(self.folder / EXPOSURES_FILE)

    def unlearning(self) -> pa.Table:
        """Return the effects of unlearning on forgotten and retained texts: swept axes, model,
        method, dataset, copies, measure, detector, setting, value, low, high, forget, holdout,
        groups, seeds and note.

        Raises:
            InputError: when the experiment has no unlearned model.
        """
        return self.table("unlearning")

    def unlearning_verdict(self) -> pa.Table:
        """Return the position of each unlearned model between the retrained model and the original:
        swept axes, method, measure, detector, kind, verdict, value, low, high, the values of all
        three, groups, seeds, and note; the row `all` of a method is its verdict as text.

        Raises:
            InputError: when the experiment has no unlearned model.
        """
        return self.table("verdict")

    def unlearning_audits(self) -> pa.Table:
        """Return the audit results of unlearned models: swept axes, seed, method, quantity, value,
        low, high, chunks and note.

        Raises:
            InputError: when the experiment has no `unlearning.audit`.
        """
        return self.table("unlearning_audits")

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The experiment as it was run, with every default filled in; plain values."""
        document = read_document(self.folder / EXPERIMENT)
        return with_current_keys(document, notes=False).values

    @property
    def summary(self) -> tuple[str, ...]:
        """The sentences that the run printed at its end, the headline among the first."""
        return tuple(read_sentences(self.folder))

    @property
    def axes(self) -> tuple[str, ...]:
        """The dotted keys that the arms differ in: those of the sweep, or of the named arms."""
        return axes_of(self.settings)

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of the figures."""
        return tuple(sorted(path.stem for path in (self.folder / "figures").glob("*.png")))

    def figure(self, name: str, *, kind: str = "png") -> Path:
        """Return the file of a figure.

        Args:
            name: one of `figures`, such as `detectors` or `copies`.
            kind: `png` or `svg`.

        Raises:
            InputError: when the run has no such figure.
        """
        if kind not in ("png", "svg"):
            raise InputError(f"figures are not kept as {kind!r}", allowed="png, svg")
        path = self.folder / "figures" / f"{name}.{kind}"
        if name not in self.figures or not path.is_file():
            raise unknown_name(
                f"the run has no figure {name!r}",
                name,
                self.figures,
                where=str(self.folder),
                none="none; the run has no figures",
            )
        return path

    def artifacts(self, kind: str) -> dict[str, Path]:
        """Return the run's folders in the store, by label (of a model: its arm's).

        Args:
            kind: such as `model`, `corpus`, `plan` or `statistics`.

        Raises:
            InputError: when the run has no artifact of that kind, or it is gone from the store.
        """
        artifacts_of_run = linked_artifacts(self.folder)
        folders = [path for path in artifacts_of_run if path.parent.name == kind]
        if not folders:
            kinds = sorted({path.parent.name for path in artifacts_of_run})
            problem = f"the run has no artifact of the kind {kind!r}"
            raise unknown_name(problem, kind, kinds, where=str(self.folder))
        missing = [path for path in folders if not path.is_dir()]
        if missing:
            raise InputError(
                f"{len(missing)} of {len(folders)} artifacts of the kind {kind!r} are gone from "
                f"the store (the first: {missing[0]})",
                where=str(self.folder),
                hint="The run's tables and figures do not need them. "
                + RUN_AGAIN.format(self.folder / EXPERIMENT),
            )
        # Several artifacts may share a label: then their digests distinguish them.
        labels = [open_artifact(path).manifest.label for path in folders]
        return {
            label if labels.count(label) == 1 else path.name: path
            for label, path in zip(labels, folders, strict=True)
        }

    def _facts(self) -> list[tuple[str, str]]:
        """Return a summary of the run as names and values."""
        folders = linked_artifacts(self.folder)
        n_missing = sum(not path.is_dir() for path in folders)
        detectors = dict.fromkeys(self.metrics["detector"].to_pylist())
        columns = {axis: axis_column(axis) for axis in self.axes}
        swept = {
            axis: len(set(self.metrics[column].to_pylist()) - {""})
            for axis, column in columns.items()
            if column in self.metrics.column_names
        }
        sizes = {
            Path(name).stem: pq.read_metadata(self.folder / name).num_rows for name in RUN_TABLES
        }
        return [
            ("finished", f"{self.record.finished}, by spikein {self.record.version}"),
            ("folder", str(self.folder)),
            ("sweep", ", ".join(f"{axis} ({n} values)" for axis, n in swept.items()) or "none"),
            ("detectors", ", ".join(detectors)),
            ("tables", ", ".join(f"{name} ({rows:,} rows)" for name, rows in sizes.items())),
            ("figures", ", ".join(self.figures) or "none"),
            (
                "artifacts",
                f"{len(folders)} in the store"
                if not n_missing
                else f"{n_missing} of {len(folders)} are gone from the store",
            ),
            ("page", str(self.report)),
        ]

    def __repr__(self) -> str:
        lines = [f"  {name:<9}  {value}" for name, value in self._facts()]
        return "\n".join([f"Run {self.name!r}", *lines, *self.summary[:1]])

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with the AUC of each detector in each arm."""
        facts = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._facts()
        )
        sentences = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.summary[:1])
        return (
            f"<div><strong>Run {html.escape(self.name)}</strong>{sentences}"
            f"<table>{facts}</table>{_auc_html(self)}</div>"
        )


def load_run(run: AnyPath, *, runs: AnyPath | None = None) -> Run:
    """Open a finished run.

    Args:
        run: the run's folder, or its name.
        runs: the folder of runs that a name is looked up in; `$SPIKEIN_RUNS`, else `runs`, when
            None.

    Raises:
        InputError: for a folder that is not a run, a changed table, or a run of another version of
            spikein that lacks what this one reads; reports what is missing and what to do.

    Example:
        ```python
        import spikein

        run = spikein.load_run("runs/quickstart")
        print(run)
        print(run.metrics.to_pandas().head())
        ```
    """
    folder = _find(Path(run), runs_folder(runs))
    record = checked_record(folder)
    again = RUN_AGAIN.format(folder / EXPERIMENT)
    if missing := missing_parts(folder):
        raise InputError(
            f"the run was made by spikein {record.version}, this is spikein {__version__}, and its "
            f"folder lacks {'; '.join(missing)}",
            where=str(folder),
            hint=f"Its page is unchanged ({folder / PAGE}). {again}",
        )
    return Run(folder=folder, record=record)


def _find(run: Path, runs_root: Path) -> Path:
    if run.is_dir() and not is_run(run) and not numbered(run):
        inside = [home.name for home in folders_by_name(run)]
        if inside:
            raise InputError(
                "is a folder of runs, not a run",
                where=str(run),
                allowed=", ".join(str(run / name) for name in inside),
            )
        if not numbered(runs_root / run) and not is_run(runs_root / run):
            raise InputError(
                "is not the folder of a run: `spikein run` did not write it",
                where=str(run),
                hint=f"A run's folder contains {PAGE} and {RECORD}.",
            )
    return find_run(runs_root, str(run))


def _auc_html(run: Run) -> str:
    """Return a table of AUCs: detectors in rows, arms in columns, the best of each arm bold."""
    tables = contaminated_cohorts(split_by_cohort(run.metrics, run.axes))
    if not tables:
        return ""
    labels = (table.cohort.label() or "contaminated" for table in tables)
    head = "".join(f"<th>{html.escape(label)}</th>" for label in labels)
    best = [ranked(table)[:1] for table in tables]
    body = ""
    for name in dict.fromkeys(name for table in tables for name in table.values("detector")):
        cells = ""
        for table, first in zip(tables, best, strict=True):
            text = str(AUC.entry(table.reported(name)))
            cells += f"<td><b>{text}</b></td>" if name in first else f"<td>{text}</td>"
        body += f"<tr><th style='text-align:left'>{html.escape(name)}</th>{cells}</tr>"
    return (
        "<p>AUC [95 % interval] of all members with a copy, datasets pooled, settings chosen on "
        f"the tuning split:</p><table><tr><th></th>{head}</tr>{body}</table>"
    )
