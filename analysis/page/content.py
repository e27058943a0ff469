"""The pages of a run: which sections each has, in which order, and what each is made from.

The report answers first: its first screen holds the headline, two pictures, the checks and what
each factor does; then comes a section a question. What few readers need has pages beside it.
`spikein.runs.page_inputs` collects the inputs, `spikein.runs.publish` writes the folder. No page
needs another to be read: styles and pictures are inside, and a content security policy forbids
loading anything and running any script but our own. Every text is escaped by the template engine;
the only markup let through is that of our own pictures.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from analysis.arm import axis_names
from analysis.checks.check import Check
from analysis.checks.validity import check_validity
from analysis.findings import Findings, split_by_cohort
from analysis.page.cost import cost_parts, provenance_parts
from analysis.page.drawing.picture import Picture
from analysis.page.first_screen import CHECKS, arms_picture, badges, first_parts, gains
from analysis.page.inputs import PageInputs
from analysis.page.methods import Methods, describe_methods, methods_parts
from analysis.page.parts import (
    Beside,
    Columns,
    Foot,
    Gains,
    Keyed,
    Note,
    Part,
    Section,
    pictures_in,
    present,
    render_page,
)
from analysis.page.sections.accuracy import accuracy_parts
from analysis.page.sections.all_results import all_results
from analysis.page.sections.checks import audits_parts as stream_audits
from analysis.page.sections.checks import checks_parts, checks_tables
from analysis.page.sections.copies import copies_parts, copies_picture
from analysis.page.sections.detector import detector_parts, left_out_listing
from analysis.page.sections.examples import examples_parts, scores_picture, training_picture
from analysis.page.sections.experiment import experiment_parts
from analysis.page.sections.factors import factors_parts
from analysis.page.sections.rates import rates_parts
from analysis.page.sections.results import results_sections
from analysis.page.sections.trajectory import along_training, trajectory_parts
from analysis.page.sections.unscored import detector_notes
from analysis.page.setup import background_parts
from analysis.page.unlearning.sections import lead_parts, unlearning_sections
from analysis.page.unlearning.verdicts import judged_models, leading_sentences
from analysis.page.view import View
from analysis.summary import (
    AUC_MEANS,
    NOTHING_MEASURED,
    choice_sentence,
    find_headline,
    headline_sentence,
    seeds_sentence,
    summary_sentences,
)
from detect.guarded_call import NO_SCORE

REPORT = "report.html"
"""What a run is read from."""
_EXAMPLES = "examples"
_KIND = "spikein report"


class RunPage(NamedTuple):
    """A run's pages, and what else is made of their content."""

    html: str
    """Of the report."""
    beside: Mapping[str, str]
    """Further pages by the names of their files."""
    checks: Sequence[Check]
    sentences: Sequence[str]
    """Detectors that failed, the headline, what stands behind it, detection along training."""
    methods: Methods | None
    pictures: Sequence[Picture]
    """All that stand in them."""

    @property
    def summary(self) -> list[str]:
        """The lines that a run prints at its end: checks in short, then sentences."""
        return [*(one.line for one in self.checks), *self.sentences]


class _Content(NamedTuple):
    """What sections are made of."""

    inputs: PageInputs
    tables: Sequence[Findings]
    checks: Sequence[Check]
    view: View | None
    notes: Sequence[str]
    """What detectors note on their scores."""


