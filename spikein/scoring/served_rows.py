"""Score rows with a model on a server: permissions, access and requests.

A server returns generated text, and may return log-probabilities of a given text. The requests of
all steps are counted before the first one is sent, by building the steps with a model that
generates nothing.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from operator import sub
from pathlib import Path
from tempfile import TemporaryDirectory

from detect.access import Access
from detect.detector_settings import DetectorSetting
from detect.scoring import Runnable, within_access
from detect.target_identity import SERVER_FILE
from detect.targets.server import ServerTextModel, served_model
from detect.user_rows.labelled_rows import KnownTexts, LabelledRows
from inject.errors import InputError
from inject.files import cache_folder
from inject.server.client import RequestEstimate
from inject.step import Step, StepContext, find_function
from spikein.pipeline.graph import Graph
from spikein.scoring.options import ScoredServer, ServerSettings
from spikein.store.store import Store

_REPLIES_FILE = "replies.sqlite"
Build = Callable[..., list[Path]]
"""Builds steps, and returns their folders."""


def check_protected(
    server: ScoredServer, rows: LabelledRows, held_out: KnownTexts | None, *, read: bool = False
) -> None:
    """Refuse to send texts of a protected dataset that is not named.

    Args:
        server: the server that would receive them.
        rows: the rows to score.
        held_out: further rows.
        read: whether the model reads the held-out rows, all of them.

    Raises:
        InputError: naming the datasets.
    """
    sent = {*rows.protected}
    if held_out is not None and (read or any(row.paraphrases for row in held_out.nonmembers)):
        # Otherwise only rows with paraphrases are sent; whether they are protected is unknown.
        sent |= {*held_out.protected}
    unnamed = ", ".join(sorted(sent - {*server.send_protected}))
    if unnamed:
        raise InputError(
            f"the texts of protected data ({unnamed}) would be sent to a server",
            where=server.base_url,
            hint="Score with a local model, or permit the server to receive them: "
            f"server.send_protected=[{unnamed}].",
        )


def replies_file(server: ServerSettings | None) -> Path:
    """Return the file of a server's replies."""
    named = server and server.cache
    return (Path(named).expanduser() if named else cache_folder()) / _REPLIES_FILE


class RemoteTarget:
    """A model on a server, and the requests of a graph of steps."""

    def __init__(self, settings: ScoredServer, model: str) -> None:
        """Prepare the server without sending a request.

        Raises:
            InputError: when the environment variable of the key is not set.
        """
        self.settings = settings
        self._server = settings.server(model)
        self._server.key()
        self._replies = replies_file(settings)
        self._asked: Counter[str] = Counter()
        self.node = served_model(self._server, replies=self._replies)

    def detectors(self, settings: Sequence[DetectorSetting], *, leave_out: bool) -> Runnable:
        """Return the settings that a server's model supports.

        If a detector requires them, requests test whether the server returns probabilities of
        labels, and those of a given text.

        Raises:
            InputError: for a named detector that reads more than the server returns.
        """
        accesses = {setting.detector.access_with(setting.parameters) for setting in settings}
        most = Access.TEXT
        reasons = {Access.LABELS: "this server returns generated text, but no probabilities"}
        with self._open_model() as model:
            if Access.LABELS in accesses and model.gives_log_probabilities():
                most = Access.LABELS
            if accesses & {Access.TOKENS, Access.RANKS}:
                request, reply = model.text_probe()
                if reply.text:
                    because = (
                        "this server returns generated text, but no probabilities of a "
                        f"given text ({reply.text})"
                    )
                    reasons |= dict.fromkeys((Access.TOKENS, Access.RANKS), because)
                else:
                    most = Access.RANKS if request.ranks else Access.TOKENS
                    reasons = {Access.RANKS: "this server returns no ranks of a text's tokens"}
        beyond = "a server returns at most log-probabilities and ranks of the tokens of a text"
        return within_access(
            settings,
            most,
            leave_out=leave_out,
            because=lambda access: reasons.get(access, beyond),
        )

    def check_reads_texts(self) -> None:
        """Check that the server returns log-probabilities of a given text.

        Raises:
            InputError: naming what the server lacks.
        """
        with self._open_model() as model:
            _, reply = model.text_probe()
        if reply.text:
            raise InputError(
                f"a reference model must return probabilities of a given text ({reply.text})",
                where=self._server.base_url,
            )

    def requests(self, goal: Step, build: Build) -> dict[str, RequestEstimate]:
        """Return each step's requests to the server up to a goal, by the step's digest.

        This builds the inputs of the steps. A request shared by two steps counts for the first.
        """
        asking = self._requests(goal)
        of_asking = {step.digest for step in asking}
        before = {
            source.digest: source
            for step in asking
            for source in step.inputs.values()
            if source.digest not in of_asking
        }
        folders = dict(zip(before, build(*before.values()), strict=True)) if before else {}
        requests: dict[str, RequestEstimate] = {}
        with self._open_model() as model:
            counting = model.counting()
            counted = counting.estimate()
            for step in asking:
                inputs = {name: folders[source.digest] for name, source in step.inputs.items()}
                _count(step, inputs, counting)
                now = counting.estimate()
                requests[step.digest] = RequestEstimate(*map(sub, now, counted))
                counted = now
        return requests

    def stored(self, goal: Step, store: Store) -> frozenset[str]:
        """Return the steps that need no further requests."""
        return frozenset(
            step.digest for step in self._requests(goal) if store.find(step.digest, kind=step.kind)
        )

    def notes(self, goal: Step, build: Build, stored: frozenset[str]) -> list[str]:
        """Return notes on the replies and their cost.

        Args:
            goal: as of `requests`.
            build: returns the folders of the steps, which are built by now.
            stored: steps that sent no requests this time.
        """
        asking = self._requests(goal)
        cost = Counter(self._asked)
        notes: dict[str, None] = {}
        for step, folder in zip(asking, build(*asking) if asking else [], strict=True):
            facts = json.loads((folder / SERVER_FILE).read_text())
            notes |= dict.fromkeys(facts.pop("notes"))
            again = step.digest in stored
            cost.update({"kept": facts["asked"] + facts["kept"]} if again else facts)
        if not cost["asked"] and not cost["kept"]:
            return list(notes)
        return [
            *notes,
            f"the server answered {cost['asked']:,} requests: {cost['tokens_in']:,} tokens in, "
            f"{cost['tokens_out']:,} out; {cost['kept']:,} were answered before",
        ]

    def _requests(self, goal: Step) -> list[Step]:
        named = asdict(self._server)
        return [
            step
            for step in Graph(goals=(goal,)).steps
            if step.execution.get("model", {}).get("server") == named
        ]

    @contextmanager
    def _open_model(self) -> Iterator[ServerTextModel]:
        model = ServerTextModel(self._server, cache=self._replies)
        with closing(model):
            try:
                yield model
            finally:
                self._asked.update(model.cost._asdict())


def _count(step: Step, inputs: dict[str, Path], model: ServerTextModel) -> None:
    """Build a step with a model that counts requests, and discard the result."""
    settings, execution = step.json_values()
    with TemporaryDirectory() as folder:
        context = StepContext(
            out=Path(folder),
            inputs=inputs,
            settings=settings,
            execution=execution,
            unfinished=Path(folder),
            report=lambda done, total=None, *, unit="", note="": None,
        )
        find_function(step.function)(context, model)
