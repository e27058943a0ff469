"""The page of a run: which sections it has, in which order, and what each is made from.

`spikein.runs.page_inputs` collects the inputs, `spikein.runs.publish` writes the folder. The page
needs nothing beside it: styles, figures and one script are inside, and a content security policy
forbids loading anything and running any other script. Every text is escaped by the template engine;
the only markup let through is that of our own figures (`svg.py`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from analysis.arm import axis_names
from analysis.checks.check import Check
from analysis.checks.validity import check_validity
from analysis.copy_bins import passage_sentences
from analysis.metrics_table import split_by_cohort
from analysis.page.cost import cost_parts, provenance_parts
from analysis.page.grids import detector_order, interval
from analysis.page.inputs import PageInputs
from analysis.page.methods import Methods, describe_methods, methods_parts
from analysis.page.parts import (
    Card,
    Cards,
    Columns,
    Fold,
    Note,
    Part,
    Picture,
    Section,
    present,
    render_page,
)
from analysis.page.sections.accuracy import accuracy_parts
from analysis.page.sections.all_results import all_results
from analysis.page.sections.examples import examples_parts
from analysis.page.sections.factors import factors_parts
from analysis.page.sections.results import detector_notes, results_parts
from analysis.page.sections.trajectory import along_training, trajectory_parts
from analysis.page.setup import background_parts, datasets_table, description, pool_notes, setup
from analysis.page.streams import stream_listing, stream_sentences
from analysis.page.svg import inline_svg
from analysis.page.table import Column, Entry, Table, facts, numbers
from analysis.page.unlearning.audits import audits_parts
from analysis.page.unlearning.view import unlearning_parts
from analysis.summary import find_headline, summary_sentences
from analysis.task_accuracy.accuracy_gain import accuracy_gain_tables
from detect.guarded_call import NO_SCORE

_MAX_INTERVALS = 40
"""A longer list of the intervals behind a verdict is not printed on paper."""


class RunPage(NamedTuple):
    """A run's page, and what else is made of its content."""

    html: str
    checks: Sequence[Check]
    sentences: Sequence[str]
    """Detectors that failed, the headline, what stands behind it, detection along training."""
    methods: Methods | None

    @property
    def summary(self) -> list[str]:
        """The lines that a run prints at its end: checks in short, then sentences."""
        return [*(one.line for one in self.checks), *self.sentences]


def build_page(inputs: PageInputs) -> RunPage:
    """Return the page of a run."""
    axes = axis_names(inputs.arms)
    tables = split_by_cohort(inputs.analysis.metrics, axes)
    backgrounds = [found for _, found in inputs.backgrounds]
    checks = check_validity(tables, inputs.audits, inputs.copies, backgrounds)
    along = inputs.trajectory and trajectory_parts(inputs.trajectory, inputs.swept)
    # The leaderboard lists what was left out.
    listed = {one.note for one in inputs.left_out}
    noted = detector_notes(inputs.arms, besides={*listed, *inputs.notes})
    methods = describe_methods(inputs) if inputs.settings else None
    pictures = _pictures(inputs)
    best = find_headline(tables)
    detectors = [] if best is None else detector_order(best.table, tables)
    factors, accuracy = inputs.analysis.factors, inputs.accuracy
    sections = (
        Section("validity", "Validity", "Is this experiment valid?", [_verdicts(checks)]),
        Section("experiment", "What was run", "What was run", _experiment(inputs, listed)),
        Section(
            "background",
            "Background",
            "Was the background clean?",
            [part for found in inputs.backgrounds for part in background_parts(*found)],
        ),
        Section(
            "results",
            "Results",
            "Which detectors tell members from non-members?",
            results_parts(inputs, tables, best, detectors, noted, pictures),
        ),
        Section(
            "factors",
            "Factors",
            "What does each factor do?",
            factors_parts(factors, axes, detectors, pictures) if factors else [],
        ),
        Section(
            "during-training",
            "During training",
            "How does detection change during training?",
            along_training(along, pictures) if along else [],
        ),
        Section(
            "unlearning",
            "Unlearning",
            "What did unlearning leave behind?",
            unlearning_parts(inputs.unlearning, pictures) if inputs.unlearning else [],
        ),
        Section(
            "unlearning-audits",
            "Audits of unlearning",
            "Would an audit have seen it?",
            audits_parts(inputs.unlearning) if inputs.unlearning else [],
        ),
        Section(
            "accuracy",
            "Task accuracy",
            "How much did task accuracy gain?",
            accuracy_parts(accuracy_gain_tables(accuracy, axes), pictures) if accuracy else [],
        ),
        Section("all-results", "All results", "All results", present(all_results(tables))),
        Section(
            "examples",
            "Examples",
            "Examples with the highest and lowest scores",
            examples_parts(inputs.arms, best, show_protected=inputs.show_protected) if best else [],
        ),
        Section("cost", "Cost", "Cost", cost_parts(inputs.steps, inputs.detector_work)),
        Section(
            "methods",
            "Methods",
            "Methods, for a paper",
            methods_parts(methods, linked=inputs.figure_links) if methods else [],
        ),
        Section("provenance", "Provenance", "Provenance", provenance_parts(inputs)),
    )
    shown = [section for section in sections if section.parts]
    sentences = summary_sentences(tables)
    return RunPage(
        html=render_page("spikein report", inputs.name, sentences, shown, script=True),
        checks=checks,
        sentences=(
            *(note for note in noted if NO_SCORE in note),
            *sentences,
            *(along.sentences if along else ()),
        ),
        methods=methods,
    )