def build_page(inputs: PageInputs) -> RunPage:
    """Return the pages of a run."""
    axes = axis_names(inputs.arms)
    tables = split_by_cohort(inputs.analysis.metrics, axes)
    checks = check_validity(
        tables, inputs.audits, inputs.copies, [found for _, found in inputs.backgrounds]
    )
    best = find_headline(tables)
    view = None if best is None else View(inputs=inputs, tables=tables, best=best)
    # The section on detectors lists what was left out.
    listed = {one.note for one in inputs.left_out}
    notes = detector_notes(inputs.arms, besides={*listed, *inputs.notes})
    content = _Content(inputs, tables, checks, view, notes)
    methods = describe_methods(inputs) if inputs.settings else None
    along = inputs.trajectory and trajectory_parts(inputs.trajectory, inputs.swept)
    training = along_training(along) if along else []
    led = _unlearning_led(content, training)
    shown = led or _detection_led(content, training)
    beside = [*shown.beside, *_pages_beside(content, methods)]
    others = [page for page, _ in beside]
    foot = Foot(others if inputs.figure_links else [], _foot_lines(inputs, others))
    names = view.names if view else {}
    sections = [*shown.sections]
    if inputs.show_protected and not inputs.figure_links:
        # A page by itself has no page of examples beside it that could show what was asked for.
        sections += [one for _, held in beside for one in held if one.anchor == _EXAMPLES]
    parts = [*shown.first, *(part for one in sections for part in one.parts)]
    parts += [part for _, held in beside for one in held for part in one.parts]
    return RunPage(
        html=render_page(
            _KIND,
            inputs.name,
            shown.sentences,
            sections,
            first=shown.first,
            foot=foot,
            linked=inputs.figure_links,
        ),
        beside={
            page.file: render_page(
                page.title,
                inputs.name,
                [],
                sections,
                first=[Note(page.about, "how", (("Back to the report", REPORT),))],
                script=True,
                linked=inputs.figure_links,
            )
            for page, sections in beside
        },
        checks=checks,
        sentences=(
            *(note for note in notes if NO_SCORE in note),
            *([str(led.sentences[0])] if led else []),
            *summary_sentences(tables, names),
            *(along.sentences if along else ()),
        ),
        methods=methods,
        pictures=[*{one.name: one for one in pictures_in(parts)}.values()],
    )


class _Report(NamedTuple):
    """What the report of a run shows, and where the rest goes."""

    sentences: Sequence[str | Keyed]
    first: Sequence[Part]
    sections: Sequence[Section]
    beside: Sequence[tuple[Beside, list[Section]]] = ()


def _detection_led(content: _Content, along: Sequence[Part]) -> _Report:
    """Return a report that leads with what detectors tell."""
    view, checks = content.view, content.checks
    return _Report(
        _first_sentences(view),
        first_parts(view, checks) if view else [badges(checks)],
        _around(content, _detection(content, along)),
    )


def _unlearning_led(content: _Content, along: Sequence[Part]) -> _Report | None:
    """Return a report that leads with the verdicts on unlearned models; None without any.

    What detectors told before unlearning is one section, and all else of it a page beside.
    """
    inputs, view = content.inputs, content.view
    models = judged_models(inputs.unlearning.verdicts) if inputs.unlearning else []
    if inputs.unlearning is None or not models:
        return None
    names = view.names if view else {}
    before, more = [], []
    if view is not None:
        said = Note(headline_sentence(view.tables, view.best), "say")
        pictures = Columns(present(arms_picture(view), copies_picture(view)), "pictures")
        before = [Section("before", "Before", "Before unlearning", [said, pictures])]
        further = [Gains(found)] if (found := gains(view)) else []
        more = [Section("changes", "Changes", "What changes what detectors tell?", further)]
    page = Beside(
        "detectors.html",
        "Detectors before unlearning",
        "How well detectors tell members under the models that were not unlearned, a section a "
        "question.",
    )
    return _Report(
        leading_sentences(models, inputs.unlearning.measures),
        [*lead_parts(inputs.unlearning, models, names), badges(content.checks)],
        _around(
            content,
            [*unlearning_sections(inputs.unlearning, models, names), *before],
        ),
        [(page, [*(one for one in more if one.parts), *_detection(content, along)])],
    )


def _first_sentences(view: View | None) -> list[str | Keyed]:
    if view is None:
        return [NOTHING_MEASURED]
    key, rest = choice_sentence(view.best, view.names)
    rest += f" {AUC_MEANS} {seeds_sentence(view.best.cell)}"
    return [headline_sentence(view.tables, view.best), Keyed(key, rest)]


def _around(content: _Content, answers: Sequence[Section]) -> list[Section]:
    """Return the sections of a report: what was run, its answers, whether they may be believed."""
    checks = checks_parts(content.checks, content.inputs)
    sections = (
        Section("experiment", "Set-up", "What was run", experiment_parts(content.inputs)),
        *answers,
        Section(CHECKS, "Checks", "May I believe it?", checks),
    )
    return [section for section in sections if section.parts]


