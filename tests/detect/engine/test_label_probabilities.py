"""The labels' probabilities against separate prompts, and a model that knows the answer."""

import pytest
import torch

from detect.choices import LABELS, ORDERS, ChoiceQuestion
from detect.engine.label_probabilities import ONE_TOKEN, TOO_LONG, asked, label_probabilities
from tests.conftest import make_texts
from tests.detect.models import random_target

TEXTS = make_texts(8, words=6)
QUESTIONS = [ChoiceQuestion(options=tuple(TEXTS[:4])), ChoiceQuestion(options=tuple(TEXTS[4:]))]


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_tree_matches_24_separate_prompts(family, tiny_tokenizer):
    target = random_target(family, tiny_tokenizer, context=1024)
    first, reason, last = label_probabilities(target, [QUESTIONS[0], "no text", QUESTIONS[1]])
    assert reason.reason == "no text"
    for question, answers in zip(QUESTIONS, (first, last), strict=True):
        for order, row in list(zip(ORDERS, answers.log_probability, strict=True))[::5]:
            ids = tiny_tokenizer(question.prompt(order))["input_ids"]
            with torch.inference_mode():
                logits = target.model(torch.tensor([ids])).logits[0, -1].double()
            expected = torch.log_softmax(logits, -1).numpy()
            labels = [tiny_tokenizer(" " + label)["input_ids"][0] for label in LABELS]
            # The tiny tokenizer has no token for a blank with a letter: all begin with the blank.
            assert len(set(labels)) == 1
            after = torch.tensor([[*ids, labels[0]]])
            with torch.inference_mode():
                logits = target.model(after).logits[0, -1].double()
            expected = torch.log_softmax(logits, -1).numpy()
            letters = [tiny_tokenizer(" " + label)["input_ids"][1] for label in LABELS]
            assert row == pytest.approx(expected[letters], abs=1e-4)


def test_batch_size_does_not_change_answers(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer, context=1024)
    (whole,) = label_probabilities(target, QUESTIONS[:1])
    (small,) = label_probabilities(target, QUESTIONS[:1], batch_tokens=200)
    assert small.log_probability == pytest.approx(whole.log_probability, abs=1e-4)


def test_a_question_longer_than_the_context_has_no_answer(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer, context=128)
    assert label_probabilities(target, QUESTIONS[:1])[0].reason == TOO_LONG


def test_question_goes_through_the_chat_template(tiny_tokenizer):
    import copy

    chatty = copy.deepcopy(tiny_tokenizer)
    chatty.chat_template = (
        "<|endoftext|>{% for one in messages %}[{{ one.role }}]{{ one.content }}{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    sequences, labels = asked(random_target("llama", chatty, context=1024), QUESTIONS[0])
    text = chatty.decode(sequences[3])
    assert text == f"<|endoftext|>[user]{QUESTIONS[0].prompt(ORDERS[3])}[assistant]"
    assert [chatty.decode([label]) for label in labels] == list(LABELS)


def test_special_token_in_a_chat_question_is_read_as_letters(tiny_tokenizer):
    import copy

    chatty = copy.deepcopy(tiny_tokenizer)
    chatty.chat_template = "<|endoftext|>{{ messages[0].content }}[assistant]"
    options = tuple(f"{text}<|endoftext|>" for text in QUESTIONS[0].options)
    sequences, _ = asked(
        random_target("llama", chatty, context=2048), ChoiceQuestion(options=options)
    )
    for order, ids in zip(ORDERS, sequences, strict=True):
        assert [place for place, number in enumerate(ids) if number == 0] == [0]
        assert chatty.decode(ids).endswith("[assistant]")
        assert ChoiceQuestion(options=options).prompt(order) in chatty.decode(ids)


def test_tokenizer_without_letters_has_a_reason():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({"?": 0, "the": 1}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    target = random_target("llama", PreTrainedTokenizerFast(tokenizer_object=backend))
    assert asked(target, QUESTIONS[0]) == ONE_TOKEN
