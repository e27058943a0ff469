"""Generated facts about invented people, towns, works and gatherings; needs no file.

Row i of seed s is a pure function of (s, i), drawn from its own keyed generator: more rows
move no other, and rows are independent and identically distributed, so that members and
non-members are exchangeable. Room for far more than 10**6 distinct rows. Each has three
paraphrases with the same facts and other sentences. Some 3,000 rows a second and core, their
paraphrases included. The four forms of a row, each in four equivalent versions:

- biography: a person in up to seven sentences; field `text`.
- passage: a story, a yes/no question about one of its facts, and the answer. The answer is a
  fair coin; for `no` the question offers a value drawn as the true one was.
- choice: a short story, a question about a fact that the story omits, and four options drawn as the
  true one was, which has a random position. A paraphrase rotates the options.
- question: a question about a fact and an answer in sentences, with further facts.

Every form also has `form`, `kind`, `fact_name`, `fact_…` for each fact it tells (`fact_…_with` for
its companion value), and `masked`: the invented words and numbers that occur exactly once in the
text. They were drawn independently of everything else, so masked words can only be restored from
memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from inject.examples.datasets import fiction
from inject.examples.datasets.choices import choice_fields
from inject.examples.datasets.fiction import Draws, Story, StoryFact, grammar
from inject.examples.datasets.source import Dataset, DatasetSource
from inject.examples.example import Row
from inject.examples.template import letter
from inject.settings import Distinct, Settings

Fields = dict[str, Any]

_OPTIONS = 4
Form = Literal["biography", "passage", "choice", "question"]
_FORMS: tuple[Form, ...] = get_args(Form)
# Set in the item of the draw that chooses a row's form, never in that of its content.
_FORM_OF = 1 << 63


class FictionalOptions(Settings):
    """Options of the generated facts."""

    forms: Annotated[tuple[Form, ...], Field(min_length=1), Distinct] = _FORMS
    """Forms to draw from, all equally likely; each row takes one."""
    first: Annotated[int, Field(ge=0, lt=2**60)] = 0
    """Number of the first row; rows follow from seed and number, so a second `fictional` must start
    after the rows of the first."""


def biography(draws: Draws) -> list[Fields]:
    """Return the versions of a short biography."""
    story = fiction.invent(draws, "person", draws.between(4, 6))
    texts = [{"text": fiction.prose(draws, story, version)} for version in range(fiction.VERSIONS)]
    return _versions("biography", story, texts)


def passage(draws: Draws) -> list[Fields]:
    """Return the versions of a passage with a yes/no question."""
    story = fiction.invent(draws, draws.pick([*grammar().subjects]), draws.between(2, 4))
    target = draws.pick((*story.lead_facts, *story.details))
    true = draws.below(2) == 1
    value = target.values["v"] if true else fiction.new_value(draws, target.fact.value, story.taken)
    offered = {**target.values, "v": value, "a_v": fiction.with_article(value)}
    parts = [
        {
            "passage": fiction.prose(draws, story, version),
            "question": story.tell(draws, target.check[version], offered),
            "answer": "yes" if true else "no",
        }
        for version in range(fiction.VERSIONS)
    ]
    return _versions("passage", story, parts, target)


def choice(draws: Draws) -> list[Fields]:
    """Return the versions of a multiple-choice question."""
    story = fiction.invent(draws, draws.pick([*grammar().subjects]), draws.between(2, 3))
    target, *others = story.details
    true = target.values["v"]
    wrong = [fiction.new_value(draws, target.fact.value, story.taken) for _ in range(_OPTIONS - 1)]
    options = draws.sample([true, *wrong], _OPTIONS)
    parts = []
    for version in range(fiction.VERSIONS):
        turned = options[version:] + options[:version]
        gold = turned.index(true)
        lines = [
            story.tell(draws, story.lead[version]),
            *fiction.sentences(draws, story, fiction.shuffled(draws, others, version), version),
            story.tell(draws, target.ask[version], target.values),
        ]
        choices = choice_fields(turned, gold)
        parts.append({"question": " ".join(lines), **choices, "answer": letter(gold)})
    return _versions("choice", story, parts, target)


def question(draws: Draws) -> list[Fields]:
    """Return the versions of a question with an answer in sentences."""
    story = fiction.invent(draws, draws.pick([*grammar().subjects]), draws.between(2, 3))
    target, *others = story.details
    introduced = draws.below(2) == 1
    parts = []
    for version in range(fiction.VERSIONS):
        first = story.tell(draws, story.lead[version])
        asking = story.tell(draws, target.ask[version], target.values)
        more = fiction.shuffled(draws, others, version)
        if introduced:
            asking = f"{first} {asking}"
            lines = [story.tell(draws, target.say[version], target.values)]
            lines += fiction.sentences(draws, story, more, version)
        else:
            lines = [first, *fiction.sentences(draws, story, [target, *more], version)]
        parts.append({"question": asking, "answer": " ".join(lines)})
    return _versions("question", story, parts, target)


FORMS = dict(zip(_FORMS, (biography, passage, choice, question), strict=True))


def _versions(
    form: str, story: Story, parts: Sequence[Mapping[str, Any]], target: StoryFact | None = None
) -> list[Fields]:
    """Return complete fields for each version, given the fields that differ between them."""
    fields: Fields = {"form": form, "kind": story.kind, "fact_name": story.name}
    if target is not None:
        fields["asked"] = target.key
    counts = grammar().invented
    invented: list[str] = []
    for item in (*story.lead_facts, *story.details):
        fact, values = item.fact, item.values
        fields[f"fact_{item.key}"] = values["v"]
        invented += values["v"].split()[: counts.get(fact.value, 0)]
        # A choice reveals the requested value by its options, and a companion only in the question.
        hidden = form == "choice" and item is target and "{w}" not in "".join(fact.ask)
        if fact.companion is not None and not hidden:
            fields[f"fact_{item.key}_with"] = values["w"]
            invented += values["w"].split()[: counts.get(fact.companion, 0)]
    versions = []
    for part in parts:
        prompt_text = "\n".join([part.get(name, "") for name in ("text", "passage", "question")])
        prompt_text = "\n".join([prompt_text, *part.get("options", ()), part.get("answer", "")])
        masked = [word for word in invented if prompt_text.count(word) == 1]
        versions.append({**fields, **part, "masked": masked})
    return versions


def fictional_row(seed: int, index: int, forms: tuple[Form, ...] = _FORMS) -> Row:
    """Return row `index` of `seed`, 0 <= index < 2**61; its stratum is its form.

    Rows of different forms share no draws, even if seed and index are the same: a biography
    that is a member gives nothing away about a question that is not.
    """
    form = Draws(seed, _FORM_OF | index).pick(forms)
    fields, *paraphrases = FORMS[form](Draws(seed, index * len(_FORMS) + _FORMS.index(form)))
    return Row(
        fields=fields,
        source_id=f"fictional:{index}",
        stratum=form,
        paraphrases=tuple(paraphrases),
    )


def fictional_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield rows from the first on, up to the limit, or without end."""
    options = FictionalOptions.model_validate(source.options)
    for number in count() if source.limit is None else range(source.limit):
        yield fictional_row(source.seed, options.first + number, options.forms)


DATASET = Dataset(
    name="fictional",
    summary="Generated facts about invented people, towns, works and gatherings; no file needed.",
    template="{passage}\nQuestion: {question}\nAnswer: {answer}",
    alternatives=(
        "Question: {question}\n{options}\nAnswer: {answer}",
        "Question: {question}\nAnswer: {answer}",
        "{text}",
    ),
    rows=fictional_rows,
    paraphrases=True,
    endless=True,
    seeded=True,
    options=FictionalOptions,
)
