"""Clients that lose no time on a stub server."""

from contextlib import closing
from pathlib import Path

from inject.server.client import ServerClient
from inject.server.request import Server, TextRequest


def client(url: str, cache: Path | None = None, **more):
    server = Server(**{"base_url": url, "model": "m", "timeout": 1, "retries": 1, **more})
    return closing(ServerClient(server, cache=cache))


def asked(*prompts: str) -> list[TextRequest]:
    return [TextRequest(prompt=prompt, max_tokens=5, seed=7) for prompt in prompts]