def _pictures(inputs: PageInputs) -> dict[str, Picture]:
    """Return the figures by name, ready to stand in the page."""
    return {
        one.name: Picture(
            one, inline_svg(one.svg, f"fig-{one.name}", one.alternative), inputs.figure_links
        )
        for one in inputs.figures
    }


def _verdicts(checks: Sequence[Check]) -> Cards:
    return Cards(
        [
            Card(one.name, one.verdict, one.verdict_line, one.sentence, _behind(one))
            for one in checks
        ]
    )


def _behind(check: Check) -> list[Part]:
    """Return what a verdict rests on: all intervals, or what the audit reported."""
    if check.rows:
        table = Table(
            columns=(Column("Over"), Column("AUC", right=True)),
            rows=tuple(
                (
                    Entry(
                        row.label,
                        notes=(f"{row.cell.n_members:,} + {row.cell.n_nonmembers:,}",),
                        strong=row.pooled,
                    ),
                    interval(row.cell),
                )
                for row in check.rows
            ),
            caption="Bold: over all datasets. Under each: members + non-members.",
            style="plain",
        )
        return [Fold("All intervals", [table], screen_only=len(check.rows) > _MAX_INTERVALS)]
    if not check.facts:
        return []
    alike = " (all alike)" if check.streams is not None else ""
    parts: list[Part] = [facts("", [(f"{name}{alike}", value) for name, value in check.facts])]
    if check.streams is not None and check.streams.columns:
        columns = (Column("Trained"), *numbers(*check.streams.columns))
        rows = tuple((label, *values) for label, values in check.streams.rows)
        parts.append(Table(columns=columns, rows=rows))
    return [Fold("What the audit reported", parts)]


def _experiment(inputs: PageInputs, listed: set[str]) -> list[Part]:
    """Return what was run, without the notes that are listed elsewhere."""
    notes = [note for note in inputs.notes if note not in listed] + pool_notes(inputs.pools)
    notes = [*dict.fromkeys(notes), *passage_sentences(inputs.analysis.metrics)]
    datasets = datasets_table(inputs.arms[0].examples) if inputs.arms else None
    sentences = stream_sentences(inputs.streams)
    if not inputs.settings:
        return present(list(map(Note, notes)), datasets, stream_listing(inputs.streams), *sentences)
    settings = setup(inputs.settings, swept=inputs.swept, seeds=inputs.seeds)
    return present(
        description(inputs.settings, inputs.datasets),
        [Note(note) for note in notes],
        Columns(present(settings, datasets)),
        stream_listing(inputs.streams),
        *sentences,
    )
