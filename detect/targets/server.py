"""A model served by an OpenAI-compatible server, queried for texts (`inject.server`).

Every sample of every prompt is a separate request, sent with a separate seed and cached under its
digest: a rerun repeats no request, and the first reply remains valid even if the server would now
reply differently. The server decides the treatment of special tokens spelled out in a prompt. Some
servers return the log-probabilities of the first written token, and some those of a given text: a
short request tests this. The tokens of a text are the server's own, and must spell the text
(`token_offsets`). A model exchanged during reading would mix results of two models: a probe text is
read again before and after, and its results must equal those of the first request.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from detect.targets.text_model import Completion, Progress, Sampling
from detect.token_statistics import (
    EMPTY_TEXT,
    ONE_TOKEN,
    TokenStatistics,
    token_columns,
    unscored,
)
from inject.errors import InputError
from inject.server.client import RequestCost, RequestEstimate, ServerClient
from inject.server.reply_cache import Reply, TextTokens
from inject.server.request import Server, TextRequest, sample_seed
from train.models.model_node import ModelNode

_PROBE = TextRequest(prompt="The answer is", max_tokens=1)
_TEXT_PROBE = TextRequest(
    prompt="The lighthouse at the end of the pier was built of grey stone, and its keeper wrote "
    "down every ship that passed: name, flag and hour.",
    max_tokens=0,
    echo=True,
)
_SAME = 0.05
"""Largest mean difference in nats of one text's log-probabilities between two batches; another
checkpoint of a model differs by more."""
_LISTED = {"completions": 5, "chat": 20}
"""Maximum number of likeliest tokens that OpenAI's own server lists."""


