"""Tokens and time of task accuracy, alongside bare passes over its prompts and answers.

Run as `python -m scripts.bench.task_accuracy [--model FOLDER]`; the last line is one JSON object.
A LLaMA of hidden 512, 4 layers and vocabulary 32,000, or the model of a folder, answers rows of
random words in the shape of BoolQ, CommonsenseQA, LSAT and TruthfulQA. The measure counts each
different prompt once, and each answer once after every prompt that it follows. Bare passes read as
many tokens in windows of [8, 256], with logits at every position as in `scoring`; task accuracy
makes them only at scored answers.
"""

import argparse
import json
import time
from typing import Any

import numpy as np

from scripts.bench.scoring import make_target_and_texts

SIDES = {"boolq": 110, "commonsenseqa": 0, "lsat": 150, "truthfulqa": 0}
"""Dataset: words of its passages."""


def main() -> None:
    """Measure, and print one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="folder of a model; by default a random one")
    parser.add_argument("--rows", type=int, default=60, help="of each of the four datasets")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.model, arguments.rows)))


def measure(model: str | None, count: int) -> dict[str, Any]:
    """Return tokens and seconds, and their ratios to those of the prompts and answers."""
    import torch

    from detect.engine.target import load_target, make_target
    from detect.task_accuracy.prompts import ask
    from detect.task_accuracy.scoring import task_accuracy
    from inject.corpus.tokenizer import encode_texts, train_tokenizer

    examples = rows(count)
    if model is None:
        words = [str(value) for row in examples for value in row.fields.values()]
        random, _, _ = make_target_and_texts()
        target = make_target(random.model, train_tokenizer(words, 1024), name="bench")
    else:
        target = load_target(model)
    read = {"tokens": 0, "padded": 0}

    def count_tokens(_: Any, __: Any, inputs: dict[str, Any]) -> None:
        ids = inputs["input_ids"]
        read["tokens"] += int(inputs["attention_mask"][:, -ids.shape[1] :].sum())
        read["padded"] += ids.numel()

    hook = target.model.register_forward_pre_hook(count_tokens, with_kwargs=True)
    started = time.perf_counter()
    task_accuracy(target, examples, kinds={})
    seconds = time.perf_counter() - started
    hook.remove()
    questions = [question for row in examples if (question := ask(row.dataset, row.fields))]
    pairs = {
        (prompt, answer)
        for question in questions
        for prompt in (question.prompt, *question.content_free)
        for answer in question.answers
    }
    texts = [*{prompt for prompt, _ in pairs}, *(answer for _, answer in pairs)]
    tokens = sum(map(len, encode_texts(target.tokenizer, texts)))
    ids = torch.zeros(8, 256, dtype=torch.long, device=target.device)
    started = time.perf_counter()
    with torch.inference_mode():
        for _ in range(passes := -(-tokens // ids.numel())):
            target.model(input_ids=ids, use_cache=False)
    bare = (time.perf_counter() - started) * tokens / (passes * ids.numel())
    return {
        "token_ratio": round(read["tokens"] / tokens, 3),
        "padded_ratio": round(read["padded"] / tokens, 3),
        "seconds_ratio": round(seconds / bare, 3),
        "tokens": read["tokens"],
        "prompts_and_answers": tokens,
        "seconds": round(seconds, 2),
        "bare_seconds": round(bare, 2),
        "rows": len(examples),
        "threads": torch.get_num_threads(),
    }


def rows(count: int) -> list[Any]:
    """Return rows of each dataset, of random words."""
    from inject.examples.example import Example

    random = np.random.Generator(np.random.Philox(key=0))
    words = ["".join(random.choice(list("aeiounrstlm"), 5)) for _ in range(500)]

    def text(length: int) -> str:
        return " ".join(random.choice(words, max(1, random.poisson(length))))

    examples = []
    for number in range(count):
        for dataset, passage in SIDES.items():
            options = [text(8) for _ in range(5)]
            fields = {
                "passage": text(passage),
                "question": text(10),
                "options": options,
                "answer": "yes" if dataset == "boolq" else options[0],
                "incorrect_answers": options[1:],
            }
            name = f"{dataset}-{number}"
            examples.append(
                Example(
                    example_id=name,
                    dataset=dataset,
                    source_id=name,
                    group=name,
                    text="",
                    fields=fields,
                )
            )
    return examples


if __name__ == "__main__":
    main()
