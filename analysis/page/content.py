"""The pages of a run: which sections each has, in which order, and what each is made from.

The report answers first: its first screen contains the headline, two pictures, the checks and what
each factor does; then comes one section per question. What few readers need is on further pages.
`spikein.runs.page_inputs` collects the inputs, `spikein.runs.publish` writes the folder. No page
needs another to be read: styles and pictures are inside, and a content security policy forbids
loading anything and running any script but our own. Every text is escaped by the template engine;
the only markup let through is that of our own pictures.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from analysis import summary
from analysis.arm import axis_names
from analysis.checks.check import Check
from analysis.checks.validity import check_validity
from analysis.findings import Findings, split_by_cohort
from analysis.page.cost import cost_section, provenance_section
from analysis.page.drawing.picture import Picture
from analysis.page.first_screen import arms_picture, first_parts, gains
from analysis.page.inputs import PageInputs
from analysis.page.methods import Methods, describe_methods, methods_section
from analysis.page.parts import (
    Columns,
    Note,
    Part,
    Section,
    SiblingPage,
    answer,
    pictures_in,
    present,
    render_page,
)
from analysis.page.sections.accuracy import accuracy_section
from analysis.page.sections.checks import (
    audits_parts,
    background_parts,
    badges,
    checks_section,
    checks_tables,
)
from analysis.page.sections.claims import claims_section
from analysis.page.sections.copies import copies_picture, copies_section
from analysis.page.sections.correction import correction_section
from analysis.page.sections.detector import detector_notes, detector_section, unmeasured_section
from analysis.page.sections.examples import (
    EXAMPLES,
    examples_section,
    scores_picture,
    training_picture,
)
from analysis.page.sections.experiment import experiment_section
from analysis.page.sections.factors import factors_section
from analysis.page.sections.rates import rates_section
from analysis.page.sections.results import all_results, results_sections
from analysis.page.sections.training_order import order_section
from analysis.page.sections.trajectory import trajectory_section
from analysis.page.unlearning.sections import lead_parts, unlearning_sections
from analysis.page.unlearning.verdicts import judged_models, leading_sentences
from analysis.page.view import ReportView
from analysis.studies.verdicts import QUESTION as CLAIMS
from detect.guarded_call import NO_SCORE

REPORT = "report.html"
"""The report page of a run."""
_KIND = "spikein report"


class RunPage(NamedTuple):
    """A run's pages, and what else is made of their content."""

    html: str
    """Of the report."""
    siblings: Mapping[str, str]
    """Further pages by the names of their files."""
    checks: Sequence[Check]
    sentences: Sequence[str]
    """Detectors that failed, the headline, its basis, and detection along training."""
    methods: Methods | None
    pictures: Sequence[Picture]
    """All pictures of the pages."""

    @property
    def summary(self) -> list[str]:
        """The lines that a run prints at its end: checks in short, then sentences."""
        return [*(check.line for check in self.checks), *self.sentences]


class _Report(NamedTuple):
    """The first screen of a run's report, its answers, and the location of the rest."""

    sentences: Sequence[str | tuple[str, str]]
    first: Sequence[Part]
    answers: Sequence[Section]
    siblings: Sequence[SiblingPage] = ()


def build_page(inputs: PageInputs) -> RunPage:
    """Return the pages of a run."""
    tables = split_by_cohort(inputs.analysis.metrics, inputs.axes)
    audits = [audit for _, audit in inputs.backgrounds]
    checks = check_validity(tables, inputs.audits, inputs.copies, audits)
    best = summary.find_headline(tables, inputs.arm_name)
    view = None if best is None else ReportView(inputs=inputs, tables=tables, best=best)
    # The section on detectors lists what was left out.
    listed = {left_out.note for left_out in inputs.left_out}
    notes = detector_notes(inputs.arms, besides={*listed, *inputs.notes})
    along = trajectory_section(inputs.trajectory, inputs.arm_of) if inputs.trajectory else None
    detection = _detection(inputs, view, notes, along)
    led = _unlearning_led(inputs, view, checks, detection)
    report = led or _detection_led(view, checks, detection)
    methods = describe_methods(inputs) if inputs.settings else None
    pages = [*report.siblings, *_sibling_pages(inputs, tables, checks, view, methods)]
    names = view.names if view else {}
    claims = claims_section(inputs.analysis.tables.get(CLAIMS), inputs.claims, names)
    sections = _drop_empty(
        experiment_section(inputs), claims, *report.answers, checks_section(checks, inputs)
    )
    further = [section for page in pages for section in page.sections]
    if inputs.show_protected and not inputs.figure_links:
        # A single page has no sibling page that could show the requested examples.
        sections += [section for section in further if section.anchor == EXAMPLES]
    parts = [*report.first, *(part for section in [*sections, *further] for part in section.parts)]
    return RunPage(
        html=render_page(
            _KIND,
            inputs.name,
            report.sentences,
            sections,
            first=report.first,
            foot=(pages if inputs.figure_links else (), _foot(inputs, pages)),
            linked=inputs.figure_links,
        ),
        siblings={
            page.file: render_page(
                page.title,
                inputs.name,
                [],
                page.sections,
                first=[Note(page.about, "how", (("Back to the report", REPORT),))],
                script=True,
                linked=inputs.figure_links,
            )
            for page in pages
        },
        checks=checks,
        sentences=(
            *(note for note in notes if NO_SCORE in note),
            *([str(led.sentences[0])] if led else []),
            *summary.summary_sentences(tables, best, names),
            *(part for part in (along.parts if along else ()) if isinstance(part, str)),
        ),
        methods=methods,
        pictures=[*{picture.name: picture for picture in pictures_in(parts)}.values()],
    )


