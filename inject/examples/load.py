"""From a contaminant to its examples: read, render, drop what cannot be an example, count.

Invariants: texts are distinct (the first of equal ones stays), so example ids are; every span
cuts exactly its field out of the text; sides and splits are left to the pool. The result is a
function of the contaminant's identity and the seed. Holds all examples in memory.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from inject.errors import InputError
from inject.examples.contaminant import Contaminant, checked_options, hub_commits, templates
from inject.examples.datasets.registry import get_dataset
from inject.examples.datasets.source import Dataset, DatasetSource
from inject.examples.example import Example, Loss, Row, RowLoss, example_id
from inject.examples.template import Rendered, Template, parse_template, unknown_placeholder

# An endless dataset is asked for this many rows for each example wanted: the pool leaves out
# near-duplicates and the rest of groups that no longer fit.
_SPARE = 2

ANSWER = "answer"


@dataclass(frozen=True, kw_only=True)
class LoadedExamples:
    """The examples of one contaminant, in the order of its rows."""

    examples: tuple[Example, ...]
    """The rows that members and non-members are drawn from, and held-out rows, too."""
    rows: int
    """Rows read."""
    losses: tuple[RowLoss, ...]
    """Those dropped: an earlier one has the same rendered text; all fields that the template names,
    but for the answer, are blank; the template names the answer and the row has none."""
    repeated_ids: int = 0
    """Examples whose id an earlier one has; `#2`, `#3` … tells them apart."""
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
    seen: dict[str, str] = {}
    losses: list[RowLoss] = []
    source_ids: dict[str, int] = {}
    examples: list[Example] = []
    further: list[Example] = []
    rows = 0
    # What is held out must not change the rows that members are drawn from.
    limit = _SPARE * _wanted(contaminant) if dataset.endless else None
    for row in _rows(dataset, contaminant, seed):
        rows += 1
        template = _choose(parsed, row)
        rendered = template.render(row.fields)
        blank = _blank_fields(rendered)
        name = example_id(rendered.text)
        if ANSWER in blank:
            losses.append(RowLoss(contaminant.name, row.source_id, Loss.UNANSWERED))
        elif blank and blank >= rendered.spans.keys() - {ANSWER}:
            losses.append(RowLoss(contaminant.name, row.source_id, Loss.EMPTY))
        elif name in seen:
            losses.append(RowLoss(contaminant.name, row.source_id, Loss.DUPLICATE, seen[name]))
        else:
            seen[name] = f"{contaminant.name} {row.source_id}"
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
    loaded = LoadedExamples(
        examples=tuple(examples),
        rows=rows,
        losses=tuple(losses),
        repeated_ids=sum(number - 1 for number in source_ids.values()),
        further=tuple(further),
    )
    _check_enough(contaminant, loaded)
    return loaded


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


def _check_enough(contaminant: Contaminant, loaded: LoadedExamples) -> None:
    wanted = _wanted(contaminant) + contaminant.held_out
    if (there := len(loaded.every)) < wanted:
        further = f", {contaminant.held_out} held-out rows" if contaminant.held_out else ""
        lost = Counter(one.loss for one in loaded.losses)
        raise InputError(
            f"{contaminant.members} members and {contaminant.nonmembers} non-members{further} need "
            f"{wanted} examples; the dataset has {there} ({loaded.rows} rows read, "
            f"{lost[Loss.DUPLICATE]} duplicates, {lost[Loss.EMPTY]} empty, "
            f"{lost[Loss.UNANSWERED]} without an answer).",
            where=contaminant.name,
            hint="Ask for fewer, or give more rows.",
        )
