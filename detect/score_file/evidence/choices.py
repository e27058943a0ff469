"""Multiple choice: the model's answers about each row that has three paraphrases.

Held-out rows with paraphrases are asked about, too, where the labels' probabilities are to be had:
they calibrate the scores, and are never scored.
"""

from collections.abc import Sequence
from dataclasses import replace

from detect.choices.answers import ChoiceAnswers, ChoiceEvidence
from detect.choices.question import ChoiceQuestion, choice_question
from detect.evidence.needs import Choices
from detect.score_file.evidence.provider import Provider, TargetProvider, Work
from detect.score_file.held_out_file import read_held_out_file
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.targets.letters import ListsTokens, ask_label_probabilities, ask_letters
from detect.targets.server import CountingTextModel, ServerTextModel


class _Choices(TargetProvider[Choices]):
    hint = (
        "Give rows three paraphrases each (`paraphrases`, or Example_A to Example_D with the "
        "verbatim text first)."
    )
    hint_in_code = "Score a file of rows with three paraphrases each (`spikein detect`)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return any(rows.paraphrases or ())

    def meet(self, needs: Sequence[Choices], work: Work) -> None:
        rows = work.rows
        titles = rows.titles or [""] * len(rows.texts)
        paraphrases = rows.paraphrases or [()] * len(rows.texts)
        questions = [
            choice_question(text, others, {"title": title})
            for text, others, title in zip(rows.texts, paraphrases, titles, strict=True)
        ]
        work.fields["choices"] = ChoiceEvidence(
            answers=_answers(work, questions), clean=_clean_answers(work)
        )


def _clean_answers(work: Work) -> list[ChoiceAnswers]:
    """Ask about held-out rows with paraphrases; letters of a server calibrate nothing."""
    request = work.request
    if request.held_out is None or (request.server is not None and _lister(work) is None):
        return []
    rows = read_held_out_file(request.held_out, work.rows).paraphrased
    questions = [choice_question(row.text, row.paraphrases, {"title": row.title}) for row in rows]
    return [
        replace(answers, document=row.document)
        for answers, row in zip(_answers(work, questions), rows, strict=True)
    ]


def _lister(work: Work) -> ListsTokens | None:
    """Return a server's model, where it gives the probabilities of labels."""
    model = work.text_model()
    if isinstance(model, ServerTextModel | CountingTextModel) and model.gives_log_probabilities():
        return model
    return None


def _answers(work: Work, questions: Sequence[ChoiceQuestion | str]) -> list[ChoiceAnswers]:
    """Ask for the labels' probabilities; a server that gives none is asked for letters."""

    def progress(done: int, total: int) -> None:
        work.on_progress("multiple choice", done, total)

    if work.request.server is not None:
        lister = _lister(work)
        if lister is not None:
            return ask_label_probabilities(lister, questions, progress)
        return ask_letters(work.text_model(), questions, progress)
    from detect.engine.label_probabilities import label_probabilities

    return label_probabilities(
        work.target(), questions, batch_tokens=work.request.batch_tokens, progress=progress
    )


CHOICES: Provider[Choices] = _Choices()
"""The need of multiple choice is met by asking the model to test."""
