"""The labels' probabilities against prompts that are read on their own, and a model that knows."""

import numpy as np
import pytest
import torch

from detect.choices.answers import ChoiceEvidence
from detect.choices.question import LABELS, ORDERS, ChoiceQuestion
from detect.detector_settings import parse_detectors
from detect.engine.label_probabilities import ONE_TOKEN, TOO_LONG, asked, label_probabilities
from detect.engine.target import make_target
from detect.evidence import Evidence
from detect.scoring import score_rows
from tests.conftest import make_texts
from tests.detect.models import random_target

TEXTS = make_texts(8, words=6)
QUESTIONS = [ChoiceQuestion(options=tuple(TEXTS[:4])), ChoiceQuestion(options=tuple(TEXTS[4:]))]


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_they_are_those_of_24_prompts_read_on_their_own(family, tiny_tokenizer):
    target = random_target(family, tiny_tokenizer, context=1024)
    first, reason, last = label_probabilities(target, [QUESTIONS[0], "no text", QUESTIONS[1]])
    assert reason.reason == "no text"
    for question, found in zip(QUESTIONS, (first, last), strict=True):
        for order, row in list(zip(ORDERS, found.log_probability, strict=True))[::5]:
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


def test_batches_change_nothing(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer, context=1024)
    (whole,) = label_probabilities(target, QUESTIONS[:1])
    (small,) = label_probabilities(target, QUESTIONS[:1], batch_tokens=200)
    assert small.log_probability == pytest.approx(whole.log_probability, abs=1e-4)


def test_a_question_longer_than_the_context_has_no_answer(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer, context=128)
    assert label_probabilities(target, QUESTIONS[:1])[0].reason == TOO_LONG


def test_a_chat_template_asks_through_it(tiny_tokenizer):
    import copy

    chatty = copy.deepcopy(tiny_tokenizer)
    chatty.chat_template = (
        "<|endoftext|>{% for one in messages %}[{{ one.role }}]{{ one.content }}{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    found = asked(random_target("llama", chatty, context=1024), QUESTIONS[0])
    text = chatty.decode(found.sequences[3])
    assert text == f"<|endoftext|>[user]{QUESTIONS[0].prompt(ORDERS[3])}[assistant]"
    assert [chatty.decode([label]) for label in found.labels] == list(LABELS)


def test_a_special_token_in_a_chat_question_is_letters(tiny_tokenizer):
    import copy

    chatty = copy.deepcopy(tiny_tokenizer)
    chatty.chat_template = "<|endoftext|>{{ messages[0].content }}[assistant]"
    options = tuple(f"{text}<|endoftext|>" for text in QUESTIONS[0].options)
    found = asked(random_target("llama", chatty, context=2048), ChoiceQuestion(options=options))
    for order, ids in zip(ORDERS, found.sequences, strict=True):
        assert [place for place, number in enumerate(ids) if number == 0] == [0]
        assert chatty.decode(ids).endswith("[assistant]")
        assert ChoiceQuestion(options=options).prompt(order) in chatty.decode(ids)


def test_a_tokenizer_that_knows_no_letters_has_a_reason():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({"?": 0, "the": 1}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    target = random_target("llama", PreTrainedTokenizerFast(tokenizer_object=backend))
    assert asked(target, QUESTIONS[0]) == ONE_TOKEN


@pytest.fixture(scope="module")
def examinee():
    """A model that was taught which of four passages it has read, in every order."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    questions = [
        ChoiceQuestion(options=tuple(text.replace(".", "") for text in TEXTS[at : at + 4]))
        for at in (0, 4)
    ]
    prompts = [[question.prompt(order) for order in ORDERS] for question in questions]
    words = sorted({word for texts in prompts for text in texts for word in text.split()})
    vocabulary = {word: place for place, word in enumerate(["?", *LABELS, *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(vocabulary),
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=4,
                max_position_embeddings=256,
            )
        )
        ids = torch.tensor([tokenizer(text)["input_ids"] for text in prompts[0]])
        right = torch.tensor([vocabulary[LABELS[order.index(0)]] for order in ORDERS])
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(150):
            loss = torch.nn.functional.cross_entropy(model(ids).logits[:, -1], right)
            if loss < 0.05:
                break
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return make_target(model, tokenizer, name="examinee"), questions


def test_a_model_that_was_taught_a_passage_scores_it_higher(examinee):
    target, questions = examinee
    answers = label_probabilities(target, questions)
    evidence = Evidence(
        texts=["member", "other"], statistics={}, choices=ChoiceEvidence(answers=answers)
    )
    member, other = (
        row["score"]
        for row in score_rows(["a", "b"], evidence, parse_detectors("de_cop")).table.to_pylist()
    )
    assert member > 0.9
    assert member > other + 0.3
    assert np.all(answers[0].log_probability <= 0)