class ServerTextModel:
    """A `TextModel` on a server.

    Raises:
        InputError: the environment variable of the key is not set; the cache cannot be used.
    """

    def __init__(
        self,
        server: Server,
        *,
        cache: Path | None,
    ) -> None:
        """Open the server, without any request yet.

        Args:
            server: address, model and options.
            cache: the file of replies; None stores nothing.
        """
        self._client = ServerClient(server, cache=cache)
        self._left_out: set[str] = set()
        self._systems: set[str] = set()
        self._sampled = self._alike = 0
        self._lists_asked = False
        self._counted: list[TextRequest] | None = None

    @property
    def name(self) -> str:
        """The model's name on the server."""
        return self._client.server.model

    @property
    def cost(self) -> RequestCost:
        """Requests so far."""
        return self._client.cost

    def complete(
        self, prompts: Sequence[str], sampling: Sampling, *, progress: Progress | None = None
    ) -> list[list[Completion]]:
        """Return `sampling.samples` continuations of each prompt.

        `completions` sends a prompt unchanged, `chat` as a user's message.

        Raises:
            InputError: as `ServerClient.ask`.
        """
        supported = self.supported_sampling(sampling)
        by_prompts = None if progress is None else _by_prompts(progress, sampling.samples)
        replies = self._ask(_requests(prompts, supported), by_prompts)
        completions = [_completion(reply, sampling.stop) for reply in replies]
        many = sampling.samples
        rows = [completions[start : start + many] for start in range(0, len(completions), many)]
        if many > 1:
            self._sampled += len(rows)
            self._alike += sum(len({completion.text for completion in row}) == 1 for row in rows)
        return rows

    def answer(
        self, questions: Sequence[str], sampling: Sampling, *, progress: Progress | None = None
    ) -> list[list[Completion]]:
        """Return answers to each question: with `chat` through the model's chat template, else as
        is.

        Raises:
            InputError: as `ServerClient.ask`.
        """
        return self.complete(questions, sampling, progress=progress)

    def gives_log_probabilities(self) -> bool:
        """Return whether the server gives the probabilities of the first token; requested once.

        Raises:
            InputError: if the server does not respond.
        """
        return not self._client.probe(
            replace(_PROBE, top_log_probabilities=_LISTED[self._client.server.api]),
            lacks=lambda reply: "" if reply.log_probabilities else "probabilities",
        ).text

    def first_tokens(
        self, questions: Sequence[str], *, progress: Progress | None = None
    ) -> list[Mapping[str, float]]:
        """Return the likeliest first tokens of each answer, with their log-probabilities.

        Empty if a reply lacks them although the server supports them.

        Raises:
            InputError: as `ServerClient.ask`.
        """
        self._lists_asked = True
        listed = _LISTED[self._client.server.api]
        replies = self._ask(
            [
                TextRequest(prompt=question, max_tokens=1, top_log_probabilities=listed)
                for question in questions
            ],
            progress,
        )
        return [reply.log_probabilities or {} for reply in replies]

    def text_probe(self) -> tuple[TextRequest, Reply]:
        """Return a request for a text's log-probabilities, with ranks if there are any; its reply.

        The reply's text names the missing feature; it is empty if none is missing. Requested once.

        Raises:
            InputError: if the server does not respond.
        """
        request, reply = _TEXT_PROBE, Reply("`server.api=chat` has no form for it")
        for ranks in (True, False) if self._client.server.api == "completions" else ():
            request = replace(_TEXT_PROBE, ranks=ranks)
            reply = self._client.probe(request)
            if not reply.text:
                break
        return request, reply

    def token_statistics(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> list[TokenStatistics]:
        """Return the statistics of each text's tokens, as the server gives them.

        Args:
            texts: any texts.
            before: text put before each; its tokens are omitted, and so is the text's first one if
                it is not scored separately.
            progress: called with (texts read, texts in all).

        Raises:
            InputError: as `ServerClient.ask`; the server gives no log-probabilities of a text, or
                those of another text; its model has changed since the first stored reply.
        """
        request, probed = self.text_probe()
        if probed.tokens is None:
            raise self._refusal(f"it gives no log-probabilities of a given text: {probed.text}")
        prefixes = before or [""] * len(texts)
        requests = [
            replace(request, prompt=f"{prefix}{text}")
            for prefix, text in zip(prefixes, texts, strict=True)
            if text
        ]
        if self._counted is not None:
            self._counted += requests
            return [unscored("counted")] * len(texts)
        estimate = self._client.estimate(requests)
        checks = estimate.requests > estimate.kept
        if checks:
            self._check_same(probed, self._client.ask_anew(request))
        replies = self._client.ask(requests, progress=progress)
        last = self._client.ask_anew(request) if checks else probed
        try:
            self._check_same(probed, last)
            self._check_named([probed, *replies, last])
        except InputError:
            # It is unknown which of them are from the other model.
            self._client.forget(requests)
            raise
        arrived = iter(replies)
        # The first token of a text is scored if a special token precedes it.
        skipped = int(all(start != 0 for start, _ in probed.tokens.offsets))
        return [
            _statistics(next(arrived).tokens, len(prefix), skipped)
            if text
            else unscored(EMPTY_TEXT)
            for prefix, text in zip(prefixes, texts, strict=True)
        ]

    def _check_same(self, first: Reply, now: Reply) -> None:
        """Reject a model whose results for the probe text have changed."""
        before, after = first.tokens, now.tokens
        if before is None or after is None:
            raise TypeError("a probe without tokens")
        if not np.array_equal(before.offsets, after.offsets) or (
            np.abs(np.subtract(before.log_probabilities, after.log_probabilities)).mean() > _SAME
        ):
            raise self._refusal(
                "its model has changed: a text has other log-probabilities than at the first "
                "request"
            )

    def _check_named(self, replies: Sequence[Reply]) -> None:
        """Reject replies under the names of several models; note several systems."""
        names = sorted({reply.model for reply in replies if reply.model})
        if len(names) > 1:
            raise self._refusal(f"its replies are from several models: {', '.join(names)}")
        systems = {reply.tokens.fingerprint for reply in replies if reply.tokens}
        self._systems |= {name for name in systems if name}

    def _refusal(self, problem: str) -> InputError:
        server = self._client.server
        return InputError(
            f"the log-probabilities of the model {server.model!r} cannot be used: {problem}",
            where=server.base_url,
            hint="Replies are kept by address and name: if the model behind a name was exchanged, "
            "name another server.cache, or move the file of replies away.",
        )

    def supported_sampling(self, sampling: Sampling) -> Sampling:
        """Return a sampling without options that the server rejects, which the notes report."""
        if sampling.top_k is None:
            return sampling
        if not self._client.probe(replace(_PROBE, temperature=1.0, top_k=sampling.top_k)).text:
            return sampling
        self._left_out.add(f"top_k = {sampling.top_k}")
        return replace(sampling, top_k=None)

    def counting(self) -> "ServerTextModel":
        """Return a model that writes nothing, and counts the requests to this one."""
        model = copy(self)
        model._counted = []
        return model

    def estimate(self) -> RequestEstimate:
        """Return the counts; those that depend on the server's answers are unknown."""
        return self._client.estimate(self._counted or [])

    def _ask(self, requests: list[TextRequest], progress: Progress | None) -> list[Reply]:
        if self._counted is None:
            return self._client.ask(requests, progress=progress)
        self._counted += requests
        return [Reply(text="")] * len(requests)

    def notes(self) -> tuple[str, ...]:
        """Return notes about the replies."""
        notes = [*self._client.notes()]
        if self._lists_asked:
            notes.append(
                "the server lists its likeliest first tokens, from which the labels' probabilities "
                "were taken; a label that is not listed counts as the least likely of the list"
            )
        if len(self._systems) > 1:
            notes.append(
                f"the server answered as several systems ({', '.join(sorted(self._systems))}); a "
                "text that was read at first and at last had the same log-probabilities"
            )
        if self._left_out:
            notes.append(
                f"the server does not take {' and '.join(sorted(self._left_out))}; its texts were "
                "sampled without, from all tokens"
            )
        if self._sampled and self._alike == self._sampled:
            notes.append(
                f"all samples were alike for each of {self._sampled:,} prompts: the server seems "
                "to take the likeliest token at any temperature, and scores that compare "
                "samples mean nothing"
            )
        return tuple(notes)

    def close(self) -> None:
        """Close connections and cache."""
        self._client.close()


@dataclass(frozen=True, kw_only=True)
class ServedModel(ModelNode):
    """A model on a server, for steps; `pretrained` is its name there."""

    server: Server
    replies: Path
    """The file of replies."""

    @property
    def served(self) -> bool:
        """Always true."""
        return True

    def execution(self, name: str) -> dict[str, Any]:
        """Return its options, for `open_server`."""
        return {name: {"server": asdict(self.server), "replies": str(self.replies)}}

    def format(self, dtype: str) -> str:
        """Return the number format, which only the server knows."""
        return "served"


def served_model(server: Server, *, replies: Path) -> ServedModel:
    """Return a model on a server, identified by its known properties."""
    identity = {"base_url": server.base_url, "model": server.model, "api": server.api}
    return ServedModel(pretrained=server.model, identity=identity, server=server, replies=replies)


def open_server(model: Mapping[str, Any]) -> ServerTextModel:
    """Open the served model of a step's execution settings, without any request yet."""
    return ServerTextModel(Server(**model["server"]), cache=Path(model["replies"]))


def _statistics(tokens: TextTokens | None, before: int, skipped: int) -> TokenStatistics:
    """Return the statistics of a text's tokens after the first `skipped` characters."""
    if tokens is None:
        raise TypeError("a text without tokens")
    offsets = np.array(tokens.offsets, np.int32).reshape(-1, 2)
    own = offsets[:, 0] >= before
    if before:
        own[np.flatnonzero(offsets[:, 0] == before)[:skipped]] = False
    if not own.any():
        return unscored(ONE_TOKEN)
    return token_columns(
        ids=np.array(tokens.ids, np.int32)[own],
        log_probability=np.array(tokens.log_probabilities, np.float32)[own],
        offsets=(offsets - before)[own],
        rank=None if tokens.ranks is None else np.array(tokens.ranks, np.int32)[own],
    )


def _requests(prompts: Sequence[str], sampling: Sampling) -> list[TextRequest]:
    """Return one request for each sample of each prompt, prompt by prompt."""
    return [
        TextRequest(
            prompt=prompt,
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            stop=sampling.stop,
            seed=sample_seed(sampling.seed, sample),
            sample=sample,
        )
        for prompt in prompts
        for sample in range(sampling.samples)
    ]


def _completion(reply: Reply, stop: Sequence[str]) -> Completion:
    text = reply.text
    # Some servers write the stop text, and some do not support the parameter.
    for mark in stop:
        text = text.partition(mark)[0] if mark else text
    return Completion(text, reply.tokens_in or 0, reply.tokens_out or 0)


def _by_prompts(progress: Progress, samples: int) -> Progress:
    """Return a callback for requests that reports progress in prompts."""
    return lambda done, total: progress(done // samples, total // samples)
