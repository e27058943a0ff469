"""A local causal model that writes texts.

`complete` encodes a prompt like any text; `answer` applies the chat template to a question, if the
tokenizer has one. Equal prompts are read once. The output depends only on the prompt's text, the
number of the sample and the seed (see `detect.targets.decoding`), and a greedy continuation equals
that of `model.generate`. A continuation ends at an end token, which it excludes, and before the
first of the texts in `Sampling.stop`.

With `sample_continuations`, an unlearning audit lets a model continue the first words of a chunk 20
times (Shi et al. 2024, section 7.2.1). Cost: a pass over each prompt (two if its samples span two
batches), then a pass over each written token.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from detect.engine.target import Target
from detect.targets.decoding import I64, Stopped, generate, prompt_lengths
from detect.targets.text_model import Completion, Progress, Sampling, TextModel
from inject.corpus.tokenizer import encode_chat, encode_texts, encode_with_offsets
from inject.errors import InputError
from inject.keyed import item_key

_log = logging.getLogger(__name__)

_PROBE = "a"
_HISTORY = 8
"""Number of last prompt tokens decoded together with a continuation."""


class LocalTextModel:
    """A causal language model on this machine, as a `TextModel`."""

    def __init__(self, target: Target, *, batch_tokens: int | None = None) -> None:
        """Wrap a target as a text model.

        Args:
            target: model and tokenizer.
            batch_tokens: tokens of one batch, including those to write; no influence on the texts.
        """
        self._target = target
        self._tokenizer = target.tokenizer
        self._batch_tokens = batch_tokens
        self._appended_end = _appends_end(target.tokenizer)
        self._warned = False

    @property
    def name(self) -> str:
        """Path or hub id."""
        return self._target.name

    @property
    def context(self) -> int | None:
        """Maximum positions of prompt and continuation together; None if there is no limit."""
        return self._target.context

    def prompt_tokens(self, prompts: Sequence[str]) -> list[int]:
        """Return each prompt's number of tokens in `complete`, before any cut."""
        return [len(self._prompt_ids(text)) for text in prompts]

    def complete(
        self, prompts: Sequence[str], sampling: Sampling, *, progress: Progress | None = None
    ) -> list[list[Completion]]:
        """Return `sampling.samples` continuations of each prompt.

        Raises:
            InputError: an empty prompt if the tokenizer has no start token, a token that the model
                lacks, or a single sequence that exceeds the memory.
        """
        return self._write(prompts, sampling, progress, self._prompt_ids)

    def answer(
        self, questions: Sequence[str], sampling: Sampling, *, progress: Progress | None = None
    ) -> list[list[Completion]]:
        """Return answers to each question; raises as `complete`."""
        return self._write(questions, sampling, progress, self._question_ids)

    def token_ends(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the end of each token of each text, in characters."""
        return [text.offsets[:, 1].tolist() for text in encode_with_offsets(self._tokenizer, texts)]

    def _write(
        self, prompts: Sequence[str], sampling: Sampling, progress: Progress | None, encode: Any
    ) -> list[list[Completion]]:
        place = {text: index for index, text in enumerate(dict.fromkeys(prompts))}
        prompt_ids = [np.array(encode(text), dtype=np.int64) for text in place]
        lengths = prompt_lengths(self._target, prompt_ids, sampling.max_tokens)
        cut = any(n_read < len(own) for own, (n_read, _) in zip(prompt_ids, lengths, strict=True))
        if cut or any(limit < sampling.max_tokens for _, limit in lengths):
            self._warn()
        written = generate(
            self._target,
            prompt_ids,
            [item_key(text) for text in place],
            sampling,
            batch_tokens=self._batch_tokens,
            stopped=self._stopper(prompt_ids, sampling),
            progress=_by_prompt(progress, len(prompts), len(place) * sampling.samples),
        )
        completions: list[list[Completion]] = []
        read: set[str] = set()
        for text in prompts:
            own_ids = prompt_ids[place[text]]
            # An equal prompt is read and counted once.
            tokens_in = 0 if text in read else lengths[place[text]][0]
            paid = 0 if text in read else 1
            read.add(text)
            completions.append(
                [
                    Completion(
                        text=self._text(own_ids, ids, sampling),
                        tokens_in=tokens_in if number == 0 else 0,
                        tokens_out=paid * len(ids),
                    )
                    for number, ids in enumerate(written[place[text]])
                ]
            )
        return completions

    def _warn(self) -> None:
        """Warn once that the context is too small for prompts or their continuations."""
        if self._warned:
            return
        self._warned = True
        _log.warning(
            "%s has a context of %s tokens: prompts beyond half of it keep their end, and "
            "continuations end when it is full",
            self.name,
            self._target.context,
        )

    def _prompt_ids(self, text: str) -> list[int]:
        ids: list[int] = encode_texts(self._tokenizer, [text], added=True)[0].tolist()
        if self._appended_end and ids and ids[-1] == self._tokenizer.eos_token_id:
            ids.pop()
        if ids:
            return ids
        start = self._tokenizer.bos_token_id
        start = self._tokenizer.eos_token_id if start is None else start
        if start is None:
            raise InputError(
                "an empty prompt needs a start token, and this model's tokenizer has none",
                where=self.name,
            )
        return [start]

    def _question_ids(self, question: str) -> list[int]:
        if self._tokenizer.chat_template is None:
            return self._prompt_ids(question)
        return encode_chat(self._tokenizer, question)

    def _stopper(self, prompt_ids: Sequence[I64], sampling: Sampling) -> Stopped | None:
        if not sampling.stop:
            return None

        def stopped(prompt: int, ids: Sequence[int]) -> bool:
            text = self._decode(prompt_ids[prompt], ids)
            return any(ending in text for ending in sampling.stop)

        return stopped

    def _text(self, prompt: I64, ids: Sequence[int], sampling: Sampling) -> str:
        text = self._decode(prompt, ids)
        places = [place for ending in sampling.stop if (place := text.find(ending)) >= 0]
        return text[: min(places)] if places else text

    def _decode(self, prompt: I64, ids: Sequence[int]) -> str:
        """Return the text of ids after the prompt, including the space between them."""
        history = prompt[-_HISTORY:].tolist()
        decode = partial(
            self._tokenizer.decode, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        before, whole = decode(history), decode([*history, *ids])
        # Else the prompt ends within a character.
        return str(whole[len(before) :] if whole.startswith(before) else decode(list(ids)))


def _appends_end(tokenizer: Any) -> bool:
    """Return whether a tokenizer itself puts its end token after a text."""
    end = tokenizer.eos_token_id
    own = tokenizer(_PROBE, return_attention_mask=False)["input_ids"]
    return end is not None and len(own) > 1 and own[-1] == end


def _by_prompt(progress: Progress | None, prompts: int, samples: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total: progress(done * prompts // max(1, samples), prompts)


def sample_continuations(
    target: Target | TextModel,
    prompts: Sequence[str],
    *,
    samples: int,
    max_tokens: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[list[str]]:
    """Return `samples` texts that a model writes after each prompt, in the order given.

    Args:
        target: a local model, or a text model (`LocalTextModel`, `ServerTextModel`).
        prompts: texts, sent to the model unchanged.
        samples: continuations of each prompt.
        max_tokens: maximum tokens of a continuation, which may end earlier at an end token.
        temperature: 1 samples from the model's own distribution (multinomial sampling).
        top_p: share of the probability to sample from.
        seed: seed of the sampling.
        progress: called with (prompts done, prompts in all).

    Raises:
        InputError: numbers out of range; a prompt of a local model that leaves no room for its
            continuation, and would be cut; as `LocalTextModel.complete`, or a server's errors.
    """
    sampling = Sampling(
        max_tokens=max_tokens, temperature=temperature, top_p=top_p, samples=samples, seed=seed
    )
    model = LocalTextModel(target) if isinstance(target, Target) else target
    if isinstance(model, LocalTextModel):
        _check_room(model, prompts, max_tokens)
    completions = model.complete(prompts, sampling, progress=progress)
    return [[completion.text for completion in row] for row in completions]


def _check_room(model: LocalTextModel, prompts: Sequence[str], max_tokens: int) -> None:
    """Reject a prompt if it or its continuation would be cut."""
    if model.context is None:
        return
    for number, tokens in enumerate(model.prompt_tokens(prompts)):
        if tokens + max_tokens > model.context:
            raise InputError(
                f"prompt {number} has {tokens:,} tokens and its continuation up to "
                f"{max_tokens:,}, together more than the model's {model.context:,} positions",
                where=model.name,
                hint="Use fewer words of the text, or shorter continuations.",
            )
