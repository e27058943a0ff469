"""A file of rows scored by a model on a server: what may be sent, what can be seen, what it takes.

A server shows what its model writes. What all detectors would ask of it is counted before the
first request is sent, by meeting their needs with a model that writes nothing.
"""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from detect.access import Access
from detect.detector_settings import DetectorSetting
from detect.evidence.needs import Need
from detect.score_file.evidence.provider import Work
from detect.score_file.evidence.providers import read_evidence
from detect.score_file.held_out_file import read_held_out_file
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.scoring import Runnable, within_access
from detect.targets.server import ServerTextModel
from inject.errors import InputError
from inject.server.address import Server
from inject.server.client import Estimate

REPLIES_FILE = "replies.sqlite"


def open_server(request: ScoringRequest, server: Server) -> "closing[ServerTextModel]":
    """Open the server, to be closed by the caller; nothing is asked.

    Raises:
        InputError: the environment variable of its key is not set; the file of replies cannot be
            used.
    """
    folder = request.cache or default_cache()
    return closing(ServerTextModel(server, cache=folder / REPLIES_FILE))


def check_served(request: ScoringRequest, rows: LabelledRows, *, in_code: bool) -> None:
    """Refuse to send what nobody asked to send, before the first text is sent.

    Raises:
        InputError: rows of a protected dataset that is not named; a server of another model; what
            belongs to a server, and none is given.
    """
    server = request.server
    if server is None:
        if request.send_protected:
            raise InputError("texts are sent to a server only", where="send_protected")
        return
    if server.model != request.model:
        raise InputError(
            f"the server is asked for the model {server.model!r}, and {request.model!r} is scored",
            where="server",
            hint="Give both one name.",
        )
    sent = {*rows.protected}
    if request.held_out is not None:
        held_out = read_held_out_file(request.held_out, rows)
        # Only rows with paraphrases are asked about; which of them are protected is not known.
        sent |= {*held_out.protected} if held_out.paraphrased else set()
    unnamed = sorted(sent - {*request.send_protected})
    if unnamed:
        names = ", ".join(unnamed)
        given = (
            "send_protected=(…)"
            if in_code
            else " ".join(f"--send-protected {name}" for name in unnamed)
        )
        raise InputError(
            f"the texts of protected data ({names}) would be sent to a server",
            where=server.base_url,
            hint=f"Score with a local model, or, where the server may have them, say so: {given}.",
        )


def served_detectors(
    settings: Sequence[DetectorSetting], model: ServerTextModel, *, leave_out: bool
) -> Runnable:
    """Return the settings that a server's model can be asked for.

    Whether it gives the probabilities of labels is asked for where a detector cannot do without.

    Raises:
        InputError: a detector that was named reads more than the server shows.
    """
    most = Access.TEXT
    because = "a server shows what its model writes, not the probabilities of a given text"
    if any(one.detector.access_with(one.parameters) == Access.LABELS for one in settings):
        if model.gives_log_probabilities():
            most = Access.LABELS
        else:
            because = "this server shows what its model writes, and no probabilities"
    return within_access(settings, most, leave_out=leave_out, because=because)


def estimate_requests(
    request: ScoringRequest, rows: LabelledRows, needs: Sequence[Need], model: ServerTextModel
) -> Estimate:
    """Return what meeting the needs asks of the server; asks at most what parameters it takes."""
    counting = model.counting()
    written = [need for need in needs if Access.TEXT <= need.access <= Access.LABELS]
    silent = Work(
        request=request, rows=rows, on_progress=lambda what, done, total: None, asked=counting
    )
    read_evidence(silent, written)
    return counting.estimate()


def default_cache() -> Path:
    """Return the folder for replies, below `XDG_CACHE_HOME` or `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "spikein"
