"""From a contaminant to its examples: read, render, drop what cannot be an example, count.

Invariants: texts are distinct (the first of equal ones stays), so example ids are; every span
cuts exactly its field out of the text; sides and splits are left to the pool. The result is a
function of the contaminant's identity and the seed. Holds all examples in memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from inject.errors import InputError
from inject.examples.contaminant import Contaminant, checked_options, hub_commits, templates
from inject.examples.datasets.registry import get_dataset
from inject.examples.datasets.source import Dataset, DatasetSource
from inject.examples.example import Example, Row, example_id
from inject.examples.template import Rendered, Template, parse_template, unknown_placeholder

# An endless dataset is asked for this many rows for each example wanted: the pool leaves out
# near-duplicates and the rest of groups that no longer fit.
_SPARE = 2

ANSWER = "answer"


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What became of the rows; the last four sum to the first."""

    rows: int
    """Rows read."""
    examples: int
    """Rows that became examples."""
    duplicates: int
    """Rows dropped since an earlier one has the same rendered text."""
    empty: int
    """Rows dropped since all fields that the template names, but for the answer, are blank."""
    unanswered: int
    """Rows dropped since the template names the answer and the row has none."""


@dataclass(frozen=True, kw_only=True)
class LoadedExamples:
    """The examples of one contaminant, in the order of its rows."""

    examples: tuple[Example, ...]
    """The rows that members and non-members are drawn from, and held-out rows, too."""
    report: LoadReport
    further: tuple[Example, ...] = ()
    """Rows of an endless dataset that were made for held-out rows alone, behind the others."""

    @property
    def every(self) -> tuple[Example, ...]:
        """All of them."""
        return (*self.examples, *self.further)


def load_examples(contaminant: Contaminant, *, seed: int) -> LoadedExamples:
    """Read and render a contaminant's rows.

    Args:
        contaminant: what to load.
        seed: the experiment's seed; keys the draws of datasets that make any.

    Returns:
        The examples with side and split at their defaults, and the counts.

    Raises:
        InputError: an unreadable row, a template that names an unknown field, or fewer
            examples than members, non-members and held-out rows asked for.
    """
    dataset = get_dataset(contaminant.dataset)
    parsed = tuple(parse_template(template) for template in templates(contaminant))
    seen: set[str] = set()
    source_ids: dict[str, int] = {}
    examples: list[Example] = []
    further: list[Example] = []
    rows = duplicates = empty = unanswered = 0
    # What is held out must not change the rows that members are drawn from.
    limit = _SPARE * _wanted(contaminant) if dataset.endless else None
    for row in _rows(dataset, contaminant, seed):
        rows += 1
        template = _choose(parsed, row)
        rendered = template.render(row.fields)
        blank = _blank_fields(rendered)
        if ANSWER in blank:
            unanswered += 1
        elif blank and blank >= rendered.spans.keys() - {ANSWER}:
            empty += 1
        elif (name := example_id(rendered.text)) in seen:
            duplicates += 1
        else:
            seen.add(name)
            number = source_ids[row.source_id] = source_ids.get(row.source_id, 0) + 1
            part = examples if limit is None or rows <= limit else further
            part.append(
                Example(
                    example_id=name,
                    dataset=contaminant.name,
                    source_id=row.source_id if number == 1 else f"{row.source_id}#{number}",
                    group=row.group or name,
                    stratum=row.stratum,
                    fields=row.fields,
                    text=rendered.text,
                    spans=rendered.spans,
                    paraphrases=tuple(template.render(fields).text for fields in row.paraphrases),
                    protected=dataset.protected,
                )
            )
    report = LoadReport(
        rows=rows,
        examples=len(examples) + len(further),
        duplicates=duplicates,
        empty=empty,
        unanswered=unanswered,
    )
    _check_enough(contaminant, report)
    return LoadedExamples(examples=tuple(examples), report=report, further=tuple(further))


def _rows(dataset: Dataset, contaminant: Contaminant, seed: int) -> Iterator[Row]:
    wanted = _wanted(contaminant) + contaminant.held_out
    limit = _SPARE * wanted if dataset.endless else None
    source = DatasetSource(
        path=contaminant.path,
        split=contaminant.split,
        commits=hub_commits(contaminant),
        options=checked_options(dataset, contaminant.options),
        fields=contaminant.fields,
        seed=seed,
        limit=limit,
    )
    return islice(dataset.rows(source), limit)


def _choose(parsed: tuple[Template, ...], row: Row) -> Template:
    for template in parsed:
        if template.fits(row.fields):
            return template
    missing = next(name for name in parsed[0].names if name not in row.fields)
    raise unknown_placeholder(missing, row.fields)


def _blank_fields(rendered: Rendered) -> set[str]:
    return {
        name
        for name, span in rendered.spans.items()
        if not rendered.text[span.start : span.stop].strip()
    }


def _wanted(contaminant: Contaminant) -> int:
    """Return how many rows stand on the two sides."""
    return contaminant.members + contaminant.nonmembers


def _check_enough(contaminant: Contaminant, report: LoadReport) -> None:
    wanted = _wanted(contaminant) + contaminant.held_out
    if report.examples < wanted:
        further = f", {contaminant.held_out} held-out rows" if contaminant.held_out else ""
        raise InputError(
            f"{contaminant.members} members and {contaminant.nonmembers} non-members{further} need "
            f"{wanted} examples; the dataset has {report.examples} ({report.rows} rows read, "
            f"{report.duplicates} duplicates, {report.empty} empty, "
            f"{report.unanswered} without an answer).",
            where=contaminant.name,
            hint="Ask for fewer, or give more rows.",
        )