def _detection(content: _Content, along: Sequence[Part]) -> list[Section]:
    """Return the sections on detectors that have something to say."""
    inputs, view = content.inputs, content.view
    sections = (
        Section(
            "detector",
            "Detector",
            "Which detector?",
            detector_parts(view, content.notes)
            if view
            else present(NOTHING_MEASURED, left_out_listing(inputs.left_out)),
        ),
        Section("copies", "Copies", "How many copies?", copies_parts(view) if view else []),
        Section(
            "factors",
            "Factors",
            "What does each factor do?",
            factors_parts(view) if view else [],
        ),
        Section(
            "rates",
            "False alarms",
            "At low false-positive rates",
            rates_parts(view) if view else [],
        ),
        Section(
            "during-training",
            "During training",
            "How does detection change during training?",
            [*along],
        ),
        Section(
            "accuracy",
            "Task",
            "Did the model get better at the task?",
            accuracy_parts(inputs.accuracy, axis_names(inputs.arms), view)
            if inputs.accuracy
            else [],
        ),
    )
    return [section for section in sections if section.parts]


def _pages_beside(content: _Content, methods: Methods | None) -> list[tuple[Beside, list[Section]]]:
    """Return the further pages, with their sections."""
    inputs, view = content.inputs, content.view
    names = {one.name: one.title for one in inputs.detectors}
    pages = (
        (
            Beside(
                "results.html",
                "All results",
                "Every detector, setting, arm, dataset and number of copies, with search; AUCs "
                "adjusted by the base model; chosen settings; the factors in full.",
            ),
            [
                Section("all-results", "All results", "All results",
                        present(all_results(content.tables, names))),
                *(results_sections(view) if view else []),
            ],
        ),
        (
            Beside(
                "examples.html",
                "Scores and examples",
                "The texts that score highest and lowest, the scores of both sides, training "
                "curves.",
            ),
            [
                Section(
                    _EXAMPLES,
                    "Examples",
                    "Examples with the highest and lowest scores",
                    examples_parts(inputs.arms, view, show_protected=inputs.show_protected)
                    if view
                    else [],
                ),
                Section("scores", "Scores", "Scores",
                        present(scores_picture(view) if view else None)),
                Section("training", "Training", "Training", present(training_picture(inputs.arms))),
            ],
        ),
        (
            Beside(
                "methods.html",
                "Methods, cost and provenance",
                "A text for a paper with its sources, the cost of each detector and step, what "
                "each audit reported, versions, digests and the experiment file.",
            ),
            [
                Section(
                    "methods",
                    "Methods",
                    "Methods, for a paper",
                    methods_parts(methods, linked=inputs.figure_links) if methods else [],
                ),
                Section("cost", "Cost", "Cost", cost_parts(inputs.steps, inputs.detector_work)),
                Section("audits", "Audits", "Audits and checks in full",
                        [*stream_audits(content.checks), *checks_tables(content.checks)]),
                Section(
                    "background",
                    "Background",
                    "Was the background clean?",
                    [part for found in inputs.backgrounds for part in background_parts(*found)],
                ),
                Section("provenance", "Provenance", "Provenance", provenance_parts(inputs)),
            ],
        ),
    )  # fmt: skip
    kept = [(page, [one for one in sections if one.parts]) for page, sections in pages]
    return [(page, sections) for page, sections in kept if sections]


def _foot_lines(inputs: PageInputs, beside: Sequence[Beside]) -> list[str]:
    """Say what this page needs beside it, and what made it."""
    made = f"Made by spikein {inputs.code}." if inputs.code else "Made by spikein."
    if not inputs.figure_links:
        return [f"{made} The run's folder holds all results, examples and methods."]
    files = ", ".join(page.file for page in beside)
    return [
        f"{made} This page can be sent by itself. Its links lead to {files} and figures/ beside "
        "it: send those along where they are wanted. All numbers are in findings.parquet."
    ]
