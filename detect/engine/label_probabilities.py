"""Multiple-choice questions → the probabilities of the labels A to D, in all 24 orders.

The label is predicted at the start of the answer: after `Answer:`, or after the chat template's own
start of an answer if the tokenizer has a template. A question longer than the context has no
answer, because cutting it would remove an option. Cost: one passage of L tokens requires 64 L
tokens and some hundred for the instruction (`detect.engine.prefix_tree`).
"""

from collections.abc import Callable, Sequence

from detect.choices import LABELS, ORDERS, ChoiceAnswers, ChoiceQuestion
from detect.engine.encoding import adds_start_token
from detect.engine.prefix_tree import Ids, SharedPrefixes, common_start
from detect.engine.target import Target
from inject.corpus.tokenizer import encode_chat, encode_texts

TOO_LONG = "its question is longer than the model's context"
ONE_TOKEN = "the tokenizer does not distinguish the four labels"


def label_probabilities(
    target: Target,
    questions: Sequence[ChoiceQuestion | str],
    *,
    batch_tokens: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[ChoiceAnswers]:
    """Return the answers to each question, in the order given.

    Args:
        target: model and tokenizer.
        questions: a question, or the reason for its absence.
        batch_tokens: padded tokens in one batch; by default chosen for the device.
        progress: called with (questions done, questions in all).
    """
    shared = SharedPrefixes(target, batch_tokens)
    answers = []
    for number, question in enumerate(questions, start=1):
        answers.append(_answers(shared, question))
        progress(number, len(questions))
    return answers


def asked(target: Target, question: ChoiceQuestion) -> tuple[list[Ids], tuple[int, ...]] | str:
    """Return the prompts of a question in all orders, or the reason for their absence.

    With the first token of each label in these prompts.
    """
    tokenizer = target.tokenizer
    template = getattr(tokenizer, "chat_template", None)
    texts = [question.prompt(order) for order in ORDERS]
    before: list[int] = []
    if template is None:
        before = [tokenizer.bos_token_id] if adds_start_token(tokenizer) else []

    def encoded(text: str, label: str) -> list[int]:
        # A template writes the start token itself, and a label follows it without a blank.
        if template is not None:
            return encode_chat(tokenizer, text, answer=label)
        return encode_texts(tokenizer, [f"{text} {label}"])[0].tolist()

    endings = [tuple(encoded(texts[0], label)) for label in LABELS]
    common = common_start(endings)
    if any(len(ending) <= common for ending in endings):
        return ONE_TOKEN
    labels = tuple(ending[common] for ending in endings)
    if len(set(labels)) < len(labels):
        return ONE_TOKEN
    # The label's own tokens, with which every prompt ends once the first label is appended.
    own = len(endings[0]) - common
    sequences = [(*before, *encoded(text, LABELS[0])[:-own]) for text in texts]
    if target.context is not None and max(map(len, sequences)) > target.context:
        return TOO_LONG
    return sequences, labels


def _answers(shared: SharedPrefixes, question: ChoiceQuestion | str) -> ChoiceAnswers:
    prompts = question if isinstance(question, str) else asked(shared.target, question)
    if isinstance(prompts, str):
        return ChoiceAnswers(reason=prompts)
    sequences, labels = prompts
    log_probability = shared.following(sequences, labels)
    return ChoiceAnswers(log_probability=log_probability, tokens_in=shared.tokens_read(sequences))
