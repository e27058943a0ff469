"""Questions of each dataset: a prompt, the answers to choose from, and the right one.

The prompts are the datasets' default templates up to the answer, so that a model that has read a
spiked example knows the exact prompt. Every prompt ends without a blank and every answer begins
with one, as tokenizers split words. Content-free prompts are the same with `N/A`, `[MASK]` or
nothing instead of the question (Zhao et al. 2021, Calibrate Before Use, section 5).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from inject.examples.template import letter, parse_template

CONTENT_FREE = ("N/A", "[MASK]", "")

Fields = Mapping[str, Any]


class Question(NamedTuple):
    """One question for a model. Protected texts must stay protected."""

    prompt: str
    answers: tuple[str, ...]
    """Possible answers, each with its leading blank."""
    gold: int
    """Index of the right answer."""
    content_free: tuple[str, ...]
    """The prompt without its content, once for each of `CONTENT_FREE`."""
    worded: bool
    """Whether answers are texts of different lengths, not labels."""


Answers = tuple[tuple[str, ...], int]
"""The answers to choose from, and the index of the right one."""


@dataclass(frozen=True, kw_only=True)
class PromptFormat:
    """A form of question."""

    template: str
    """The prompt up to the answer."""
    answers: Callable[[Fields], Answers | None]
    """The answers; None for a row without a known right answer."""
    worded: bool = False
    """Whether answers are texts of different lengths, not labels."""

    def ask(self, fields: Fields) -> Question | None:
        """Return the question; None if a field is missing or the answer is unknown."""
        template = parse_template(self.template)
        choice = self.answers(fields) if template.fits(fields) else None
        if choice is None:
            return None
        answers, gold = choice
        return Question(
            prompt=template.render(fields).text.lstrip(),
            answers=answers,
            gold=gold,
            content_free=tuple(
                template.render(_empty_fields(fields, template.names, content)).text.lstrip()
                for content in CONTENT_FREE
            ),
            worded=self.worded,
        )


def _empty_fields(fields: Fields, names: Sequence[str], content: str) -> Fields:
    return {
        name: content if isinstance(fields[name], str) else [content] * len(fields[name])
        for name in names
    }


def _words(*words: str) -> Callable[[Fields], Answers | None]:
    """Return the answers of a question with a few words to choose from."""

    def answers(fields: Fields) -> Answers | None:
        answer = str(fields.get("answer", ""))
        if answer not in words:
            return None
        return tuple(f" {word}" for word in words), words.index(answer)

    return answers


def _letters(form: str = "A") -> Callable[[Fields], Answers | None]:
    """Return the answers of a multiple choice by letter; `form` is the notation of a letter."""

    def answers(fields: Fields) -> Answers | None:
        options = fields.get("options")
        if not isinstance(options, list | tuple) or len(options) < 2:
            return None
        letters = [letter(index) for index in range(len(options))]
        gold = _gold(fields, letters)
        if gold is None:
            return None
        return tuple(f" {form.replace('A', label)}" for label in letters), gold

    return answers


def _gold(fields: Fields, letters: Sequence[str]) -> int | None:
    answer = str(fields.get("answer_letter") or fields.get("answer") or "").strip()
    if answer in letters:
        return letters.index(answer)
    options = [str(option).strip() for option in fields["options"]]
    return options.index(answer) if options.count(answer) == 1 else None


def _truthfulqa(fields: Fields) -> Answers | None:
    """Return the best answer and all wrong ones, each text once (the task MC1 of TruthfulQA)."""
    best = str(fields.get("answer", "")).strip()
    wrong = [option for option in fields.get("incorrect_answers", ()) if option and option != best]
    if not best or not wrong:
        return None
    return tuple(f" {option}" for option in dict.fromkeys([best, *wrong])), 0


_YES_NO = _words("yes", "no")
_PASSAGE = "{passage}\nQuestion: {question}"

FORMS: Mapping[str, tuple[PromptFormat, ...]] = {
    "boolq": (PromptFormat(template=f"{_PASSAGE}?\nAnswer:", answers=_YES_NO),),
    "imdb": (
        PromptFormat(
            template="Passage: {passage}\nSentiment:", answers=_words("Positive", "Negative")
        ),
    ),
    "commonsenseqa": (
        PromptFormat(template="Question: {question}\n{options}\nAnswer:", answers=_letters()),
    ),
    "lsat": (
        PromptFormat(template=f"{_PASSAGE}\n{{options:(A)}}\nAnswer:", answers=_letters("(A)")),
    ),
    "gpqa": (
        PromptFormat(
            template="What is the correct answer to this question: {question}\n"
            "Choices:\n{options:(A)}\nAnswer:",
            answers=_letters("(A)"),
        ),
    ),
    "truthfulqa": (PromptFormat(template="Q: {question}\nA:", answers=_truthfulqa, worded=True),),
    "fictional": (
        PromptFormat(template=f"{_PASSAGE}\nAnswer:", answers=_YES_NO),
        PromptFormat(template="Question: {question}\n{options}\nAnswer:", answers=_letters()),
    ),
    "rows": (
        PromptFormat(template=f"{_PASSAGE}\n{{options}}\nAnswer:", answers=_letters()),
        PromptFormat(template="Question: {question}\n{options}\nAnswer:", answers=_letters()),
        PromptFormat(template=f"{_PASSAGE}\nAnswer:", answers=_YES_NO),
        PromptFormat(template="Question: {question}\nAnswer:", answers=_YES_NO),
    ),
}
"""Dataset: its forms of question; a row uses the first possible one."""


def ask(dataset: str, fields: Fields) -> Question | None:
    """Return a row's question; None if it has no closed answer.

    Args:
        dataset: the dataset's name in `inject.examples.datasets`.
        fields: fields of the row.
    """
    for form in FORMS.get(dataset, ()):
        question = form.ask(fields)
        if question is not None:
            return question
    return None
