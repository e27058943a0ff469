"""A server that gives the log-probabilities of a given text as vLLM does, by a local model.

They are calculated from the model's plain logits, one text at a time.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.stub_server import Answer, text


def echoing(path: Path) -> Callable[[int, Mapping[str, Any]], Answer]:
    """The behaviour of such a server, for `stub_server`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModelForCausalLM.from_pretrained(path).eval()

    def behaviour(_number: int, body: Mapping[str, Any]) -> Answer:
        if not body.get("echo"):
            return text("x")
        encoded = tokenizer(body["prompt"], return_offsets_mapping=True, return_tensors="pt")
        ids = encoded["input_ids"]
        with torch.no_grad():
            predicted = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        own = predicted.gather(-1, ids[0, 1:, None])
        ranks = (predicted >= own).sum(-1).tolist()
        spans = encoded["offset_mapping"][0].tolist()
        # Of the tokens of one character, the last one shows it.
        tokens = [
            "" if span == after else body["prompt"][slice(*span)]
            for span, after in zip(spans, [*spans[1:], None], strict=True)
        ]
        return echoed(tokens, own[:, 0].tolist(), ids[0, 1:].tolist(), ranks)

    return behaviour


def echoed(
    tokens: list[Any],
    log_probabilities: list[float | None],
    ids: list[int] | None = None,
    ranks: list[int] | None = None,
    **more: Any,
) -> Answer:
    """A reply that shows the tokens of the prompt; the first has no log-probability."""
    choice: dict[str, Any] = {
        "text": "".join(map(str, tokens)),
        "logprobs": {"tokens": tokens, "token_logprobs": [None, *log_probabilities]},
    }
    if ids is not None and ranks is not None:
        listed = zip(ids, log_probabilities, ranks, strict=True)
        choice["prompt_logprobs"] = [None] + [
            {str(token): {"logprob": value, "rank": rank}} for token, value, rank in listed
        ]
    usage = {"prompt_tokens": len(tokens), "completion_tokens": 0}
    reply = {"model": "m", "usage": usage, **more, "choices": [choice]}
    return Answer(content=json.dumps(reply).encode())


def words(_number: int, body: Mapping[str, Any]) -> Answer:
    """Words and punctuation marks are tokens; shorter ones are likelier."""
    tokens = re.findall(r" ?\w+|\W", body["prompt"])
    values = [-float(len(token)) for token in tokens[1:]]
    return echoed(tokens, values, [len(token) for token in tokens[1:]], [1] * len(values))