def _detection_led(
    view: ReportView | None, checks: Sequence[Check], detection: Sequence[Section]
) -> _Report:
    """Return a report that leads with detection."""
    if view is None:
        return _Report([summary.NOTHING_MEASURED], [badges(checks)], detection)
    key, choice = summary.choice_sentence(view.best, view.names)
    choice += f" {summary.AUC_MEANS} {summary.seeds_sentence(view.best.cell)}"
    headline = summary.headline_sentence(view.tables, view.best)
    return _Report([headline, (key, choice)], first_parts(view, checks), detection)


def _unlearning_led(
    inputs: PageInputs,
    view: ReportView | None,
    checks: Sequence[Check],
    detection: Sequence[Section],
) -> _Report | None:
    """Return a report that leads with the verdicts on unlearned models; None without any.

    Detection before unlearning is one section; all else about detectors has a separate page.
    """
    models = judged_models(inputs.unlearning.verdicts) if inputs.unlearning else []
    if inputs.unlearning is None or not models:
        return None
    names = view.names if view else {}
    before, changes = None, None
    if view is not None:
        headline = summary.headline_sentence(view.tables, view.best)
        pictures = Columns(present(arms_picture(view), copies_picture(view)), "pictures")
        before = answer("before", "Before", "Before unlearning", headline, extra=[pictures])
        title = "What changes detectability?"
        changes = answer("changes", "Changes", title, "", extra=[gains(view)])
    page = SiblingPage(
        "detectors.html",
        "Detectors before unlearning",
        "How well detectors distinguish members under the models that were not unlearned.",
        _drop_empty(changes, *detection),
    )
    return _Report(
        leading_sentences(models, inputs.unlearning.measures),
        [*lead_parts(inputs.unlearning, models, names), badges(checks)],
        _drop_empty(*unlearning_sections(inputs.unlearning, models, names), before),
        [page],
    )


def _detection(
    inputs: PageInputs, view: ReportView | None, notes: Sequence[str], along: Section | None
) -> list[Section]:
    """Return the sections on detectors that have content."""
    task = None
    if inputs.accuracy is not None:
        task = accuracy_section(inputs.accuracy, inputs.axes, view)
    order = order_section(inputs.analysis.tables, inputs.trajectory, inputs.arm_of)
    if view is None:
        return _drop_empty(unmeasured_section(inputs.left_out), along, order, task)
    return _drop_empty(
        detector_section(view, notes),
        copies_section(view),
        factors_section(view),
        rates_section(view),
        along,
        order,
        task,
        correction_section(inputs.analysis.tables.get("correction"), axis_names(inputs.arms), view),
    )


def _sibling_pages(
    inputs: PageInputs,
    tables: Sequence[Findings],
    checks: Sequence[Check],
    view: ReportView | None,
    methods: Methods | None,
) -> list[SiblingPage]:
    """Return the further pages that have content."""
    names = {detector.name: detector.title for detector in inputs.detectors}

    def section(anchor: str, title: str, *parts: Part | None, short: str = "") -> Section | None:
        return answer(anchor, short or title, title, "", extra=parts)

    pages = (
        SiblingPage(
            "results.html",
            "All results",
            "Every detector, setting, arm, dataset and number of copies, with search; AUCs "
            "adjusted by the base model; chosen settings; the factors in full.",
            _drop_empty(
                section("all-results", "All results", all_results(tables, names)),
                *(results_sections(view) if view else ()),
            ),
        ),
        SiblingPage(
            "examples.html",
            "Scores and examples",
            "The texts that score highest and lowest, the scores of both sides, training curves.",
            _drop_empty(
                examples_section(view, show_protected=inputs.show_protected) if view else None,
                section("scores", "Scores", scores_picture(view) if view else None),
                section("training", "Training", training_picture(inputs)),
            ),
        ),
        SiblingPage(
            "methods.html",
            "Methods, cost and provenance",
            "A methods text for a paper with its sources, the cost of each "
            "detector and step, the reports of the audits, versions, digests and the experiment "
            "file.",
            _drop_empty(
                methods_section(methods, linked=inputs.figure_links) if methods else None,
                cost_section(inputs.steps, inputs.detector_work),
                section(
                    "audits",
                    "Audits and checks in full",
                    *audits_parts(checks),
                    *checks_tables(checks),
                    short="Audits",
                ),
                section(
                    "background",
                    "Overlap of the background with the datasets",
                    *(part for audit in inputs.backgrounds for part in background_parts(*audit)),
                    short="Background",
                ),
                provenance_section(inputs),
            ),
        ),
    )
    return [page for page in pages if page.sections]


def _drop_empty(*sections: Section | None) -> list[Section]:
    """Return the sections that have content."""
    return [section for section in sections if section]


def _foot(inputs: PageInputs, pages: Sequence[SiblingPage]) -> str:
    """Return the footer: the files that this page needs, and the software that made it."""
    made = f"Made by spikein {inputs.code}." if inputs.code else "Made by spikein."
    if not inputs.figure_links:
        return f"{made} The run's folder contains all results, examples and methods."
    files = ", ".join(page.file for page in pages)
    return (
        f"{made} This page is self-contained. Its links lead to {files} and figures/ "
        "in the same folder: include them when sharing. All numbers are in findings.parquet."
    )
