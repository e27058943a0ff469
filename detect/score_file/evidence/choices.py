"""Multiple choice: the model's answers about each row that has three paraphrases."""

from collections.abc import Sequence

from detect.choices.answers import ChoiceAnswers, ChoiceEvidence
from detect.choices.question import ChoiceQuestion, choice_question
from detect.needs import Choices
from detect.score_file.evidence.provider import Provider, Work, check_model
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.targets.letters import ask_letters


class _Choices(Provider[Choices]):
    hint = (
        "Give rows three paraphrases each (`paraphrases`, or Example_A to Example_D with the "
        "verbatim text first)."
    )
    hint_in_code = "Score a file of rows with three paraphrases each (`spikein detect`)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return any(rows.paraphrases or ())

    def check(self, request: ScoringRequest) -> None:
        check_model(request.model, request, revision=request.revision)

    def meet(self, needs: Sequence[Choices], work: Work) -> None:
        rows = work.rows
        titles = rows.titles or [""] * len(rows.texts)
        paraphrases = rows.paraphrases or [()] * len(rows.texts)
        questions = [
            choice_question(text, others, {"title": title})
            for text, others, title in zip(rows.texts, paraphrases, titles, strict=True)
        ]
        work.fields["choices"] = ChoiceEvidence(answers=_answers(work, questions))


def _answers(work: Work, questions: Sequence[ChoiceQuestion | str]) -> list[ChoiceAnswers]:
    """Ask a local model for the labels' probabilities, and one on a server for letters."""

    def progress(done: int, total: int) -> None:
        work.on_progress("multiple choice", done, total)

    if work.request.server is not None:
        return ask_letters(work.text_model(), questions, progress)
    from detect.engine.label_probabilities import label_probabilities

    return label_probabilities(
        work.target(), questions, batch_tokens=work.request.batch_tokens, progress=progress
    )


CHOICES: Provider[Choices] = _Choices()
"""The need of multiple choice is met by asking the model to test."""
