"""Clients that lose no time on a stub server."""

from contextlib import closing
from pathlib import Path

import numpy as np

from inject.server.address import Patience, Server
from inject.server.client import ServerClient
from inject.server.request import TextRequest

QUICK = Patience(connect=1, reply=1, tries=3, first_wait=0.01, longest_wait=0.03, limited=0.5)


def jitter() -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=0))


def client(url: str, cache: Path | None = None, *, patience: Patience = QUICK, **more):
    server = Server(**{"base_url": url, "model": "m", "patience": patience, **more})
    return closing(ServerClient(server, cache=cache, jitter=jitter()))


def asked(*prompts: str) -> list[TextRequest]:
    return [TextRequest(prompt=one, max_tokens=5, seed=7) for one in prompts]
