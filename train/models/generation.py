"""A local model that answers prompts, for paraphrases.

Each prompt is answered separately under its own seed, so answers do not depend on their order; an
answer is stored immediately. The global random state is unchanged. Cost: one generation per prompt.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from inject.corpus.tokenizer import encode_chat, encode_texts, load_tokenizer
from inject.digest import digest
from inject.server.reply_cache import Reply, ReplyCache
from inject.variants.paraphrase import SeededPrompt
from inject.variants.settings import ParaphraseVariant
from train.models.pretrained import find_model, load_causal_model
from train.process_state import plain_transformers

ANSWERS_FILE = "answers.sqlite"


class LocalWriter:
    """Answers with a causal language model, through its chat template if it has one.

    Raises:
        InputError: if the model does not exist.
    """

    def __init__(self, variant: ParaphraseVariant, cache: Path | None = None) -> None:
        """Load the model.

        Args:
            variant: the model and its sampling.
            cache: a folder for answers; None stores none.
        """
        self._variant = variant
        self._cache = None if cache is None else ReplyCache(cache / ANSWERS_FILE)
        name = variant.model or ""
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        with plain_transformers():
            self._model = load_causal_model(name).to(self._device).eval()
        self._tokenizer = load_tokenizer(str(find_model(name).path))

    def write(
        self,
        questions: Sequence[SeededPrompt],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[str]:
        """Return the model's answers."""
        answers = []
        for question in questions:
            answers.append(self._answer(question))
            if progress is not None:
                progress(len(answers), len(questions))
        return answers

    def notes(self) -> tuple[str, ...]:
        """Return notes about the stored answers."""
        return () if self._cache is None else self._cache.notes()

    def close(self) -> None:
        """Close the file of answers."""
        if self._cache is not None:
            self._cache.close()

    def _answer(self, question: SeededPrompt) -> str:
        if self._cache is None:
            return self._write(*question)
        settings = self._variant.model_dump(include={"model", "temperature", "max_tokens"})
        name = digest({**settings, **question._asdict()})
        reply = self._cache.get([name]).get(name)
        if reply is None:
            reply = self._cache.keep({name: Reply(self._write(*question))})[name]
        return reply.text

    def _write(self, prompt: str, seed: int) -> str:
        ids = self._encode(prompt).to(self._device)
        sampling = self._variant.temperature > 0
        devices = [self._device] if self._device == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.inference_mode():
            torch.manual_seed(seed)
            out = self._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=sampling,
                temperature=self._variant.temperature if sampling else None,
                top_p=None,
                top_k=None,
                max_new_tokens=self._variant.max_tokens,
                pad_token_id=self._tokenizer.eos_token_id,
            )
        answer = out[0, ids.shape[1] :]
        return str(self._tokenizer.decode(answer, skip_special_tokens=True))

    def _encode(self, prompt: str) -> torch.Tensor:
        if self._tokenizer.chat_template is not None:
            return torch.tensor([encode_chat(self._tokenizer, prompt)])
        [ids] = encode_texts(self._tokenizer, [prompt], added=True)
        return torch.from_numpy(ids)[None]
